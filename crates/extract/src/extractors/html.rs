//! Extracts title and text from HTML. Works on the token stream: without a tree, nested elements
//! cannot exhaust the stack.

use std::borrow::Cow;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, Tokenizer};

use crate::encoding;
use crate::error::ExtractError;
use crate::format::{Input, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::{append_keywords, clean_property, parse_language};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

/// Tokens between two checks of the deadline.
const TOKENS_PER_CHECK: u32 = 4096;
/// Bytes that are searched for the first element.
const DETECTION_BYTES: usize = 4096;
const TITLE_BYTES_MAX: usize = 1024;

/// Returns `true` if the file begins with a doctype or one of the outermost elements, after white
/// space, comments and XML declarations.
pub(crate) fn is_html(input: &Input<'_>) -> bool {
    let mut rest = take_prefix(input.bytes, DETECTION_BYTES);
    rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
    loop {
        rest = rest.trim_ascii_start();
        let end: &[u8] = match rest {
            _ if starts_with_ignoring_case(rest, b"<!--") => b"-->",
            _ if starts_with_ignoring_case(rest, b"<?xml") => b"?>",
            _ => break,
        };
        let Some(at) = memchr::memmem::find(rest, end) else {
            return false;
        };
        rest = rest.get(at + end.len()..).unwrap_or_default();
    }
    const STARTS: [&[u8]; 4] = [b"<!doctype html", b"<html", b"<head", b"<body"];
    STARTS
        .iter()
        .any(|start| starts_with_ignoring_case(rest, start))
}

/// Extracts from a page in any encoding.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    // Text is a small part of a page, so the page may be longer than the text limit.
    let page_bytes_max = limits.text_bytes_max.saturating_mul(8);
    let encoding = encoding::find_declared_encoding(input.bytes);
    let page = encoding::decode_with(input.bytes, encoding, page_bytes_max);
    let mut document = extract_page(&page.text, limits)?;
    document.truncated |= page.truncated;
    Ok(document)
}

/// Extracts from a decoded page or a part of one.
pub(crate) fn extract_page(page: &str, limits: &Limits) -> Result<ExtractedDocument, ExtractError> {
    let mut reader = HtmlReader::new(limits);
    let mut emitter =
        CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| reader.handle(event));
    emitter.naively_switch_states(true);
    // The callback only returns a value in order to stop, so the first returned value ends the
    // loop.
    let _stop = Tokenizer::new_with_emitter(page, WithoutErrors(emitter)).next();
    limits.check_deadline()?;
    Ok(reader.finish())
}

fn starts_with_ignoring_case(bytes: &[u8], start: &[u8]) -> bool {
    bytes
        .get(..start.len())
        .is_some_and(|first| first.eq_ignore_ascii_case(start))
}

/// An emitter that does not report errors of the page. Detecting characters that are errors takes a
/// tenth of the tokenizer's time.
struct WithoutErrors<E>(E);

impl<E: Emitter> ForwardingEmitter for WithoutErrors<E> {
    type Token = E::Token;

    fn inner(&mut self) -> &mut impl Emitter<Token = Self::Token> {
        &mut self.0
    }

    #[inline]
    fn should_emit_errors(&mut self) -> bool {
        false
    }
}

/// Converts bytes of the page to text. Checking whether text is valid is faster than decoding it
/// with replacement.
fn to_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// A value of the tokenizer's callback, which ends the parsing.
struct StopParsing;

struct HtmlReader<'a> {
    limits: &'a Limits,
    text: TextBuilder,
    title: TextBuilder,
    title_state: TitleState,
    hidden_element: Option<HiddenElement>,
    /// The number of open elements that preserve white space.
    preformatted_depth: u32,
    element: Element,
    attribute: AttributeKind,
    meta_name: String,
    meta_content: String,
    author: Option<String>,
    description: Option<String>,
    keywords: Vec<String>,
    language: Option<String>,
    tokens: u32,
}

/// An open element whose content is not text.
struct HiddenElement {
    name: Vec<u8>,
    /// The number of open elements of this name, since they can be nested.
    depth: u32,
}

#[derive(PartialEq)]
enum TitleState {
    Before,
    Within,
    After,
}

/// The elements whose attributes are read.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    Html,
    Meta,
    Image,
    Other,
}

#[derive(Clone, Copy, PartialEq)]
enum AttributeKind {
    Lang,
    Name,
    Content,
    Alt,
    Other,
}

