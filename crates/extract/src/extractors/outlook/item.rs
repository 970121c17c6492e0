//! Creates the document of an Outlook item: a mail, contact or event.

use std::sync::Arc;

use super::compressed_rtf;
use super::properties::{Properties, id};
use crate::encoding::truncate;
use crate::error::ExtractError;
use crate::extractors::{html, mail, rtf};
use crate::format::Input;
use crate::format::extraction::{Extraction, Location, catch_panic};
use crate::limits::Limits;
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, DocumentMetadata, ExtractedDocument, MailReference};

/// The kinds of recipients.
const TO: u64 = 1;
const CC: u64 = 2;
const BCC: u64 = 3;

/// The properties of a contact that become text: names, companies, addresses and numbers.
const CONTACT_IDS: std::ops::RangeInclusive<u16> = 0x3a00..=0x3a6f;

/// Emits the document of an item. Returns the location of its attachments.
pub(super) fn emit_item(
    extraction: &mut Extraction<'_>,
    location: &Location,
    item: &Properties,
    recipients: &[Properties],
) -> Result<Location, ExtractError> {
    let mut document = build_document(item, recipients, &extraction.limits)?;
    if let Some(header) = item.text(id::TRANSPORT_HEADERS) {
        mail::complete_metadata(&mut document.metadata, header.as_bytes());
    }
    let mut inner = location.clone();
    inner.mail = Some(Arc::new(MailReference {
        inner_path: location.inner_path.clone(),
        message_id: document.metadata.message_id.clone(),
    }));
    extraction.emit_document(location, document);
    Ok(inner)
}

/// Returns the location of an attachment of the item at `location`.
pub(super) fn attachment_location(
    extraction: &mut Extraction<'_>,
    location: &Location,
    number: usize,
    attachment: &Properties,
    is_item: bool,
) -> Location {
    let unnamed = if is_item { "message.msg" } else { "part" };
    let name = attachment
        .attachment_name()
        .unwrap_or_else(|| unnamed.to_string());
    let mut location = extraction.member_location(location, &format!("{number}/{name}"));
    location.name = name;
    location
}

/// Builds the document of an item.
pub(super) fn build_document(
    item: &Properties,
    recipients: &[Properties],
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let kind = document_kind(item);
    let mut metadata = read_metadata(item, recipients);
    let mut lines = Vec::new();
    match kind {
        DocumentKind::Contact => {
            // The sender of a contact is the owner of the address book, so it is omitted.
            metadata.from.clear();
            metadata.subject = metadata.subject.or_else(|| item.text(id::DISPLAY_NAME));
            lines = read_contact(item);
        }
        DocumentKind::Event => {
            metadata.date_ms = item.time_ms(id::START).or(metadata.date_ms);
            lines.extend(item.text(id::LOCATION));
        }
        _ => {}
    }
    lines.push(read_body(item, limits)?);
    let mut text = lines.join("\n").trim_end().to_string();
    let truncated = truncate(&mut text, limits.text_bytes_max);
    Ok(ExtractedDocument {
        title: metadata.subject.clone(),
        metadata,
        truncated,
        ..ExtractedDocument::new(kind, text)
    })
}

/// Returns the kind of an item by its message class, for example `IPM.Note` or
/// `IPM.Appointment.Live Meeting`.
fn document_kind(item: &Properties) -> DocumentKind {
    let class = item.text(id::MESSAGE_CLASS).unwrap_or_default();
    let mut words = class.split('.').skip(1);
    match words.next() {
        Some("Contact" | "DistList") => DocumentKind::Contact,
        Some("Appointment" | "Task" | "Activity") => DocumentKind::Event,
        _ => DocumentKind::Mail,
    }
}

/// Returns the distinct texts of a contact.
fn read_contact(item: &Properties) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let names = [id::DISPLAY_NAME];
    for id in names
        .into_iter()
        .chain(CONTACT_IDS)
        .chain(id::CONTACT_ADDRESSES)
    {
        let line = item.text(id).and_then(|text| clean_property(&text));
        if let Some(line) = line.filter(|line| !lines.contains(line)) {
            lines.push(line);
        }
    }
    lines
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

/// Returns the plain body, or else the text of the HTML or RTF body.
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
