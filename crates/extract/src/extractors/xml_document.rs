//! XML of any vocabulary: the text content. Titles, authors and dates are taken from elements with
//! common names: DocBook, TEI, AbiWord, Gnumeric, SVG and Dublin Core.

use crate::encoding;
use crate::error::ExtractError;
use crate::format::{Input, split_extension, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::{append_keywords, clean_property, parse_language, parse_written_date};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};
use crate::xml::{XmlElement, XmlEvent, XmlReader, decode_xml};

const FORMAT: &str = "XML document";
const DETECTION_BYTES: usize = 4096;
/// The maximum length of a title or author.
const PROPERTY_BYTES_MAX: usize = 1024;

/// Returns `true` if the file begins with an XML declaration, or if it has the extension of XML and
/// begins with an element.
pub(crate) fn is_xml(input: &Input<'_>) -> bool {
    let head = take_prefix(input.bytes, DETECTION_BYTES);
    let head = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    let is_named = split_extension(input.name).is_some_and(|it| it.eq_ignore_ascii_case("xml"));
    head.starts_with(b"<?xml") || (is_named && head.starts_with(b"<"))
}

/// Extracts a drawing.
pub(crate) fn extract_svg(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let xml = decode_xml(input.bytes);
    let mut reader = Reader::new(limits);
    reader.read(&xml, limits)?;
    Ok(reader.finish(DocumentKind::Image))
}

/// Extracts the text. Malformed XML is treated as plain text.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let xml = decode_xml(input.bytes);
    let mut reader = Reader::new(limits);
    match reader.read(&xml, limits) {
        Ok(()) if !reader.has_text => {}
        Ok(()) => return Ok(reader.finish(DocumentKind::Document)),
        Err(ExtractError::Deadline) => return Err(ExtractError::Deadline),
        Err(_) => {}
    }
    let decoded = encoding::decode_with(
        xml.as_bytes(),
        Some(encoding_rs::UTF_8),
        limits.text_bytes_max,
    );
    let mut document = ExtractedDocument::new(DocumentKind::Source, decoded.text);
    document.truncated = decoded.truncated;
    document.metadata.syntax = Some("xml".into());
    Ok(document)
}

struct Reader {
    text: TextBuilder,
    document: ExtractedDocument,
    has_text: bool,
    /// The open metadata element, and its text so far.
    property: Option<(String, String)>,
    authors: Vec<String>,
}

impl Reader {
    fn new(limits: &Limits) -> Self {
        Reader {
            text: TextBuilder::new(limits.text_bytes_max),
            document: ExtractedDocument::new(DocumentKind::Document, String::new()),
            has_text: false,
            property: None,
            authors: Vec::new(),
        }
    }

    fn read(&mut self, xml: &str, limits: &Limits) -> Result<(), ExtractError> {
        let mut reader = XmlReader::new(FORMAT, xml, limits);
        while !self.text.is_full()
            && let Some(event) = reader.next()?
        {
            match event {
                XmlEvent::Start(element) if is_hidden(&element) => reader.skip_element()?,
                XmlEvent::Start(element) => self.start(&element),
                XmlEvent::Text(words) => {
                    self.has_text |= !words.trim().is_empty();
                    if let Some((_, value)) = &mut self.property
                        && value.len() < PROPERTY_BYTES_MAX
                    {
                        value.push_str(&words);
                    }
                    self.text.push_words(&words);
                }
                XmlEvent::End(name) => self.end(&name),
            }
        }
        Ok(())
    }

    fn start(&mut self, element: &XmlElement<'_>) {
        let name = element.name();
        if self.document.language.is_none() {
            self.document.language = element
                .prefixed_attribute("lang")
                .and_then(|tag| parse_language(&tag));
        }
        if is_property(name) && self.property.is_none() {
            self.property = Some((name.to_owned(), String::new()));
        }
        self.text.separate(separator(name));
    }

