//! RTF (Rich Text Format). Source: Rich Text Format Specification 1.9.1.
//!
//! A file consists of nested groups (`{…}`), control words (`\par`) and text. A group whose first
//! control word is a destination (`\info`) contains something other than body text.

mod destination;
mod tokenizer;

use encoding_rs::{Encoding, WINDOWS_1252};

use crate::error::ExtractError;
use crate::extractors::code_page::{find_charset_encoding, find_encoding};
use crate::format::Input;
use crate::limits::Limits;
use crate::metadata_text::{CalendarTime, append_keywords, clean_property};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{FlowBuilder, Separator};
use destination::{Destination, Property};
use tokenizer::{Token, Tokenizer};

const FORMAT: &str = "RTF document";
/// Groups are rarely nested more than 20 levels deep.
const DEPTH_MAX: usize = 10_000;
const FONTS_MAX: usize = 10_000;
const TOKENS_PER_CHECK: u32 = 4096;
/// The maximum size of a property. Longer ones are truncated later.
const PROPERTY_BYTES_MAX: usize = 64 << 10;

/// Extracts the body with its notes, comments and headers, and the properties.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let mut reader = RtfReader::new(limits);
    let mut number = 0u32;
    for token in Tokenizer::new(input.bytes) {
        number = number.wrapping_add(1);
        if number.is_multiple_of(TOKENS_PER_CHECK) {
            limits.check_deadline()?;
        }
        if reader.body.is_full() {
            break;
        }
        reader.handle(token)?;
    }
    Ok(reader.finish())
}

/// The formatting state of a group, restored at its end.
#[derive(Clone, Copy)]
struct GroupState {
    destination: Destination,
    encoding: &'static Encoding,
    /// The number of fallback characters after `\u`.
    fallback_count: u8,
    is_deleted: bool,
}

struct RtfReader {
    body: FlowBuilder,
    /// Notes, comments and headers. They are separate, because they would interrupt the sentences
    /// of the body.
    blocks: FlowBuilder,
    document: ExtractedDocument,
    state: GroupState,
    groups: Vec<GroupState>,
    /// The next control word may be a destination.
    begins_group: bool,
    /// The group begins with `\*`: unknown destinations are skipped.
    is_optional: bool,
    /// Bytes that were not decoded yet. A character can consist of several bytes.
    bytes: Vec<u8>,
    /// The high surrogate of a character that `\u` writes as two code units.
    high_surrogate: Option<u16>,
    /// The number of fallback characters to skip after `\u`.
    skip_count: u8,
    property: String,
    date: CalendarTime,
    default_encoding: &'static Encoding,
    /// The font whose entry in the font table is being read.
    font: i32,
    fonts: Vec<(i32, &'static Encoding)>,
}

impl RtfReader {
    fn new(limits: &Limits) -> Self {
        RtfReader {
            body: FlowBuilder::new(limits.text_bytes_max),
            blocks: FlowBuilder::new(limits.text_bytes_max),
            document: ExtractedDocument::new(DocumentKind::Document, String::new()),
            state: GroupState {
                destination: Destination::Body,
                encoding: WINDOWS_1252,
                fallback_count: 1,
                is_deleted: false,
            },
            groups: Vec::new(),
            begins_group: false,
            is_optional: false,
            bytes: Vec::new(),
            high_surrogate: None,
            skip_count: 0,
            property: String::new(),
            date: CalendarTime::default(),
            default_encoding: WINDOWS_1252,
            font: 0,
            fonts: Vec::new(),
        }
    }

