//! Properties of Outlook's items (MAPI), and the mail that they describe. Source: MS-OXPROPS,
//! <https://learn.microsoft.com/en-us/openspecs/exchange_server_protocols/ms-oxprops>.

use std::collections::HashMap;

use encoding_rs::{Encoding, UTF_16LE};

use super::compressed_rtf;
use crate::encoding::{self, truncate};
use crate::error::ExtractError;
use crate::extractors::code_page::find_encoding;
use crate::extractors::{html, rtf};
use crate::format::Input;
use crate::format::extraction::catch_panic;
use crate::limits::Limits;
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, DocumentMetadata, ExtractedDocument};

/// Identifiers of properties.
pub(super) mod id {
    pub const SUBJECT: u16 = 0x0037;
    pub const CLIENT_SUBMIT_TIME: u16 = 0x0039;
    pub const SENT_REPRESENTING_NAME: u16 = 0x0042;
    pub const SENT_REPRESENTING_ADDRESS: u16 = 0x0065;
    pub const TRANSPORT_HEADERS: u16 = 0x007d;
    pub const RECIPIENT_TYPE: u16 = 0x0c15;
    pub const SENDER_NAME: u16 = 0x0c1a;
    pub const SENDER_ADDRESS: u16 = 0x0c1f;
    pub const DISPLAY_BCC: u16 = 0x0e02;
    pub const DISPLAY_CC: u16 = 0x0e03;
    pub const DISPLAY_TO: u16 = 0x0e04;
    pub const DELIVERY_TIME: u16 = 0x0e06;
    pub const BODY: u16 = 0x1000;
    pub const RTF_COMPRESSED: u16 = 0x1009;
    pub const HTML: u16 = 0x1013;
    pub const MESSAGE_ID: u16 = 0x1035;
    pub const REFERENCES: u16 = 0x1039;
    pub const IN_REPLY_TO: u16 = 0x1042;
    pub const DISPLAY_NAME: u16 = 0x3001;
    pub const EMAIL_ADDRESS: u16 = 0x3003;
    pub const CREATION_TIME: u16 = 0x3007;
    pub const ATTACH_DATA: u16 = 0x3701;
    pub const ATTACH_FILE_NAME: u16 = 0x3704;
    pub const ATTACH_LONG_NAME: u16 = 0x3707;
    pub const ATTACH_MEDIA_TYPE: u16 = 0x370e;
    pub const ATTACH_CONTENT_ID: u16 = 0x3712;
    pub const SMTP_ADDRESS: u16 = 0x39fe;
    pub const INTERNET_CODE_PAGE: u16 = 0x3fde;
    pub const MESSAGE_CODE_PAGE: u16 = 0x3ffd;
    pub const SENDER_SMTP_ADDRESS: u16 = 0x5d01;
    pub const SENT_REPRESENTING_SMTP_ADDRESS: u16 = 0x5d02;
}

/// Types of properties.
pub(super) mod kind {
    pub const INTEGER: u16 = 0x0003;
    pub const TIME: u16 = 0x0040;
    pub const STRING_8: u16 = 0x001e;
    pub const UNICODE: u16 = 0x001f;
    pub const OBJECT: u16 = 0x000d;
    pub const BINARY: u16 = 0x0102;
}

/// 100-nanosecond intervals between 1601 and 1970.
const UNIX_EPOCH_INTERVALS: u64 = 116_444_736_000_000_000;

/// The value of a property.
pub(super) enum PropertyValue {
    /// An integer, time or truth value.
    Number(u64),
    /// Text in the code page of the item.
    Text8(Vec<u8>),
    /// Text in UTF-16.
    Unicode(Vec<u8>),
    Binary(Vec<u8>),
}

/// The properties of an item, a recipient or an attachment.
#[derive(Default)]
pub(super) struct Properties {
    values: HashMap<u16, PropertyValue>,
    /// The code page of 8-bit text.
    pub(super) encoding: Option<&'static Encoding>,
}

impl Properties {
    /// Adds a property. The first of several with one identifier counts.
    pub(super) fn insert(&mut self, id: u16, value: PropertyValue) {
        self.values.entry(id).or_insert(value);
    }