    fn end(&mut self, name: &str) {
        self.text.separate(separator(name));
        let Some((open, value)) = self.property.take_if(|(open, _)| open == name) else {
            return;
        };
        let metadata = &mut self.document.metadata;
        let Some(value) = clean_property(&value) else {
            return;
        };
        match open.as_str() {
            "title" | "titleproper" if self.document.title.is_none() => {
                self.document.title = Some(value);
            }
            "author" | "creator" if !self.authors.contains(&value) => self.authors.push(value),
            "keyword" | "subject" | "keywords" => append_keywords(&mut metadata.keywords, &value),
            "date" | "pubdate" if metadata.date_ms.is_none() => {
                metadata.date_ms = parse_written_date(&value);
            }
            "language" => self.document.language = parse_language(&value),
            "desc" | "description" | "abstract" if metadata.description.is_none() => {
                metadata.description = Some(value);
            }
            _ => {}
        }
    }

    fn finish(mut self, kind: DocumentKind) -> ExtractedDocument {
        self.document.metadata.author = clean_property(&self.authors.join(", "));
        let text = self.text.into_document(kind, false);
        ExtractedDocument {
            kind,
            text: text.text,
            truncated: text.truncated,
            ..self.document
        }
    }
}

/// Returns `true` for elements whose text is not meant to be read.
fn is_hidden(element: &XmlElement<'_>) -> bool {
    matches!(
        element.name(),
        "style" | "script" | "binary" | "d" | "namedview"
    )
}

fn is_property(name: &str) -> bool {
    matches!(
        name,
        "title"
            | "titleproper"
            | "author"
            | "creator"
            | "keyword"
            | "keywords"
            | "subject"
            | "date"
            | "pubdate"
            | "language"
            | "desc"
            | "description"
            | "abstract"
    )
}

/// Inline elements, which do not separate words: those of DocBook, TEI, AbiWord and SVG.
fn separator(name: &str) -> Separator {
    match name {
        "emphasis" | "literal" | "command" | "filename" | "option" | "a" | "b" | "i" | "c"
        | "em" | "tspan" | "hi" | "span" | "code" | "ulink" | "link" | "quote" | "sub" | "sup"
        | "subscript" | "superscript" | "systemitem" | "varname" | "function" | "acronym"
        | "productname" | "application" | "classname" | "userinput" | "strong" | "u" | "tt" => {
            Separator::None
        }
        "firstname" | "surname" | "personname" | "othername" | "td" | "entry" | "cell" => {
            Separator::Space
        }
        "para" | "p" | "sect1" | "sect2" | "section" | "chapter" | "title" | "desc" => {
            Separator::Paragraph
        }
        _ => Separator::Line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::extract_documents;

    fn check(name: &str, xml: &str, kind: DocumentKind, text: &str) -> ExtractedDocument {
        let mut documents = extract_documents(name, xml.as_bytes());
        let document = documents.remove(0);
        assert_eq!(
            (document.kind, document.text.as_str()),
            (kind, text),
            "{xml}"
        );
        document
    }

    #[test]
    fn documents_are_read() {
        let document = check(
            "a.xml",
            "<?xml version='1.0'?><!DOCTYPE book><book xml:lang='de'><info><title>A <emphasis>book</emphasis></title>\
             <author><firstname>Ada</firstname> <surname>Lovelace</surname></author></info>\
             <chapter><title>One</title><para>Words &amp; <literal>co</literal>de.</para></chapter></book>",
            DocumentKind::Document,
            "A book\n\nAda Lovelace\n\nOne\n\nWords & code.",
        );
        assert_eq!(document.title.as_deref(), Some("A book"));
        assert_eq!(document.metadata.author.as_deref(), Some("Ada Lovelace"));
        assert_eq!(document.language.as_deref(), Some("de"));
        check(
            "a",
            "<?xml version='1.0'?><x a='b'/>",
            DocumentKind::Source,
            "<?xml version='1.0'?><x a='b'/>",
        );
        check("a.xml", "<a>b</c>", DocumentKind::Source, "<a>b</c>");
    }

    #[test]
    fn drawings_are_read() {
        let svg = "<svg xmlns='http://www.w3.org/2000/svg'><title>A map</title><desc>Of roads</desc><style>x</style>\
            <text id='no'>North <tspan>Str</tspan>eet</text></svg>";
        let document = check(
            "a.svg",
            svg,
            DocumentKind::Image,
            "A map\n\nOf roads\n\nNorth Street",
        );
        assert_eq!(document.title.as_deref(), Some("A map"));
        assert_eq!(document.metadata.description.as_deref(), Some("Of roads"));
    }
}
