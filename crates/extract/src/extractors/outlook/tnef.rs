//! `winmail.dat` (TNEF), in which Outlook sends the body and attachments of a mail. Source:
//! MS-OXTNEF, <https://learn.microsoft.com/en-us/openspecs/exchange_server_protocols/ms-oxtnef>.
//!
//! ```text
//! 78 9f 3e 22 │ key (2) │ attributes
//! attribute   level: 1 message, 2 attachment │ identifier (4) │ length (4) │ data │ checksum (2)
//! properties  count (4), for each: type (2) │ identifier (2) │ name, if any │ value, filled to 4 bytes
//! ```

use std::sync::Arc;

use super::item::build_document;
use super::properties::{Properties, PropertyValue, id, kind};
use crate::error::ExtractError;
use crate::extractors::code_page::find_encoding;
use crate::format::extraction::{Extraction, Location};
use crate::limits::Limits;
use crate::output::MailReference;

const FORMAT: &str = "TNEF attachment";
const SIGNATURE_BYTES: usize = 6;
/// The maximum number of properties of an item, and of values of a property.
const PROPERTIES_MAX: u32 = 20_000;
const FIRST_NAMED_ID: u16 = 0x8000;
const MULTIPLE_VALUES: u16 = 0x1000;
const INTERFACE_ID_BYTES: usize = 16;

/// Identifiers of attributes.
const SUBJECT: u16 = 0x8004;
const BODY: u16 = 0x800c;
const ATTACHMENT_DATA: u16 = 0x800f;
const ATTACHMENT_TITLE: u16 = 0x8010;
const ATTACHMENT_START: u16 = 0x9002;
const MESSAGE_PROPERTIES: u16 = 0x9003;
const ATTACHMENT_PROPERTIES: u16 = 0x9005;
const CODE_PAGE: u16 = 0x9007;

/// Extracts the body, if present, and the attachments.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let item = Item::read(bytes, &extraction.limits)?;
    let document = build_document(&item.message, &[], &extraction.limits)?;
    let mut inner = location.clone();
    // If there is no text, only the containing mail is a document.
    if document.title.is_some() || !document.text.is_empty() {
        inner.mail = Some(Arc::new(MailReference {
            inner_path: location.inner_path.clone(),
            message_id: document.metadata.message_id.clone(),
        }));
        extraction.emit_document(location, document);
    }
    for (number, attachment) in item.attachments.iter().enumerate() {
        extraction.usage.count_member(&extraction.limits)?;
        let name = attachment
            .attachment_name()
            .unwrap_or_else(|| "part".to_string());
        if attachment.is_inline_image() {
            continue;
        }
        let member = format!("{}/{name}", number + 1);
        let mut member_location = extraction.member_location(&inner, &member);
        member_location.name = name;
        if let Some(bytes) = attachment.bytes(id::ATTACH_DATA) {
            extraction.extract_member(&member_location, bytes)?;
        }
    }
    Ok(())
}

/// A message with its attachments.
#[derive(Default)]
struct Item {
    message: Properties,
    attachments: Vec<Properties>,
}

impl Item {
    fn read(bytes: &[u8], limits: &Limits) -> Result<Self, ExtractError> {
        let mut item = Item::default();
        let mut reader = ByteReader(bytes);
        reader.take(SIGNATURE_BYTES);
        let mut encoding = None;
        let mut count = 0;
        while let Some(attribute) = read_attribute(&mut reader) {
            limits.check_deadline()?;
            count += 1;
            if attribute.id == CODE_PAGE {
                encoding = ByteReader(attribute.data).u32().and_then(find_encoding);
            }
            item.add(&attribute);
        }
        if count == 0 {
            return Err(ExtractError::malformed(FORMAT, "it has no attributes"));
        }
        item.message.encoding = encoding;
        item.message.read_code_page();
        for attachment in &mut item.attachments {
            attachment.encoding = item.message.encoding;
        }
        Ok(item)
    }

    fn add(&mut self, attribute: &Attribute<'_>) {
        let data = attribute.data;
        let text = || PropertyValue::Text8(data.to_vec());
        match attribute.id {
            SUBJECT => self.message.insert(id::SUBJECT, text()),
            BODY => self.message.insert(id::BODY, text()),
            MESSAGE_PROPERTIES => read_properties(data, &mut self.message),
            ATTACHMENT_START => self.attachments.push(Properties::default()),
            _ => {
                let Some(attachment) = self.attachments.last_mut() else {
                    return;
                };
                match attribute.id {
                    ATTACHMENT_TITLE => attachment.insert(id::ATTACH_FILE_NAME, text()),
                    ATTACHMENT_DATA => {
                        attachment.insert(id::ATTACH_DATA, PropertyValue::Binary(data.to_vec()));
                    }
                    ATTACHMENT_PROPERTIES => read_properties(data, attachment),
                    _ => {}
                }
            }
        }
    }
}

struct Attribute<'b> {
    id: u16,
    data: &'b [u8],
}

/// Returns the next attribute. Returns `None` at the end of a truncated file.
fn read_attribute<'b>(reader: &mut ByteReader<'b>) -> Option<Attribute<'b>> {
    reader.u8().filter(|level| (1..=2).contains(level))?;
    let id = reader.u16()?;
    let _type = reader.u16()?;
    let length = reader.u32()?;
    let data = reader.take(usize::try_from(length).ok()?)?;
    let _checksum = reader.u16();
    Some(Attribute { id, data })
}

/// Reads properties up to the first damaged one.
fn read_properties(bytes: &[u8], properties: &mut Properties) {
    let mut reader = ByteReader(bytes);
    let count = reader.u32().unwrap_or(0).min(PROPERTIES_MAX);
    for _ in 0..count {
        if read_property(&mut reader, properties).is_none() {
            break;
        }
    }
}

