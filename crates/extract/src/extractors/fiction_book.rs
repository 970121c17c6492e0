//! FictionBook (FB2), a book as one XML file.
//! Source: <http://www.fictionbook.org/index.php/Eng:XML_Schema_Fictionbook_2.1>.

use crate::error::ExtractError;
use crate::format::{Input, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::{append_keywords, clean_property, parse_iso_date, parse_language};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{FlowBuilder, Separator};
use crate::xml::{XmlElement, XmlEvent, XmlReader, decode_xml};

const FORMAT: &str = "FictionBook";
/// Bytes that are searched for the first element.
const DETECTION_BYTES: usize = 1024;

/// Returns `true` if the root element is that of a book.
pub(crate) fn is_fiction_book(input: &Input<'_>) -> bool {
    let head = take_prefix(input.bytes, DETECTION_BYTES);
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.trim_ascii_start().starts_with(b"<")
        && memchr::memmem::find(head, b"<FictionBook").is_some()
}

/// Extracts the body and the notes.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let xml = decode_xml(input.bytes);
    let mut reader = XmlReader::new(FORMAT, &xml, limits);
    let mut document = ExtractedDocument::new(DocumentKind::Book, String::new());
    let mut text = FlowBuilder::new(limits.text_bytes_max);
    let mut has_root = false;
    while !text.is_full()
        && let Some(event) = reader.next()?
    {
        let XmlEvent::Start(element) = event else {
            continue;
        };
        match element.name() {
            "FictionBook" => has_root = true,
            "title-info" => read_properties(&mut reader, &mut document)?,
            "body" => append_body(&mut reader, &mut text)?,
            // Pictures and file properties are skipped.
            "binary" | "document-info" | "publish-info" | "src-title-info" => {
                reader.skip_element()?;
            }
            _ => {}
        }
    }
    if !has_root {
        return Err(ExtractError::malformed(FORMAT, "it has no root element"));
    }
    let text = text.finish();
    document.truncated = text.truncated;
    document.text = text.text;
    Ok(document)
}

fn append_body(reader: &mut XmlReader<'_>, text: &mut FlowBuilder) -> Result<(), ExtractError> {
    text.start_section();
    while !text.is_full()
        && let Some(event) = reader.next()?
    {
        match event {
            XmlEvent::Start(element) => start_element(element.name(), text),
            XmlEvent::Text(words) => text.push_words(&words),
            XmlEvent::End(name) => match &*name {
                "body" => break,
                "tr" => text.break_row(),
                "td" | "th" => text.end_cell(),
                _ => {}
            },
        }
    }
    Ok(())
}

fn start_element(name: &str, text: &mut FlowBuilder) {
    match name {
        "section" | "title" | "epigraph" | "poem" | "stanza" | "cite" | "table" => {
            text.start_section();
        }
        "p" | "v" | "subtitle" | "text-author" | "date" => text.start_paragraph(),
        "empty-line" => text.separate(Separator::Paragraph),
        "tr" => text.break_row(),
        "td" | "th" => text.start_cell(),
        _ => {}
    }
}

/// Reads the properties of the book, up to the end of their element.
fn read_properties(
    reader: &mut XmlReader<'_>,
    document: &mut ExtractedDocument,
) -> Result<(), ExtractError> {
    let mut authors = Vec::new();
    while let Some(event) = reader.next()? {
        let element = match event {
            XmlEvent::Start(element) => element,
            XmlEvent::End(name) if name == "title-info" => break,
            XmlEvent::End(_) | XmlEvent::Text(_) => continue,
        };
        match element.name() {
            "author" => authors.extend(read_name(reader)?),
            "translator" => reader.skip_element()?,
            _ => read_property(&element, reader, document)?,
        }
    }
    document.metadata.author = clean_property(&authors.join(", "));
    Ok(())
}

