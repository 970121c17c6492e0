//! Message files of Outlook, which are compound files. Source: MS-OXMSG,
//! <https://learn.microsoft.com/en-us/openspecs/exchange_server_protocols/ms-oxmsg>.
//!
//! ```text
//! __properties_version1.0        header, then entries: type (2) │ identifier (2) │ flags (4) │ value (8)
//! __substg1.0_IIIITTTT           the value of a property that is longer; in a folder, an item
//! __recip_version1.0_#NNNNNNNN   a folder with the properties of a recipient
//! __attach_version1.0_#NNNNNNNN  a folder with the properties of an attachment
//! ```

use std::io::{Cursor, Read};

use cfb::CompoundFile;

use super::item::{attachment_location, emit_item};
use super::properties::{Properties, PropertyValue, id, kind};
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location, catch_panic};

const FORMAT: &str = "Outlook message";
const PROPERTIES: &str = "__properties_version1.0";
const VALUE_PREFIX: &str = "__substg1.0_";
const RECIPIENT_PREFIX: &str = "__recip_version1.0_";
const ATTACHMENT_PREFIX: &str = "__attach_version1.0_";
const ENTRY_BYTES: usize = 16;
/// The number of bytes before the entries in a file, in an embedded item, and in a recipient or
/// attachment.
const FILE_HEADER_BYTES: usize = 32;
const ITEM_HEADER_BYTES: usize = 24;
const PART_HEADER_BYTES: usize = 8;
/// Identifiers from here on are assigned individually in each file.
const FIRST_NAMED_ID: u16 = 0x8000;

type File<'b> = CompoundFile<Cursor<&'b [u8]>>;

/// Extracts from the message and its attachments.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let mut file = catch_panic(FORMAT, || {
        CompoundFile::open(Cursor::new(bytes))
            .map_err(|error| ExtractError::malformed(FORMAT, error))
    })?;
    extract_item(extraction, location, &mut file, "", FILE_HEADER_BYTES)
}

/// Extracts from the item in a folder of the file.
fn extract_item(
    extraction: &mut Extraction<'_>,
    location: &Location,
    file: &mut File<'_>,
    folder: &str,
    header_bytes: usize,
) -> Result<(), ExtractError> {
    extraction.limits.check_depth(location.depth)?;
    let names = list_folder(file, folder)?;
    let mut item = read_properties(extraction, file, folder, header_bytes)?;
    item.read_code_page();
    let mut recipients = Vec::new();
    for name in names
        .iter()
        .filter(|name| name.starts_with(RECIPIENT_PREFIX))
    {
        let folder = format!("{folder}/{name}");
        let mut recipient = read_properties(extraction, file, &folder, PART_HEADER_BYTES)?;
        recipient.encoding = item.encoding;
        recipients.push(recipient);
    }
    let inner = emit_item(extraction, location, &item, &recipients)?;
    let attachments = names
        .iter()
        .filter(|name| name.starts_with(ATTACHMENT_PREFIX));
    for (number, name) in attachments.enumerate() {
        extraction.usage.count_member(&extraction.limits)?;
        let folder = format!("{folder}/{name}");
        extract_attachment(extraction, &inner, file, &folder, number + 1, item.encoding)?;
    }
    Ok(())
}

fn extract_attachment(
    extraction: &mut Extraction<'_>,
    location: &Location,
    file: &mut File<'_>,
    folder: &str,
    number: usize,
    encoding: Option<&'static encoding_rs::Encoding>,
) -> Result<(), ExtractError> {
    let mut attachment = read_properties(extraction, file, folder, PART_HEADER_BYTES)?;
    attachment.encoding = encoding;
    let item = format!(
        "{folder}/{VALUE_PREFIX}{:04X}{:04X}",
        id::ATTACH_DATA,
        kind::OBJECT
    );
    let is_item = file.is_stream(format!("{item}/{PROPERTIES}"));
    if attachment.is_inline_image() {
        return Ok(());
    }
    let location = attachment_location(extraction, location, number, &attachment, is_item);
    if is_item {
        let result = extract_item(extraction, &location, file, &item, ITEM_HEADER_BYTES);
        return extraction.record_result(&location, result);
    }
    match attachment.bytes(id::ATTACH_DATA) {
        Some(bytes) => extraction.extract_member(&location, bytes),
        None => extraction.record_result(&location, Err(ExtractError::Unsupported("OLE object"))),
    }
}

