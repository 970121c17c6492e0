//! Extracts title and text from Markdown.

use pulldown_cmark::{Event, MetadataBlockKind, Options, Parser, Tag, TagEnd};

use crate::document::{Extracted, Kind};
use crate::encoding;
use crate::error::ExtractError;
use crate::flow::{Flow, Gap};
use crate::html;
use crate::limits::Limits;

const EVENTS_PER_CHECK: usize = 4096;

/// Reads a Markdown document. The title is that of the front matter, otherwise the first heading.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Extracted, ExtractError> {
    let (source, cut) = encoding::decode(bytes, limits.text_bytes_max);
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut reader = Reader::new(limits);
    for (number, event) in Parser::new_ext(&source, options).enumerate() {
        if number % EVENTS_PER_CHECK == 0 {
            limits.check_deadline()?;
        }
        reader.event(event)?;
    }
    reader.finish(cut)
}

struct Reader<'a> {
    limits: &'a Limits,
    flow: Flow,
    place: Place,
    /// Lines of an HTML block, which is read when it is complete.
    html: String,
    heading: String,
    title: Option<String>,
}

#[derive(PartialEq)]
enum Place {
    Body,
    /// The first heading, which becomes the title.
    Heading,
    FrontMatter,
    Code,
}

impl<'a> Reader<'a> {
    fn new(limits: &'a Limits) -> Self {
        Reader {
            limits,
            flow: Flow::new(limits.text_bytes_max),
            place: Place::Body,
            html: String::new(),
            heading: String::new(),
            title: None,
        }
    }

    fn event(&mut self, event: Event<'_>) -> Result<(), ExtractError> {
        if !matches!(event, Event::Html(_)) {
            self.html_block()?;
        }
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.text(&text),
            Event::Html(html) => self.html.push_str(&html),
            Event::SoftBreak => self.flow.gap(Gap::Space),
            Event::HardBreak => self.flow.gap(Gap::Line),
            Event::Rule => self.flow.gap(Gap::Paragraph),
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { .. } if self.title.is_none() => self.place = Place::Heading,
            Tag::MetadataBlock(MetadataBlockKind::YamlStyle) => self.place = Place::FrontMatter,
            Tag::CodeBlock(_) => self.place = Place::Code,
            _ => {}
        }
        self.flow.gap(match tag {
            Tag::Paragraph | Tag::Heading { .. } | Tag::CodeBlock(_) | Tag::Table(_) => {
                Gap::Paragraph
            }
            Tag::Item | Tag::TableRow => Gap::Line,
            Tag::TableCell => Gap::Space,
            _ => Gap::Nothing,
        });
    }

    fn end(&mut self, tag: TagEnd) {
        if tag == TagEnd::Heading(heading_level(tag)) && self.place == Place::Heading {
            let title = std::mem::take(&mut self.heading).trim().to_string();
            self.title = Some(title).filter(|title| !title.is_empty());
        }
        match tag {
            TagEnd::Heading(_) | TagEnd::MetadataBlock(_) | TagEnd::CodeBlock => {
                self.place = Place::Body;
                self.flow.gap(Gap::Paragraph);
            }
            TagEnd::Paragraph | TagEnd::List(_) | TagEnd::Table => self.flow.gap(Gap::Paragraph),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        match self.place {
            Place::FrontMatter => self.front_matter(text),
            Place::Code => self.flow.verbatim(text),
            Place::Heading => {
                self.heading.push_str(text);
                self.flow.words(text);
            }
            Place::Body => self.flow.words(text),
        }
    }

    fn front_matter(&mut self, text: &str) {
        let value = text.lines().find_map(|line| line.strip_prefix("title:"));
        let title = value.map(|value| value.trim().trim_matches(['"', '\'']).to_string());
        self.title = title.filter(|title| !title.is_empty());
    }

    fn html_block(&mut self) -> Result<(), ExtractError> {
        if self.html.is_empty() {
            return Ok(());
        }
        let html = std::mem::take(&mut self.html);
        self.flow.gap(Gap::Paragraph);
        self.flow
            .verbatim(&html::read_text(&html, self.limits)?.text);
        self.flow.gap(Gap::Paragraph);
        Ok(())
    }

    fn finish(mut self, cut: bool) -> Result<Extracted, ExtractError> {
        self.html_block()?;
        let (text, truncated) = self.flow.finish();
        let mut document = Extracted::new(Kind::Markdown, text);
        document.title = self.title;
        document.truncated = truncated || cut;
        Ok(document)
    }
}

/// The level of a heading's end tag. Other tags return an arbitrary level.
fn heading_level(tag: TagEnd) -> pulldown_cmark::HeadingLevel {
    match tag {
        TagEnd::Heading(level) => level,
        _ => pulldown_cmark::HeadingLevel::H1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(markdown: &str, title: Option<&str>, text: &str) {
        let document = read(markdown.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(document.title.as_deref(), title, "{markdown}");
        assert_eq!(document.text, text, "{markdown}");
    }

    #[test]
    fn syntax_goes_and_text_stays() {
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
            "<p align=center>\n<b>Html</b> &amp; text\n</p>\n\nmore",
            None,
            "Html & text\n\nmore",
        );
        check("a <b>c</b> d", None, "a c d");
        check("Setext\n======\nx", Some("Setext"), "Setext\n\nx");
        check("", None, "");
    }
}