impl<'a> HtmlReader<'a> {
    fn new(limits: &'a Limits) -> Self {
        HtmlReader {
            limits,
            text: TextBuilder::new(limits.text_bytes_max),
            title: TextBuilder::new(TITLE_BYTES_MAX),
            title_state: TitleState::Before,
            hidden_element: None,
            preformatted_depth: 0,
            element: Element::Other,
            attribute: AttributeKind::Other,
            meta_name: String::new(),
            meta_content: String::new(),
            author: None,
            description: None,
            keywords: Vec::new(),
            language: None,
            tokens: 0,
        }
    }

    fn handle(&mut self, event: CallbackEvent<'_>) -> Option<StopParsing> {
        match event {
            CallbackEvent::OpenStartTag { name } => self.start_element(name),
            CallbackEvent::AttributeName { name } => {
                self.attribute = classify_attribute(self.element, name)
            }
            CallbackEvent::AttributeValue { value } => self.read_attribute(&to_text(value)),
            CallbackEvent::CloseStartTag { .. } => self.finish_start_tag(),
            CallbackEvent::EndTag { name } => self.end_element(name),
            CallbackEvent::String { value } => self.read_text(&to_text(value)),
            _ => {}
        }
        self.tokens = self.tokens.wrapping_add(1);
        let late =
            self.tokens.is_multiple_of(TOKENS_PER_CHECK) && self.limits.check_deadline().is_err();
        (late || self.text.is_full()).then_some(StopParsing)
    }

    fn start_element(&mut self, name: &[u8]) {
        self.element = Element::Other;
        if let Some(hidden) = &mut self.hidden_element {
            hidden.depth += u32::from(hidden.name == name);
            return;
        }
        match name {
            b"script" | b"style" | b"noscript" | b"template" | b"iframe" | b"object" => {
                self.hidden_element = Some(HiddenElement {
                    name: name.to_vec(),
                    depth: 1,
                });
            }
            b"title" if self.title_state == TitleState::Before => {
                self.title_state = TitleState::Within;
            }
            b"pre" | b"textarea" => self.preformatted_depth += 1,
            b"html" => self.element = Element::Html,
            b"meta" => self.element = Element::Meta,
            b"img" => self.element = Element::Image,
            _ => {}
        }
        self.text.separate(find_separator(name));
    }

    fn end_element(&mut self, name: &[u8]) {
        if let Some(hidden) = &mut self.hidden_element {
            hidden.depth -= u32::from(hidden.name == name);
            if hidden.depth == 0 {
                self.hidden_element = None;
            }
            return;
        }
        match name {
            b"title" if self.title_state == TitleState::Within => {
                self.title_state = TitleState::After;
            }
            b"pre" | b"textarea" => {
                self.preformatted_depth = self.preformatted_depth.saturating_sub(1)
            }
            _ => {}
        }
        self.text.separate(find_separator(name));
    }

    fn read_attribute(&mut self, value: &str) {
        match self.attribute {
            AttributeKind::Lang => self.language = parse_language(value),
            AttributeKind::Name => self.meta_name = value.to_ascii_lowercase(),
            AttributeKind::Content => self.meta_content = value.trim().to_string(),
            AttributeKind::Alt if self.hidden_element.is_none() => {
                self.text.separate(Separator::Space);
                self.text.push_words(value);
                self.text.separate(Separator::Space);
            }
            AttributeKind::Alt | AttributeKind::Other => {}
        }
        self.attribute = AttributeKind::Other;
    }

    /// Called after all attributes of a start tag.
    fn finish_start_tag(&mut self) {
        if self.element == Element::Meta {
            let name = std::mem::take(&mut self.meta_name);
            let content = std::mem::take(&mut self.meta_content);
            match name.as_str() {
                "author" | "dc.creator" if !content.is_empty() => {
                    self.author.get_or_insert(content);
                }
                "keywords" => append_keywords(&mut self.keywords, &content),
                "description" if self.description.is_none() => {
                    self.description = clean_property(&content);
                }
                _ => {}
            }
        }
    }

    fn read_text(&mut self, text: &str) {
        if self.hidden_element.is_some() {
            return;
        }
        if self.title_state == TitleState::Within {
            self.title.push_words(text);
        } else if self.preformatted_depth > 0 {
            self.text.push_verbatim(text);
        } else {
            self.text.push_words(text);
        }
    }

    fn finish(self) -> ExtractedDocument {
        let text = self.text.finish();
        let mut document = ExtractedDocument::new(DocumentKind::Html, text.text);
        document.title = Some(self.title.finish().text).filter(|title| !title.is_empty());
        document.truncated = text.truncated;
        document.language = self.language;
        document.metadata.author = self.author;
        document.metadata.description = self.description;
        document.metadata.keywords = self.keywords;
        document
    }
}