fn read_property(reader: &mut ByteReader<'_>, properties: &mut Properties) -> Option<()> {
    let kind = reader.u16()?;
    let id = reader.u16()?;
    if id >= FIRST_NAMED_ID {
        reader.take(INTERFACE_ID_BYTES)?;
        if reader.u32()? == 0 {
            reader.u32()?;
        } else {
            reader.sized()?;
        }
    }
    let base = kind & !MULTIPLE_VALUES;
    let is_sized = matches!(
        base,
        kind::STRING_8 | kind::UNICODE | kind::OBJECT | kind::BINARY
    );
    let has_count = is_sized || kind & MULTIPLE_VALUES != 0;
    let values = if has_count {
        reader.u32()?.min(PROPERTIES_MAX)
    } else {
        1
    };
    for _ in 0..values {
        let value = read_value(reader, base)?;
        // An object value begins with its interface id.
        let value = match value {
            PropertyValue::Binary(bytes) if base == kind::OBJECT => {
                PropertyValue::Binary(bytes.get(INTERFACE_ID_BYTES..)?.to_vec())
            }
            value => value,
        };
        if id < FIRST_NAMED_ID {
            properties.insert(id, value);
        }
    }
    Some(())
}

fn read_value(reader: &mut ByteReader<'_>, kind: u16) -> Option<PropertyValue> {
    Some(match kind {
        kind::STRING_8 => PropertyValue::Text8(reader.sized()?.to_vec()),
        kind::UNICODE => PropertyValue::Unicode(reader.sized()?.to_vec()),
        kind::OBJECT | kind::BINARY => PropertyValue::Binary(reader.sized()?.to_vec()),
        // Doubles, currencies, times and integers of 8 bytes.
        0x0005 | 0x0006 | 0x0007 | 0x0014 | kind::TIME => {
            let low = u64::from(reader.u32()?);
            PropertyValue::Number(low | u64::from(reader.u32()?) << 32)
        }
        0x0048 => PropertyValue::Binary(reader.take(INTERFACE_ID_BYTES)?.to_vec()),
        // Integers, Booleans, floats and errors.
        0x0002 | 0x0003 | 0x0004 | 0x000a | 0x000b => PropertyValue::Number(reader.u32()?.into()),
        _ => return None,
    })
}

/// Little-endian values.
struct ByteReader<'b>(&'b [u8]);

impl<'b> ByteReader<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?
            .first_chunk()
            .map(|bytes| u16::from_le_bytes(*bytes))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Returns bytes that are preceded by their length and padded to four bytes.
    fn sized(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        let bytes = self.take(length)?;
        self.take((length.next_multiple_of(4) - length).min(self.0.len()))?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{build_tnef, extract_documents, extract_outputs};

    fn sized(data: &[u8]) -> Vec<u8> {
        let mut bytes = [&(data.len() as u32).to_le_bytes(), data].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn property(kind: u16, id: u16, value: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes(), &id.to_le_bytes(), value].concat()
    }

    #[test]
    fn the_body_and_attachments_are_documents() {
        let name: Vec<u8> = "Größe.txt"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let one = 1u32.to_le_bytes();
        let named = property(
            kind::STRING_8,
            0x8001,
            &[&[0; 16], &one[..], &sized(b"x\0"), &one, &sized(b"y")].concat(),
        );
        let times = property(
            kind::TIME | MULTIPLE_VALUES,
            0x1234,
            &[&one[..], &[0; 8]].concat(),
        );
        let long_name = property(
            kind::UNICODE,
            id::ATTACH_LONG_NAME,
            &[&one[..], &sized(&name)].concat(),
        );
        let properties = [&3u32.to_le_bytes()[..], &named, &times, &long_name].concat();
        let bytes = build_tnef(&[
            (CODE_PAGE, &1252u32.to_le_bytes()),
            (SUBJECT, b"Br\xf6tchen\0"),
            (BODY, b"Words\r\nof bread\0"),
            (ATTACHMENT_START, b""),
            (ATTACHMENT_TITLE, b"GR~1.TXT\0"),
            (ATTACHMENT_DATA, b"one"),
            (ATTACHMENT_PROPERTIES, &properties),
            (ATTACHMENT_START, b""),
            (ATTACHMENT_TITLE, b"b.md\0"),
            (ATTACHMENT_DATA, b"# two"),
        ]);
        let documents = extract_documents("winmail.dat", &bytes);
        let found: Vec<_> = documents
            .iter()
            .map(|it| {
                (
                    it.inner_path.as_deref(),
                    it.title.as_deref(),
                    it.text.as_str(),
                )
            })
            .collect();
        let expected = [
            (None, Some("Brötchen"), "Words\nof bread"),
            (Some("!/1/Größe.txt"), None, "one"),
            (Some("!/2/b.md"), Some("two"), "two"),
        ];
        assert_eq!(found, expected);
        assert!(documents[1].metadata.attached_to.is_some());
    }

    #[test]
    fn damaged_files_end_where_they_are_damaged() {
        let whole = build_tnef(&[(SUBJECT, b"a\0"), (BODY, b"b\0")]);
        let cut = extract_documents("a", &whole[..whole.len() - 3]);
        assert_eq!(
            (cut[0].title.as_deref(), cut[0].text.as_str()),
            (Some("a"), "")
        );
        let empty = extract_outputs("a", &build_tnef(&[])).1;
        assert_eq!(empty.map_err(|error| error.code()), Err("malformed"));
    }
}