    fn handle(&mut self, token: Token<'_>) -> Result<(), ExtractError> {
        match token {
            Token::GroupStart => {
                self.flush();
                if self.groups.len() >= DEPTH_MAX {
                    return Err(ExtractError::malformed(
                        FORMAT,
                        "its groups are nested too deeply",
                    ));
                }
                self.groups.push(self.state);
                (self.begins_group, self.is_optional) = (true, false);
                self.skip_count = 0;
                return Ok(());
            }
            Token::GroupEnd => self.end_group(),
            Token::Optional => {
                self.is_optional = self.begins_group;
                return Ok(());
            }
            Token::Byte(_) | Token::Character(_) if self.skip_count > 0 => self.skip_count -= 1,
            Token::Byte(byte) => {
                self.flush_surrogate();
                self.bytes.push(byte);
            }
            Token::Text(text) => self.push_text(text),
            Token::Character(character) => self.push_characters(character),
            Token::Word { name, parameter } => self.handle_word(name, parameter),
        }
        self.begins_group = false;
        Ok(())
    }

    fn end_group(&mut self) {
        self.flush();
        self.skip_count = 0;
        let Some(outer) = self.groups.pop() else {
            return;
        };
        if let Destination::Property(property) = self.state.destination
            && self.state.destination != outer.destination
        {
            self.set_property(property);
        }
        self.state = outer;
    }

    fn push_text(&mut self, text: &[u8]) {
        let skipped = text.len().min(self.skip_count.into());
        self.skip_count -= u8::try_from(skipped).unwrap_or(self.skip_count);
        let text = text.get(skipped..).unwrap_or_default();
        if !text.is_empty() {
            self.flush_surrogate();
            self.bytes.extend_from_slice(text);
        }
    }

    fn handle_word(&mut self, name: &str, parameter: Option<i32>) {
        if self.begins_group {
            let outer = self.state.destination;
            self.state.destination = outer.enter(name, self.is_optional);
            if self.state.destination != outer {
                self.start_destination();
                return;
            }
        }
        let value = parameter.unwrap_or(0);
        match name {
            "u" if parameter.is_some() => self.push_code_unit(value),
            "uc" => self.state.fallback_count = u8::try_from(value).unwrap_or(1),
            "ansicpg" => {
                self.set_default_encoding(u32::try_from(value).ok().and_then(find_encoding))
            }
            "mac" => self.set_default_encoding(find_encoding(10000)),
            "f" => self.select_font(value),
            "fcharset" => self.set_font_charset(value),
            "deleted" => {
                self.flush();
                self.state.is_deleted = parameter != Some(0);
            }
            "plain" => {
                self.flush();
                self.state.encoding = self.default_encoding;
                self.state.is_deleted = false;
            }
            "yr" => self.date.year = value.into(),
            "mo" => self.date.month = value.into(),
            "dy" => self.date.day = value.into(),
            "hr" => self.date.hour = value.into(),
            "min" => self.date.minute = value.into(),
            "sec" => self.date.second = value.into(),
            _ => self.handle_symbol(name),
        }
    }

    /// A control word that represents a character or a break.
    fn handle_symbol(&mut self, name: &str) {
        let character = match name {
            "emdash" => "—",
            "endash" => "–",
            "lquote" => "‘",
            "rquote" => "’",
            "ldblquote" => "“",
            "rdblquote" => "”",
            "bullet" => "•",
            "emspace" | "enspace" | "qmspace" => " ",
            _ => "",
        };
        if !character.is_empty() {
            return self.push_characters(character);
        }
        let separator = match name {
            "par" | "line" | "row" | "nestrow" => Separator::Line,
            "sect" | "page" => Separator::Paragraph,
            "tab" | "cell" | "nestcell" => Separator::Tab,
            _ => return,
        };
        self.flush();
        if let Some(text) = self.visible_text() {
            text.separate(separator);
        }
    }

    fn push_code_unit(&mut self, value: i32) {
        self.flush_bytes();
        self.skip_count = self.state.fallback_count;
        // Values from 0x8000 on are written as negative numbers.
        let unit = (value & 0xffff) as u16;
        let high = self.high_surrogate.take();
        if (0xd800..0xdc00).contains(&unit) {
            self.high_surrogate = Some(unit);
            return;
        }
        let units = high.into_iter().chain([unit]);
        let decoded: String = char::decode_utf16(units)
            .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        self.push_decoded(&decoded);
    }