fn read_property(
    element: &XmlElement<'_>,
    reader: &mut XmlReader<'_>,
    document: &mut ExtractedDocument,
) -> Result<(), ExtractError> {
    let metadata = &mut document.metadata;
    match element.name() {
        "book-title" => document.title = clean_property(&reader.read_element_text()?),
        "lang" => document.language = parse_language(&reader.read_element_text()?),
        "keywords" | "genre" => {
            append_keywords(&mut metadata.keywords, &reader.read_element_text()?);
        }
        "annotation" => metadata.description = clean_property(&reader.read_element_text()?),
        "date" => {
            let value = element.attribute("value");
            let text = reader.read_element_text()?;
            let value = value.as_deref().and_then(parse_iso_date);
            metadata.date_ms = value.or_else(|| parse_iso_date(&text));
        }
        _ => {}
    }
    Ok(())
}

/// Returns the name of an author, which consists of several elements.
fn read_name(reader: &mut XmlReader<'_>) -> Result<Option<String>, ExtractError> {
    let mut name = String::new();
    while let Some(event) = reader.next()? {
        match event {
            XmlEvent::Start(element) => {
                let is_name = matches!(
                    element.name(),
                    "first-name" | "middle-name" | "last-name" | "nickname"
                );
                let text = reader.read_element_text()?;
                if is_name {
                    name.push(' ');
                    name.push_str(&text);
                }
            }
            XmlEvent::End(end) if end == "author" => break,
            XmlEvent::End(_) | XmlEvent::Text(_) => {}
        }
    }
    Ok(clean_property(&name))
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{build_zip, extract_documents, extract_outputs};

    const BOOK: &str = "<?xml version='1.0' encoding='windows-1251'?><FictionBook><description>\
        <title-info><genre>prose</genre><author><first-name>Лев</first-name>\
        <last-name>Толстой</last-name><id>7</id></author><book-title>Книга</book-title>\
        <annotation><p>О войне</p></annotation><keywords>мир, война</keywords>\
        <date value='1869-01-02'>1869</date><lang>ru</lang></title-info><document-info><author>\
        <nickname>scanner</nickname></author></document-info></description><body><title><p>Книга</p>\
        </title><section><title><p>Глава</p></title><p>Слова <emphasis>и</emphasis> дела.</p>\
        <empty-line/><poem><stanza><v>один</v><v>два</v></stanza></poem></section></body>\
        <body name='notes'><section><p>Сноска</p></section></body>\
        <binary id='c'>AAAA</binary></FictionBook>";

    #[test]
    fn books_are_read_in_any_encoding_with_their_properties() {
        let bytes = encoding_rs::WINDOWS_1251.encode(BOOK).0;
        let archive = build_zip(&[("a.fb2", &bytes)]);
        for (name, bytes) in [
            ("a.fb2", &bytes[..]),
            ("a.fb2.zip", &archive),
            ("a.xml", &bytes),
        ] {
            let [document] = &extract_documents(name, bytes)[..] else {
                panic!("{name}")
            };
            let text = "Книга\n\nГлава\n\nСлова и дела.\n\nодин\nдва\n\nСноска";
            assert_eq!(
                document.text,
                text.replace("Глава\n\n", "Глава\n"),
                "{name}"
            );
            assert_eq!(document.title.as_deref(), Some("Книга"));
            assert_eq!(document.language.as_deref(), Some("ru"));
            let metadata = &document.metadata;
            assert_eq!(metadata.author.as_deref(), Some("Лев Толстой"));
            assert_eq!(metadata.keywords, ["prose", "мир", "война"]);
            assert_eq!(metadata.description.as_deref(), Some("О войне"));
            assert_eq!(metadata.date_ms, Some(-3_187_123_200_000));
        }
    }

    #[test]
    fn damaged_books_fail() {
        for bytes in [&b"words"[..], b"<FictionBook><body><p>a</body>"] {
            let error = extract_outputs("a.fb2", bytes).1;
            assert_eq!(error.map_err(|error| error.code()), Err("malformed"));
        }
    }
}
