//! News feeds: RSS and Atom. Sources: <https://www.rssboard.org/rss-specification>, RFC 4287.

use super::html;
use crate::error::ExtractError;
use crate::format::{Input, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::{clean_property, parse_language, parse_written_date};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};
use crate::xml::{XmlEvent, XmlReader, decode_xml};

const DETECTION_BYTES: usize = 2048;

/// Returns `true` if the root element is that of a feed.
pub(crate) fn is_feed(input: &Input<'_>) -> bool {
    let head = take_prefix(input.bytes, DETECTION_BYTES);
    let contains = |tag: &[u8]| memchr::memmem::find(head, tag).is_some();
    head.trim_ascii_start().starts_with(b"<")
        && (contains(b"<rss")
            || contains(b"http://www.w3.org/2005/Atom")
            || contains(b"<rdf:RDF") && contains(b"purl.org/rss"))
}

/// Extracts the titles and texts of the entries.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let xml = decode_xml(input.bytes);
    let mut reader = XmlReader::new("feed", &xml, limits);
    let mut text = TextBuilder::new(limits.text_bytes_max);
    let mut document = ExtractedDocument::new(DocumentKind::Feed, String::new());
    while !text.is_full()
        && let Some(event) = reader.next()?
    {
        let XmlEvent::Start(element) = event else {
            continue;
        };
        match element.name() {
            "item" | "entry" => text.separate(Separator::Paragraph),
            "title" => {
                let title = extract_markup(&reader.read_element_text()?, limits)?;
                if document.title.is_none() {
                    document.title = clean_property(&title);
                }
                push(&mut text, &title);
            }
            "description" | "summary" | "content" | "encoded" => {
                let content = extract_markup(&reader.read_element_text()?, limits)?;
                push(&mut text, &content);
            }
            "author" | "creator" | "category" => {
                let words = reader.read_element_text()?;
                push(&mut text, &words);
            }
            "language" => document.language = parse_language(&reader.read_element_text()?),
            "pubDate" | "updated" | "lastBuildDate" | "date" => {
                let date = parse_written_date(&reader.read_element_text()?);
                document.metadata.date_ms = document.metadata.date_ms.max(date);
            }
            _ => {}
        }
    }
    let text = text.into_document(DocumentKind::Feed, false);
    document.text = text.text;
    document.truncated = text.truncated;
    Ok(document)
}

/// Returns the text of an HTML value.
fn extract_markup(value: &str, limits: &Limits) -> Result<String, ExtractError> {
    if !value.contains(['<', '&']) {
        return Ok(value.to_owned());
    }
    Ok(html::extract_page(value, limits)?.text)
}

fn push(text: &mut TextBuilder, words: &str) {
    text.separate(Separator::Line);
    text.push_verbatim(words.trim());
    text.separate(Separator::Line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::extract_documents;

    #[test]
    fn feeds_are_read() {
        let rss = "<?xml version='1.0'?><rss version='2.0'><channel><title>News</title><language>de-de</language>\
            <item><title>One &amp;amp; two</title><link>http://x</link><pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate>\
            <description>&lt;p&gt;Some &lt;b&gt;words&lt;/b&gt;</description></item></channel></rss>";
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>News</title><entry><title>One</title>\
            <updated>2024-05-06T00:00:00Z</updated><content type='html'><![CDATA[<p>Words]]></content></entry></feed>";
        for (name, xml, text) in [
            ("a.rss", rss, "News\n\nOne & two\nSome words"),
            ("a.xml", atom, "News\n\nOne\nWords"),
        ] {
            let documents = extract_documents(name, xml.as_bytes());
            let document = &documents[0];
            assert_eq!(
                (document.kind, document.text.as_str()),
                (DocumentKind::Feed, text)
            );
            assert_eq!(document.title.as_deref(), Some("News"));
            assert_eq!(document.metadata.date_ms, Some(1_714_953_600_000));
        }
    }
}