    fn push_characters(&mut self, characters: &str) {
        self.flush();
        self.push_decoded(characters);
    }

    fn flush(&mut self) {
        self.flush_bytes();
        self.flush_surrogate();
    }

    /// Replaces a high surrogate without a low surrogate.
    fn flush_surrogate(&mut self) {
        if self.high_surrogate.take().is_some() {
            self.push_decoded("\u{fffd}");
        }
    }

    fn flush_bytes(&mut self) {
        if !self.bytes.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            let text = self.state.encoding.decode_without_bom_handling(&bytes).0;
            self.push_decoded(&text);
            self.bytes = bytes;
            self.bytes.clear();
        }
    }

    fn push_decoded(&mut self, text: &str) {
        match self.state.destination {
            Destination::Property(_) if self.property.len() < PROPERTY_BYTES_MAX => {
                self.property.push_str(text);
            }
            _ => {
                if let Some(visible) = self.visible_text() {
                    visible.push_words(text);
                }
            }
        }
    }

    /// Returns the text to which the current group belongs.
    fn visible_text(&mut self) -> Option<&mut FlowBuilder> {
        match self.state.destination {
            _ if self.state.is_deleted => None,
            Destination::Body | Destination::Inline => Some(&mut self.body),
            Destination::Block => Some(&mut self.blocks),
            Destination::Fonts
            | Destination::Properties
            | Destination::Property(_)
            | Destination::Skipped => None,
        }
    }

    fn start_destination(&mut self) {
        match self.state.destination {
            Destination::Property(_) => {
                self.property.clear();
                self.date = CalendarTime {
                    month: 1,
                    day: 1,
                    ..CalendarTime::default()
                };
            }
            Destination::Block => self.blocks.separate(Separator::Line),
            _ => {}
        }
    }

    fn set_property(&mut self, property: Property) {
        let text = std::mem::take(&mut self.property);
        let metadata = &mut self.document.metadata;
        match property {
            Property::Title => self.document.title = clean_property(&text),
            Property::Author => metadata.author = clean_property(&text),
            Property::Subject => metadata.subject = clean_property(&text),
            Property::Keywords => append_keywords(&mut metadata.keywords, &text),
            Property::Description => metadata.description = clean_property(&text),
            Property::Created if self.date.is_valid() => {
                metadata.date_ms = Some(self.date.to_unix_ms());
            }
            Property::Created => {}
        }
    }

    fn set_default_encoding(&mut self, encoding: Option<&'static Encoding>) {
        self.flush();
        self.default_encoding = encoding.unwrap_or(WINDOWS_1252);
        self.state.encoding = self.default_encoding;
    }

    fn select_font(&mut self, font: i32) {
        self.flush();
        if self.state.destination == Destination::Fonts {
            self.font = font;
            return;
        }
        let known = self
            .fonts
            .binary_search_by_key(&font, |(font, _)| *font)
            .ok();
        let encoding = known.and_then(|index| self.fonts.get(index));
        self.state.encoding = encoding.map_or(self.default_encoding, |(_, encoding)| encoding);
    }

    /// Sets the encoding of the font whose entry is being read.
    fn set_font_charset(&mut self, charset: i32) {
        if self.state.destination != Destination::Fonts || self.fonts.len() >= FONTS_MAX {
            return;
        }
        let Some(encoding) = find_charset_encoding(charset) else {
            return;
        };
        if let Err(index) = self
            .fonts
            .binary_search_by_key(&self.font, |(font, _)| *font)
        {
            self.fonts.insert(index, (self.font, encoding));
        }
    }

    fn finish(mut self) -> ExtractedDocument {
        self.flush();
        let blocks = self.blocks.finish();
        self.body.start_section();
        self.body.push_verbatim(&blocks.text);
        let text = self.body.finish();
        let mut document = self.document;
        document.truncated = text.truncated || blocks.truncated;
        document.text = text.text;
        document
    }
}

#[cfg(test)]
mod tests;
