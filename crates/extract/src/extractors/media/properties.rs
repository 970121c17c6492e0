//! Collects the metadata of a file.

use crate::encoding;
use crate::limits::Limits;
use crate::metadata_text::{append_keywords, clean_property};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::xmp::read_xmp;

/// The maximum length of a text, for example of lyrics. Longer ones are truncated.
const TEXT_BYTES_MAX: usize = 64 << 10;
const LINES_MAX: usize = 1000;

/// The meaning of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Property {
    Title,
    Author,
    Album,
    Description,
    Keywords,
    /// Anything else that is text.
    Other,
}

/// The document of a file.
pub(super) struct Properties<'l> {
    pub(super) document: ExtractedDocument,
    pub(super) limits: &'l Limits,
    /// Distinct texts.
    lines: Vec<String>,
}

impl<'l> Properties<'l> {
    pub(super) fn new(kind: DocumentKind, limits: &'l Limits) -> Self {
        Properties {
            document: ExtractedDocument::new(kind, String::new()),
            limits,
            lines: Vec::new(),
        }
    }

    /// Adds a text. The first title, author, album and description take precedence.
    pub(super) fn add(&mut self, property: Property, text: &str) {
        let metadata = &mut self.document.metadata;
        let slot = match property {
            Property::Title => Some(&mut self.document.title),
            Property::Author => Some(&mut metadata.author),
            Property::Album => Some(&mut metadata.album),
            Property::Description => Some(&mut metadata.description),
            Property::Keywords => {
                append_keywords(&mut metadata.keywords, text);
                None
            }
            Property::Other => None,
        };
        if let Some(slot) = slot.filter(|slot| slot.is_none()) {
            *slot = clean_property(text);
        }
        self.add_line(text);
    }

    /// Adds a text in an unknown encoding.
    pub(super) fn add_bytes(&mut self, property: Property, bytes: &[u8]) {
        let text = encoding::decode(bytes, TEXT_BYTES_MAX).text;
        self.add(property, &text);
    }

    pub(super) fn add_xmp(&mut self, packet: &[u8]) {
        read_xmp(packet, self.limits, &mut self.document);
    }

    pub(super) fn set_size(&mut self, width: u32, height: u32) {
        if width > 0 && height > 0 {
            self.document.metadata.width = Some(width);
            self.document.metadata.height = Some(height);
        }
    }

    fn add_line(&mut self, text: &str) {
        let text = text.trim_matches(|it: char| it.is_whitespace() || it == '\0');
        let text = text
            .get(..text.floor_char_boundary(TEXT_BYTES_MAX))
            .unwrap_or_default();
        let is_new = !text.is_empty() && !self.lines.iter().any(|line| line == text);
        if is_new && self.lines.len() < LINES_MAX {
            self.lines.push(text.to_owned());
        }
    }

    /// Returns the document. Its text consists of all metadata, so that a search finds any of it.
    pub(super) fn finish(mut self) -> ExtractedDocument {
        let metadata = self.document.metadata.clone();
        let others = [
            self.document.title.clone(),
            metadata.author,
            metadata.album,
            metadata.description,
            metadata.camera,
        ];
        for text in others.into_iter().flatten().chain(metadata.keywords) {
            self.add_line(&text);
        }
        self.document.text = self.lines.join("\n");
        encoding::truncate(&mut self.document.text, self.limits.text_bytes_max);
        self.document
    }
}