fn classify_attribute(element: Element, name: &[u8]) -> AttributeKind {
    match (element, name) {
        (Element::Html, b"lang" | b"xml:lang") => AttributeKind::Lang,
        (Element::Meta, b"name") => AttributeKind::Name,
        (Element::Meta, b"content") => AttributeKind::Content,
        (Element::Image, b"alt") => AttributeKind::Alt,
        _ => AttributeKind::Other,
    }
}

/// The separator before and after an element.
fn find_separator(element: &[u8]) -> Separator {
    match element {
        b"p" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"pre" | b"blockquote"
        | b"table" | b"ul" | b"ol" | b"dl" | b"hr" | b"section" | b"article" | b"header"
        | b"footer" | b"nav" | b"aside" | b"main" | b"figure" | b"form" | b"fieldset" | b"body" => {
            Separator::Paragraph
        }
        b"br" | b"div" | b"li" | b"dt" | b"dd" | b"tr" | b"address" | b"figcaption" | b"legend"
        | b"summary" | b"details" | b"caption" | b"option" | b"center" => Separator::Line,
        b"title" | b"td" | b"th" | b"button" | b"textarea" | b"input" | b"select" => {
            Separator::Space
        }
        _ => Separator::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: &[u8]) -> ExtractedDocument {
        extract(&Input { name: "", bytes }, &Limits::default()).unwrap()
    }

    #[test]
    fn only_visible_text_is_extracted() {
        let cases = [
            ("<p>One</p><p>Two", "One\n\nTwo"),
            ("a<b>b</b>c <i> d</i>", "abc d"),
            (
                "x<script>if (a<b) '</p>'</script>y<style>p{}</style>z",
                "xyz",
            ),
            ("<noscript>enable <b>it</b></noscript>kept", "kept"),
            ("<template><template>a</template>b</template>c", "c"),
            ("caf&eacute; &#x41;&amp;&lt;", "café A&<"),
            ("<ul><li>a<li>b</ul>c", "a\nb\n\nc"),
            ("<table><tr><td>1<td>2<tr><td>3</table>", "1 2\n3"),
            ("<pre>a\n  b</pre> c", "a\n  b\n\nc"),
            ("<!-- no --><img alt='A cat'>sat", "A cat sat"),
            ("a<br>b", "a\nb"),
            ("<p unclosed <b>x", "x"),
            ("a < b", "a < b"),
            ("", ""),
        ];
        for (html, expected) in cases {
            assert_eq!(page(html.as_bytes()).text, expected, "{html}");
        }
    }

    #[test]
    fn properties_are_read() {
        let document = page(
            b"<!DOCTYPE html><html lang=de-AT><head><title> A &amp; \n B</title>
            <meta name=Author content='Ada'><meta charset=latin1><meta name=keywords
            content='rye, old wheat'><meta name=keywords content='wheat'><meta name=description
            content='How to bake'></head><body>
            <svg><title>no</title></svg>Gr\xfc\xdfe",
        );
        assert_eq!(document.title.as_deref(), Some("A & B"));
        assert_eq!(document.metadata.author.as_deref(), Some("Ada"));
        assert_eq!(document.language.as_deref(), Some("de"));
        assert_eq!(document.metadata.keywords, ["rye", "old wheat", "wheat"]);
        let description = document.metadata.description;
        assert_eq!(description.as_deref(), Some("How to bake"));
        assert_eq!(document.text, "no Grüße");
    }

    #[test]
    fn the_declared_encoding_is_used_unless_the_bytes_are_utf8() {
        let cyrillic =
            b"<meta http-equiv=content-type content='text/html; charset=koi8-r'>\xd0\xd2";
        assert_eq!(page(cyrillic).text, "пр");
        assert_eq!(page("<meta charset='latin1'>grün".as_bytes()).text, "grün");
        assert_eq!(
            page(b"<?xml version='1.0' encoding='iso-8859-1'?><p>\xe9").text,
            "é"
        );
    }

    #[test]
    fn long_pages_are_cut() {
        let limits = Limits {
            text_bytes_max: 5,
            ..Limits::default()
        };
        let bytes = b"<p>one<p>two<p>three";
        let document = extract(&Input { name: "", bytes }, &limits).unwrap();
        assert_eq!((document.text.as_str(), document.truncated), ("one", true));
    }
}