/// Returns the names in a folder in order.
fn list_folder(file: &mut File<'_>, folder: &str) -> Result<Vec<String>, ExtractError> {
    let entries = file.read_storage(format!("/{folder}"));
    let entries = entries.map_err(|error| ExtractError::malformed(FORMAT, error))?;
    let mut names: Vec<String> = entries.map(|entry| entry.name().to_string()).collect();
    names.sort();
    Ok(names)
}

fn read_properties(
    extraction: &mut Extraction<'_>,
    file: &mut File<'_>,
    folder: &str,
    header_bytes: usize,
) -> Result<Properties, ExtractError> {
    let mut properties = Properties::default();
    let fixed = read_stream(extraction, file, &format!("{folder}/{PROPERTIES}"))?;
    let (entries, _) = fixed
        .get(header_bytes..)
        .unwrap_or_default()
        .as_chunks::<ENTRY_BYTES>();
    for entry in entries {
        let &[k0, k1, i0, i1, _, _, _, _, ref value @ ..] = entry;
        let number = match u16::from_le_bytes([k0, k1]) {
            kind::INTEGER => value
                .first_chunk::<4>()
                .map(|bytes| u64::from(u32::from_le_bytes(*bytes))),
            kind::TIME => value
                .first_chunk::<8>()
                .map(|bytes| u64::from_le_bytes(*bytes)),
            _ => None,
        };
        if let Some(number) = number {
            properties.insert(u16::from_le_bytes([i0, i1]), PropertyValue::Number(number));
        }
    }
    for name in list_folder(file, folder)? {
        let Some(PropertyTag { id, kind }) = parse_value_name(&name) else {
            continue;
        };
        let path = format!("{folder}/{name}");
        if id >= FIRST_NAMED_ID || !file.is_stream(&path) {
            continue;
        }
        let bytes = read_stream(extraction, file, &path)?;
        let value = match kind {
            kind::UNICODE => PropertyValue::Unicode(bytes),
            kind::STRING_8 => PropertyValue::Text8(bytes),
            kind::BINARY => PropertyValue::Binary(bytes),
            _ => continue,
        };
        properties.insert(id, value);
    }
    Ok(properties)
}

/// The identifier and the type of a property.
struct PropertyTag {
    id: u16,
    kind: u16,
}

/// Parses the name of the stream of a property, `__substg1.0_IIIITTTT`.
fn parse_value_name(name: &str) -> Option<PropertyTag> {
    let digits = name.strip_prefix(VALUE_PREFIX)?;
    let tag = u32::from_str_radix(digits.get(..8)?, 16).ok()?;
    let is_whole = digits.len() == 8;
    is_whole.then_some(PropertyTag {
        id: (tag >> 16) as u16,
        kind: tag as u16,
    })
}

/// Returns the content of a stream. Empty if the stream does not exist.
fn read_stream(
    extraction: &mut Extraction<'_>,
    file: &mut File<'_>,
    path: &str,
) -> Result<Vec<u8>, ExtractError> {
    let mut bytes = Vec::new();
    if !file.is_stream(path) {
        return Ok(bytes);
    }
    let bytes_max = extraction.limits.input_bytes_max;
    catch_panic(FORMAT, || {
        let stream = file.open_stream(path);
        let read = stream.and_then(|stream| stream.take(bytes_max).read_to_end(&mut bytes));
        read.map_err(|error| ExtractError::malformed(FORMAT, error))
    })?;
    // In damaged files, streams can share their content.
    extraction
        .usage
        .add_expanded(bytes.len(), &extraction.limits)?;
    extraction.limits.check_deadline()?;
    Ok(bytes)
}
