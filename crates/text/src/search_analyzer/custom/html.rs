//! The text of HTML: the character filter `htmlStrip`.

use std::convert::Infallible;
use std::ops::Range;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::filtered_text::Rewrite;

/// Elements within a line of text. The tags of all others separate words.
const INLINE: [&str; 35] = [
    "a", "abbr", "acronym", "b", "basefont", "bdo", "big", "cite", "code", "dfn", "em", "font",
    "i", "img", "input", "kbd", "label", "mark", "q", "s", "samp", "select", "small", "span",
    "strike", "strong", "sub", "sup", "textarea", "tt", "u", "var", "wbr", "ins", "del",
];

/// Elements whose content is not text.
const WITHOUT_TEXT: [&str; 2] = ["script", "style"];

/// The longest name of an entity has 33 bytes.
const ENTITY_BYTES_MAX: usize = 40;

/// Removes everything but the text and the tags that are ignored.
pub fn strip(text: &str, ignored_tags: &[String], target: &mut Rewrite<'_>) {
    // The stripper is called for each part of the text in order.
    let mut stripper = Stripper {
        text,
        ignored_tags,
        target,
        hidden: None,
        tag: Vec::new(),
        tag_start: 0,
    };
    let mut emitter = CallbackEmitter::new(
        |event: CallbackEvent<'_>, span: Span<usize>| -> Option<Infallible> {
            stripper.event(&event, span.start..span.end);
            None
        },
    );
    emitter.naively_switch_states(true);
    // There are no tokens: the emitter receives all events.
    let None = Tokenizer::new_with_emitter(text, emitter).next();
}

struct Stripper<'s, 't> {
    text: &'s str,
    ignored_tags: &'s [String],
    target: &'s mut Rewrite<'t>,
    /// The start of an element without text.
    hidden: Option<usize>,
    /// The name and the start of the tag that is being read.
    tag: Vec<u8>,
    tag_start: usize,
}

impl Stripper<'_, '_> {
    fn event(&mut self, event: &CallbackEvent<'_>, span: Range<usize>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.clear();
                self.tag.extend_from_slice(name);
                self.tag_start = span.start;
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let name = std::mem::take(&mut self.tag);
                let is_hidden = is_among(&WITHOUT_TEXT, &name) && !self_closing;
                if is_hidden && self.hidden.is_none() {
                    self.hidden = Some(self.tag_start);
                } else {
                    self.remove_tag(&name, self.tag_start..span.end);
                }
                self.tag = name;
            }
            CallbackEvent::EndTag { name } => match self.hidden.take() {
                Some(start) if is_among(&WITHOUT_TEXT, name) => {
                    self.target.replace(start..span.end, "\n");
                }
                hidden => {
                    self.hidden = hidden;
                    self.remove_tag(name, span);
                }
            },
            CallbackEvent::String { value } => self.string(value, span),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } => self.remove(span, ""),
            CallbackEvent::AttributeName { .. }
            | CallbackEvent::AttributeValue { .. }
            | CallbackEvent::Error(_) => {}
        }
    }

    fn remove_tag(&mut self, name: &[u8], range: Range<usize>) {
        let is_ignored = |tag: &String| tag.as_bytes().eq_ignore_ascii_case(name);
        if !self.ignored_tags.iter().any(is_ignored) {
            let replacement = if is_among(&INLINE, name) { "" } else { "\n" };
            self.remove(range, replacement);
        }
    }

    fn remove(&mut self, range: Range<usize>, replacement: &str) {
        if self.hidden.is_none() {
            self.target.replace(range, replacement);
        }
    }

    /// Replaces the entities of a string by what they stand for.
    fn string(&mut self, decoded: &[u8], range: Range<usize>) {
        let source = self.text.get(range.clone()).unwrap_or_default();
        if self.hidden.is_some() || source.as_bytes() == decoded {
            return;
        }
        let (mut rebuilt, mut copied, mut entities) = (String::new(), 0, Vec::new());
        for entity in entities_of(source) {
            let Some(character) = source.get(entity.clone()).and_then(decode) else {
                continue;
            };
            rebuilt.push_str(source.get(copied..entity.start).unwrap_or_default());
            rebuilt.push_str(&character);
            copied = entity.end;
            entities.push((entity, character));
        }
        rebuilt.push_str(source.get(copied..).unwrap_or_default());
        if rebuilt.as_bytes() != decoded {
            // An entity without a semicolon, or a character that the standard replaces.
            let decoded = String::from_utf8_lossy(decoded);
            return self.target.replace(range, &decoded);
        }
        for (entity, character) in entities {
            let entity = range.start + entity.start..range.start + entity.end;
            self.target.replace(entity, &character);
        }
    }
}

/// Returns the ranges from each ampersand to its semicolon.
fn entities_of(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices('&').filter_map(|(start, _)| {
        let rest = text.get(start..)?;
        let length = rest
            .bytes()
            .take(ENTITY_BYTES_MAX)
            .position(|byte| byte == b';')?;
        let is_one = !rest.get(1..length)?.contains('&');
        is_one.then_some(start..start + length + 1)
    })
}

/// Returns the text that an entity stands for.
fn decode(entity: &str) -> Option<String> {
    let mut decoded = None;
    let emitter = CallbackEmitter::new(
        |event: CallbackEvent<'_>, _: Span<usize>| -> Option<Infallible> {
            if let CallbackEvent::String { value } = event {
                decoded = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            None
        },
    );
    let None = Tokenizer::new_with_emitter(entity, emitter).next();
    decoded.filter(|decoded| decoded != entity)
}

fn is_among(names: &[&str], name: &[u8]) -> bool {
    names.iter().any(|one| one.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::strip;
    use crate::search_analyzer::custom::filtered_text::FilteredText;

    fn check(html: &str, ignored: &[&str], expected: &str) {
        let ignored: Vec<String> = ignored.iter().map(|tag| (*tag).to_owned()).collect();
        let mut text = FilteredText::new(html);
        text.rewrite(|text, target| strip(text, &ignored, target));
        assert_eq!(text.text(), expected, "of {html:?}");
    }

    #[test]
    fn tags_are_removed_and_entities_decoded() {
        check("no tags", &[], "no tags");
        check("a<b>b</b>c<p>d", &[], "abc\nd");
        check("<p class='x>y'>a</p>b", &[], "\na\nb");
        check("a &amp; b &lt;c&gt; &#233;t&eacute;", &[], "a & b <c> été");
        check("a<!-- <p>no</p> -->b<!DOCTYPE html>c", &[], "abc");
        check(
            "a<script>var p = '<p>';</script>b<style>p {}</style>",
            &[],
            "a\nb\n",
        );
        check(
            "&amp;amp; &unknown; &#0; a&b; x&ampy",
            &[],
            "&amp; &unknown; \u{fffd} a&b; x&y",
        );
        check("2 < 3 and 4 > 3", &[], "2 < 3 and 4 > 3");
        check(
            "a<br/>b <a href='x'>c</a> <i>d</i>",
            &["A"],
            "a\nb <a href='x'>c</a> d",
        );
        check("<p>open <unfinished", &[], "\nopen <unfinished");
        check("", &[], "");
    }
}
