//! The front matter of a Markdown document: YAML before the text, as used by static site generators
//! and note-taking programs.

use saphyr_parser::{Event, Parser};

use crate::metadata_text::{append_keywords, clean_property, parse_iso_date, parse_language};
use crate::output::ExtractedDocument;

/// The metadata in front matter.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FrontMatter {
    pub title: Option<String>,
    authors: Vec<String>,
    keywords: Vec<String>,
    description: Option<String>,
    date_ms: Option<i64>,
    language: Option<String>,
    /// All values except the title, one per line with their keys.
    pub text: String,
}

/// A mapping with its current key, or a sequence.
enum Level {
    Mapping(Option<String>),
    Sequence,
}

impl FrontMatter {
    /// Parses front matter. If it is not YAML, its source becomes the text.
    pub fn read(yaml: &str) -> FrontMatter {
        let mut found = FrontMatter::default();
        let mut levels = Vec::new();
        for event in Parser::new_from_str(yaml) {
            match event {
                Ok((event, _)) => found.read_event(event, &mut levels),
                Err(_) => {
                    found.text = yaml.trim().to_owned();
                    return found;
                }
            }
        }
        found
    }

    fn read_event(&mut self, event: Event<'_>, levels: &mut Vec<Level>) {
        match event {
            Event::MappingStart(..) => levels.push(Level::Mapping(None)),
            Event::SequenceStart(..) => levels.push(Level::Sequence),
            Event::MappingEnd | Event::SequenceEnd => {
                levels.pop();
                end_value(levels);
            }
            Event::Scalar(text, ..) => match levels.last_mut() {
                Some(Level::Mapping(key @ None)) => *key = Some(text.into_owned()),
                _ => {
                    self.read_value(levels, &text);
                    end_value(levels);
                }
            },
            Event::Alias(_) => end_value(levels),
            _ => {}
        }
    }

    fn read_value(&mut self, levels: &[Level], value: &str) {
        let mut keys = levels.iter().filter_map(|level| match level {
            Level::Mapping(key) => key.as_deref(),
            Level::Sequence => None,
        });
        let Some(value) = clean_property(value) else {
            return;
        };
        let Some(outermost) = keys.next() else {
            self.text.push_str(&format!("{value}\n"));
            return;
        };
        let innermost = keys.next_back().unwrap_or(outermost);
        match outermost.to_lowercase().as_str() {
            "title" => {
                self.title.get_or_insert(value);
                return;
            }
            "author" | "authors" | "creator" => self.authors.push(value.clone()),
            "tags" | "tag" | "keywords" | "keyword" | "categories" | "category" => {
                append_keywords(&mut self.keywords, &value);
            }
            "description" | "summary" | "abstract" => {
                self.description.get_or_insert_with(|| value.clone());
            }
            "date" | "created" | "published" => {
                self.date_ms = self.date_ms.or_else(|| parse_iso_date(&value));
            }
            "lang" | "language" => self.language = parse_language(&value),
            _ => {}
        }
        self.text.push_str(&format!("{innermost}: {value}\n"));
    }

    /// Adds the properties to the document.
    pub fn describe(self, document: &mut ExtractedDocument) {
        let metadata = &mut document.metadata;
        metadata.author = (!self.authors.is_empty()).then(|| self.authors.join(", "));
        metadata.keywords = self.keywords;
        metadata.description = self.description;
        metadata.date_ms = self.date_ms;
        document.language = self.language;
    }
}

/// The next scalar of the mapping is a key.
fn end_value(levels: &mut [Level]) {
    if let Some(Level::Mapping(key)) = levels.last_mut() {
        *key = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_and_all_other_values_are_read() {
        let found = FrontMatter::read(
            "title: FM One\nAuthor:\n  - Ada\n  - name: Grace\n    mail: g@x\ntags: [bread, \"rye, flour\"]\n\
             description: >\n  Long\n  text\ndate: 2022-02-02\nlang: de-AT\nempty:\naliases: [one]\n\
             deep: {a: {b: value}}\n",
        );
        assert_eq!(found.title.as_deref(), Some("FM One"));
        assert_eq!(
            found.text,
            "Author: Ada\nname: Grace\nmail: g@x\ntags: bread\ntags: rye, flour\ndescription: Long text\n\
             date: 2022-02-02\nlang: de-AT\naliases: one\nb: value\n"
        );
        let mut document = ExtractedDocument::new(crate::DocumentKind::Markdown, String::new());
        found.describe(&mut document);
        let metadata = document.metadata;
        assert_eq!(metadata.author.as_deref(), Some("Ada, Grace, g@x"));
        assert_eq!(metadata.keywords, ["bread", "rye", "flour"]);
        assert_eq!(metadata.description.as_deref(), Some("Long text"));
        assert_eq!(metadata.date_ms, Some(1_643_760_000_000));
        assert_eq!(document.language.as_deref(), Some("de"));
    }

    #[test]
    fn what_is_not_yaml_is_text() {
        for wrong in ["title: [one\nwords", "a: b: c", "}"] {
            let found = FrontMatter::read(wrong);
            assert_eq!(found.text, wrong.trim(), "{wrong}");
        }
        assert_eq!(FrontMatter::read("just words").text, "just words\n");
        let deep = "[".repeat(100_000);
        assert_eq!(FrontMatter::read(&deep).text, deep);
    }
}
