//! XMP, the XML metadata that is embedded in PDF files, pictures and others. Source: ISO 16684-1.

use crate::limits::Limits;
use crate::metadata_text::{append_keywords, clean_property, parse_iso_date, parse_language};
use crate::output::ExtractedDocument;
use crate::xml::{XmlEvent, XmlReader, decode_xml};

/// The maximum size of a packet.
const PACKET_BYTES_MAX: usize = 4 << 20;
/// The maximum number of parts of a property.
const PARTS_MAX: usize = 200;

/// Sets the missing metadata of a document. Damaged packets are ignored, because they are not part
/// of the text.
pub(crate) fn read_xmp(packet: &[u8], limits: &Limits, document: &mut ExtractedDocument) {
    if packet.len() > PACKET_BYTES_MAX {
        return;
    }
    let xml = decode_xml(packet);
    let mut reader = XmlReader::new("XMP", &xml, limits);
    let mut property: Option<Property> = None;
    while let Ok(Some(event)) = reader.next() {
        match event {
            XmlEvent::Start(element) => {
                if is_property(element.name()) && property.is_none() {
                    property = Some(Property::new(element.name()));
                } else if element.name() == "li" {
                    if let Some(property) = &mut property {
                        property.begin_part();
                    }
                } else if element.name() == "Description" {
                    // Simple properties can be attributes.
                    for name in ["CreateDate", "DateCreated", "Headline", "City", "Country"] {
                        if let Some(value) = element.prefixed_attribute(name) {
                            Property::from_value(name, value).apply(document);
                        }
                    }
                }
            }
            XmlEvent::Text(text) => {
                if let Some(part) = property.as_mut().and_then(|it| it.parts.last_mut()) {
                    part.push_str(&text);
                }
            }
            XmlEvent::End(name) => {
                if let Some(property) = property.take_if(|it| it.name == name) {
                    property.apply(document);
                }
            }
        }
    }
}

fn is_property(name: &str) -> bool {
    matches!(
        name,
        "title"
            | "creator"
            | "subject"
            | "description"
            | "language"
            | "CreateDate"
            | "DateCreated"
            | "Keywords"
            | "Headline"
            | "City"
            | "Country"
            | "Location"
    )
}

/// A property with the texts of its parts.
struct Property {
    name: String,
    parts: Vec<String>,
}

impl Property {
    fn new(name: &str) -> Self {
        Property::from_value(name, String::new())
    }

    fn from_value(name: &str, value: String) -> Self {
        Property {
            name: name.to_owned(),
            parts: vec![value],
        }
    }

    fn begin_part(&mut self) {
        if self.parts.len() < PARTS_MAX {
            self.parts.push(String::new());
        }
    }

    fn apply(self, document: &mut ExtractedDocument) {
        let parts: Vec<String> = self
            .parts
            .iter()
            .filter_map(|it| clean_property(it))
            .collect();
        // Language alternatives. The first one is the default.
        let Some(first) = parts.first() else {
            return;
        };
        let metadata = &mut document.metadata;
        match self.name.as_str() {
            "title" | "Headline" if document.title.is_none() => {
                document.title = Some(first.clone())
            }
            "creator" if metadata.author.is_none() => {
                metadata.author = clean_property(&parts.join(", "));
            }
            "subject" | "City" | "Country" | "Location" => {
                parts
                    .iter()
                    .for_each(|part| append_keywords(&mut metadata.keywords, part));
            }
            "Keywords" if metadata.keywords.is_empty() => {
                append_keywords(&mut metadata.keywords, first);
            }
            "description" if metadata.description.is_none() => {
                metadata.description = Some(first.clone());
            }
            "language" if document.language.is_none() => document.language = parse_language(first),
            "CreateDate" | "DateCreated" if metadata.date_ms.is_none() => {
                metadata.date_ms = parse_iso_date(first);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::DocumentKind;

    #[test]
    fn properties_are_read() {
        let packet = "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF><rdf:Description xmp:CreateDate='2024-05-06T00:00:00Z'>\
            <dc:title><rdf:Alt><rdf:li xml:lang='x-default'>A title</rdf:li><rdf:li>Ein Titel</rdf:li></rdf:Alt></dc:title>\
            <dc:creator><rdf:Seq><rdf:li>Ada</rdf:li><rdf:li>Bob</rdf:li></rdf:Seq></dc:creator>\
            <dc:subject><rdf:Bag><rdf:li>one</rdf:li><rdf:li>two</rdf:li></rdf:Bag></dc:subject>\
            <photoshop:City>Rome</photoshop:City></rdf:Description></rdf:RDF></x:xmpmeta>";
        let mut document = ExtractedDocument::new(DocumentKind::Pdf, String::new());
        read_xmp(packet.as_bytes(), &Limits::default(), &mut document);
        assert_eq!(document.title.as_deref(), Some("A title"));
        assert_eq!(document.metadata.author.as_deref(), Some("Ada, Bob"));
        assert_eq!(document.metadata.keywords, ["one", "two", "Rome"]);
        assert_eq!(document.metadata.date_ms, Some(1_714_953_600_000));
        read_xmp(b"<a><dc:title>x", &Limits::default(), &mut document);
    }
}
