//! Properties of Outlook's items (MAPI). Source: MS-OXPROPS,
//! <https://learn.microsoft.com/en-us/openspecs/exchange_server_protocols/ms-oxprops>.

use std::collections::HashMap;

use encoding_rs::{Encoding, UTF_16LE};

use crate::encoding;
use crate::extractors::code_page::find_encoding;
use crate::metadata_text::clean_property;

/// Identifiers of properties.
pub(super) mod id {
    pub const MESSAGE_CLASS: u16 = 0x001a;
    pub const SUBJECT: u16 = 0x0037;
    pub const CLIENT_SUBMIT_TIME: u16 = 0x0039;
    pub const SENT_REPRESENTING_NAME: u16 = 0x0042;
    pub const START: u16 = 0x0060;
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
    pub const ATTACH_METHOD: u16 = 0x3705;
    pub const ATTACH_MEDIA_TYPE: u16 = 0x370e;
    pub const ATTACH_CONTENT_ID: u16 = 0x3712;
    pub const SMTP_ADDRESS: u16 = 0x39fe;
    pub const INTERNET_CODE_PAGE: u16 = 0x3fde;
    pub const MESSAGE_CODE_PAGE: u16 = 0x3ffd;
    pub const SENDER_SMTP_ADDRESS: u16 = 0x5d01;
    pub const SENT_REPRESENTING_SMTP_ADDRESS: u16 = 0x5d02;

    // Named properties have different identifiers in each file. These are their own numbers, see
    // MS-OXPROPS.
    pub const CONTACT_ADDRESSES: [u16; 4] = [0x801b, 0x8083, 0x8093, 0x80a3];
    pub const LOCATION: u16 = 0x8208;
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
    /// An integer, time or Boolean.
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
    /// Adds a property. The first one with an identifier takes precedence.
    pub(super) fn insert(&mut self, id: u16, value: PropertyValue) {
        self.values.entry(id).or_insert(value);
    }

    pub(super) fn number(&self, id: u16) -> Option<u64> {
        match self.values.get(&id)? {
            PropertyValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a non-empty text.
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

    /// Sets the encoding from the code page of the item, unless it is already known.
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

    /// Inline pictures have a Content-ID, by which the body refers to them.
    pub(super) fn is_inline_image(&self) -> bool {
        let media_type = self.text(id::ATTACH_MEDIA_TYPE).unwrap_or_default();
        media_type.starts_with("image/") && self.text(id::ATTACH_CONTENT_ID).is_some()
    }

    /// Returns a time in milliseconds since 1970-01-01 UTC.
    pub(super) fn time_ms(&self, id: u16) -> Option<i64> {
        let intervals = self.number(id)?.checked_sub(UNIX_EPOCH_INTERVALS)?;
        i64::try_from(intervals / 10_000).ok()
    }

    /// Returns `Name <address>` of these properties. Exchange addresses (`/O=…`) are omitted,
    /// because they are internal.
    pub(super) fn address(&self, names: &[u16], addresses: &[u16]) -> Option<String> {
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