    pub(super) fn number(&self, id: u16) -> Option<u64> {
        match self.values.get(&id)? {
            PropertyValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a text that is not empty.
    pub(super) fn text(&self, id: u16) -> Option<String> {
        let text = match self.values.get(&id)? {
            PropertyValue::Unicode(bytes) => UTF_16LE.decode_without_bom_handling(bytes).0.into(),
            PropertyValue::Text8(bytes) => {
                encoding::decode_with(bytes, self.encoding, bytes.len().saturating_mul(4)).text
            }
            PropertyValue::Binary(_) | PropertyValue::Number(_) => return None,
        };
        let text = text.trim_end_matches('\0');
        (!text.trim().is_empty()).then(|| text.to_string())
    }

    pub(super) fn bytes(&self, id: u16) -> Option<&[u8]> {
        match self.values.get(&id)? {
            PropertyValue::Number(_) => None,
            PropertyValue::Binary(bytes)
            | PropertyValue::Text8(bytes)
            | PropertyValue::Unicode(bytes) => Some(bytes),
        }
    }

    /// Sets the encoding from the code page that the item declares, if it is not known.
    pub(super) fn read_code_page(&mut self) {
        let code_page = self
            .number(id::MESSAGE_CODE_PAGE)
            .or(self.number(id::INTERNET_CODE_PAGE));
        let declared = code_page.and_then(|page| find_encoding(u32::try_from(page).ok()?));
        self.encoding = self.encoding.or(declared);
    }

    /// Returns the file name of an attachment.
    pub(super) fn attachment_name(&self) -> Option<String> {
        let ids = [id::ATTACH_LONG_NAME, id::ATTACH_FILE_NAME, id::DISPLAY_NAME];
        let name = ids.iter().find_map(|id| self.text(*id))?;
        clean_property(name.rsplit(['/', '\\']).next()?)
    }

    /// A picture of the body has an identifier, by which the body refers to it.
    pub(super) fn is_inline_image(&self) -> bool {
        let media_type = self.text(id::ATTACH_MEDIA_TYPE).unwrap_or_default();
        media_type.starts_with("image/") && self.text(id::ATTACH_CONTENT_ID).is_some()
    }

    /// Returns a time in milliseconds since 1970-01-01 UTC.
    fn time_ms(&self, id: u16) -> Option<i64> {
        let intervals = self.number(id)?.checked_sub(UNIX_EPOCH_INTERVALS)?;
        i64::try_from(intervals / 10_000).ok()
    }

    /// Returns `Name <address>` of these properties. Addresses of Exchange (`/O=…`) mean nothing to
    /// people.
    fn address(&self, names: &[u16], addresses: &[u16]) -> Option<String> {
        let first = |ids: &[u16]| ids.iter().find_map(|id| self.text(*id));
        let is_internet = |address: &String| address.contains('@');
        let address = addresses
            .iter()
            .filter_map(|id| self.text(*id))
            .find(is_internet);
        let format = match (first(names), address) {
            (Some(name), Some(address)) if name != address => format!("{name} <{address}>"),
            (_, Some(address)) => address,
            (name, None) => name?,
        };
        clean_property(&format)
    }
}

/// The kinds of recipients.
const TO: u64 = 1;
const CC: u64 = 2;
const BCC: u64 = 3;

/// Builds the document of a mail.
pub(super) fn build_document(
    item: &Properties,
    recipients: &[Properties],
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let mut text = read_body(item, limits)?;
    let truncated = truncate(&mut text, limits.text_bytes_max);
    let metadata = read_metadata(item, recipients);
    Ok(ExtractedDocument {
        title: metadata.subject.clone(),
        metadata,
        truncated,
        ..ExtractedDocument::new(DocumentKind::Mail, text)
    })
}

fn read_metadata(item: &Properties, recipients: &[Properties]) -> DocumentMetadata {
    let sender = item.address(
        &[id::SENT_REPRESENTING_NAME, id::SENDER_NAME],
        &[
            id::SENT_REPRESENTING_SMTP_ADDRESS,
            id::SENDER_SMTP_ADDRESS,
            id::SENT_REPRESENTING_ADDRESS,
            id::SENDER_ADDRESS,
        ],
    );
    let of_kind = |kind: u64, display: u16| -> Vec<String> {
        let same = |it: &&Properties| it.number(id::RECIPIENT_TYPE).unwrap_or(TO) & 0xf == kind;
        let address = |it: &Properties| {
            it.address(&[id::DISPLAY_NAME], &[id::SMTP_ADDRESS, id::EMAIL_ADDRESS])
        };
        let found: Vec<String> = recipients.iter().filter(same).filter_map(address).collect();
        if !found.is_empty() {
            return found;
        }
        let names = item.text(display).unwrap_or_default();
        names.split(';').filter_map(clean_property).collect()
    };
    let ids = |id: u16| -> Vec<String> {
        let text = item.text(id).unwrap_or_default();
        let ids = text
            .split_whitespace()
            .map(|id| id.trim_matches(['<', '>']));
        ids.filter_map(clean_property).collect()
    };
    let times = [id::CLIENT_SUBMIT_TIME, id::DELIVERY_TIME, id::CREATION_TIME];
    DocumentMetadata {
        from: sender.into_iter().collect(),
        to: of_kind(TO, id::DISPLAY_TO),
        cc: of_kind(CC, id::DISPLAY_CC),
        bcc: of_kind(BCC, id::DISPLAY_BCC),
        subject: item.text(id::SUBJECT).as_deref().and_then(clean_property),
        date_ms: times.iter().find_map(|id| item.time_ms(*id)),
        message_id: ids(id::MESSAGE_ID).into_iter().next(),
        in_reply_to: ids(id::IN_REPLY_TO),
        references: ids(id::REFERENCES),
        ..DocumentMetadata::default()
    }
}

/// Returns the plain body, otherwise that of the HTML or RTF body.
fn read_body(item: &Properties, limits: &Limits) -> Result<String, ExtractError> {
    if let Some(text) = item.text(id::BODY) {
        return Ok(text.replace("\r\n", "\n").trim_end().to_string());
    }
    let name = "";
    if let Some(bytes) = item.bytes(id::HTML) {
        let text = item.text(id::HTML);
        let bytes = text.as_deref().map_or(bytes, str::as_bytes);
        return Ok(catch_panic("HTML", || html::extract(&Input { name, bytes }, limits))?.text);
    }
    let rtf = item
        .bytes(id::RTF_COMPRESSED)
        .and_then(compressed_rtf::decompress);
    if let Some(bytes) = rtf {
        let input = Input {
            name,
            bytes: &bytes,
        };
        return Ok(catch_panic("RTF document", || rtf::extract(&input, limits))?.text);
    }
    Ok(String::new())
}
