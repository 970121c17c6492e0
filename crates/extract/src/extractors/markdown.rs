//! Extracts title and text from Markdown.

use pulldown_cmark::{Event, MetadataBlockKind, Options, Parser, Tag, TagEnd};

use super::front_matter::FrontMatter;
use super::html;
use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

/// Parser events between two checks of the deadline.
const EVENTS_PER_CHECK: usize = 4096;

/// Extracts a Markdown document. The title is that of the front matter, or else the first heading.
/// The other values of the front matter become metadata, and text before that of the document.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let source = encoding::decode(input.bytes, limits.text_bytes_max);
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut reader = MarkdownReader::new(limits);
    for (number, event) in Parser::new_ext(&source.text, options).enumerate() {
        if number % EVENTS_PER_CHECK == 0 {
            limits.check_deadline()?;
        }
        reader.handle(event)?;
    }
    let mut document = reader.finish()?;
    document.truncated |= source.truncated;
    Ok(document)
}

struct MarkdownReader<'a> {
    limits: &'a Limits,
    text: TextBuilder,
    block: BlockKind,
    /// The lines of the current HTML block.
    html: String,
    heading: String,
    title: Option<String>,
    /// The lines of the front matter.
    yaml: String,
    front_matter: FrontMatter,
}

#[derive(PartialEq)]
enum BlockKind {
    Body,
    /// The first heading, which becomes the title.
    Heading,
    FrontMatter,
    Code,
}

impl<'a> MarkdownReader<'a> {
    fn new(limits: &'a Limits) -> Self {
        MarkdownReader {
            limits,
            text: TextBuilder::new(limits.text_bytes_max),
            block: BlockKind::Body,
            html: String::new(),
            heading: String::new(),
            title: None,
            yaml: String::new(),
            front_matter: FrontMatter::default(),
        }
    }

    fn handle(&mut self, event: Event<'_>) -> Result<(), ExtractError> {
        if !matches!(event, Event::Html(_)) {
            self.flush_html_block()?;
        }
        match event {
            Event::Start(tag) => self.start_block(&tag),
            Event::End(tag) => self.end_block(tag),
            Event::Text(text) => self.push_text(&text),
            Event::Code(text) => self.push_text(&text),
            Event::Html(html) => self.html.push_str(&html),
            Event::SoftBreak => self.text.separate(Separator::Space),
            Event::HardBreak => self.text.separate(Separator::Line),
            Event::Rule => self.text.separate(Separator::Paragraph),
            _ => {}
        }
        Ok(())
    }

    fn start_block(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { .. } if self.title.is_none() => self.block = BlockKind::Heading,
            Tag::MetadataBlock(MetadataBlockKind::YamlStyle) => self.block = BlockKind::FrontMatter,
            Tag::CodeBlock(_) => self.block = BlockKind::Code,
            _ => {}
        }
        self.text.separate(match tag {
            Tag::Paragraph | Tag::Heading { .. } | Tag::CodeBlock(_) | Tag::Table(_) => {
                Separator::Paragraph
            }
            Tag::Item | Tag::TableRow => Separator::Line,
            Tag::TableCell => Separator::Space,
            _ => Separator::None,
        });
    }

    fn end_block(&mut self, tag: TagEnd) {
        if matches!(tag, TagEnd::Heading(_)) && self.block == BlockKind::Heading {
            let title = std::mem::take(&mut self.heading).trim().to_string();
            self.title = Some(title).filter(|title| !title.is_empty());
        }
        if matches!(tag, TagEnd::MetadataBlock(_)) {
            self.read_front_matter();
        }
        match tag {
            TagEnd::Heading(_) | TagEnd::MetadataBlock(_) | TagEnd::CodeBlock => {
                self.block = BlockKind::Body;
                self.text.separate(Separator::Paragraph);
            }
            TagEnd::Paragraph | TagEnd::List(_) | TagEnd::Table => {
                self.text.separate(Separator::Paragraph)
            }
            _ => {}
        }
    }

    fn push_text(&mut self, text: &str) {
        match self.block {
            BlockKind::FrontMatter => self.yaml.push_str(text),
            BlockKind::Code => self.text.push_verbatim(text),
            BlockKind::Heading => {
                self.heading.push_str(text);
                self.text.push_words(text);
            }
            BlockKind::Body => self.text.push_words(text),
        }
    }

    fn read_front_matter(&mut self) {
        let mut found = FrontMatter::read(&std::mem::take(&mut self.yaml));
        self.title = found.title.take();
        self.text.push_verbatim(&std::mem::take(&mut found.text));
        self.front_matter = found;
    }

    fn flush_html_block(&mut self) -> Result<(), ExtractError> {
        if self.html.is_empty() {
            return Ok(());
        }
        let html = std::mem::take(&mut self.html);
        self.text.separate(Separator::Paragraph);
        self.text
            .push_verbatim(&html::extract_page(&html, self.limits)?.text);
        self.text.separate(Separator::Paragraph);
        Ok(())
    }

    fn finish(mut self) -> Result<ExtractedDocument, ExtractError> {
        self.flush_html_block()?;
        let text = self.text.finish();
        let mut document = ExtractedDocument::new(DocumentKind::Markdown, text.text);
        document.title = self.title;
        document.truncated = text.truncated;
        self.front_matter.describe(&mut document);
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(markdown: &str, title: Option<&str>, text: &str) {
        let document = extract(
            &Input {
                name: "",
                bytes: markdown.as_bytes(),
            },
            &Limits::default(),
        )
        .unwrap();
        assert_eq!(document.title.as_deref(), title, "{markdown}");
        assert_eq!(document.text, text, "{markdown}");
    }

    #[test]
    fn syntax_is_removed() {
        check(
            "# The *title*\n\nwords",
            Some("The title"),
            "The title\n\nwords",
        );
        check("a [link](http://x) ![alt](y)", None, "a link alt");
        check("a\nb  \nc", None, "a b\nc");
        check("- one\n- two\n\nend", None, "one\ntwo\n\nend");
        check(
            "```rust\nfn x() {\n  y\n}\n```\n`z`",
            None,
            "fn x() {\n  y\n}\n\n\nz",
        );
        check("| a | b |\n|---|---|\n| 1 | 2 |", None, "a b\n1 2");
        check(
            "---\ntitle: \"Front\"\n---\n# Heading",
            Some("Front"),
            "Heading",
        );
        check(
            "---\ntitle: \"Front\"\ntags: [x]\n---\n# Heading\n\nwords[^1]\n\n[^1]: note",
            Some("Front"),
            "tags: x\n\n\nHeading\n\nwords\n\nnote",
        );
        check(
            "<p align=center>\n<b>Html</b> &amp; text\n</p>\n\nmore",
            None,
            "Html & text\n\nmore",
        );
        check("a <b>c</b> d", None, "a c d");
        check("Setext\n======\nx", Some("Setext"), "Setext\n\nx");
        check("", None, "");
    }
}
