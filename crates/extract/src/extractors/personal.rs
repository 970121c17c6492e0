//! Address books (vCard) and calendars (iCalendar): each contact, event and task is a document.
//! Sources: RFC 6350, RFC 5545.

mod content_line;

use crate::encoding;
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location};
use crate::format::{Input, take_prefix};
use crate::metadata_text::{CalendarTime, append_keywords, clean_property};
use crate::output::{DocumentKind, ExtractedDocument};
use content_line::{ContentLine, unfold};

/// Returns `true` if the file begins with a contact.
pub(crate) fn is_address_book(input: &Input<'_>) -> bool {
    begins_with(input, b"BEGIN:VCARD")
}

/// Returns `true` if the file begins with a calendar.
pub(crate) fn is_calendar(input: &Input<'_>) -> bool {
    begins_with(input, b"BEGIN:VCALENDAR")
}

fn begins_with(input: &Input<'_>, start: &[u8]) -> bool {
    let head = take_prefix(input.bytes, 64);
    let head = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    head.get(..start.len())
        .is_some_and(|it| it.eq_ignore_ascii_case(start))
}

/// Emits the contacts of an address book.
pub(crate) fn extract_address_book(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    extract(extraction, location, bytes, &["VCARD"])
}

/// Emits the events, tasks and notes of a calendar.
pub(crate) fn extract_calendar(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    extract(
        extraction,
        location,
        bytes,
        &["VEVENT", "VTODO", "VJOURNAL"],
    )
}

/// Emits a document for each component with one of these names.
fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
    names: &[&str],
) -> Result<(), ExtractError> {
    let decoded = encoding::decode(bytes, usize::MAX).text;
    let (mut entry, mut number) = (None::<Entry>, 0);
    for line in unfold(&decoded) {
        let Some(line) = ContentLine::parse(&line) else {
            continue;
        };
        let is_entry = names
            .iter()
            .any(|name| line.value.eq_ignore_ascii_case(name));
        match line.name.as_str() {
            "BEGIN" if is_entry => {
                extraction.limits.check_deadline()?;
                entry = Some(Entry::new(&line.value));
            }
            "END" if is_entry => {
                if let Some(entry) = entry.take() {
                    number += 1;
                    let member = location.for_message(number);
                    let document = entry.finish(extraction.limits.text_bytes_max);
                    extraction.emit_document(&member, document);
                }
            }
            // Alarms and other nested components.
            "BEGIN" => entry.iter_mut().for_each(|entry| entry.depth += 1),
            "END" => entry
                .iter_mut()
                .for_each(|entry| entry.depth = entry.depth.saturating_sub(1)),
            _ => {
                if let Some(entry) = entry.as_mut().filter(|entry| entry.depth == 0) {
                    entry.add(&line);
                }
            }
        }
    }
    Ok(())
}

/// A contact or event whose lines are being read.
struct Entry {
    document: ExtractedDocument,
    lines: Vec<String>,
    depth: u32,
}

impl Entry {
    fn new(component: &str) -> Self {
        let kind = match component {
            "VCARD" | "vcard" => DocumentKind::Contact,
            _ => DocumentKind::Event,
        };
        Entry {
            document: ExtractedDocument::new(kind, String::new()),
            lines: Vec::new(),
            depth: 0,
        }
    }

    fn add(&mut self, line: &ContentLine) {
        let metadata = &mut self.document.metadata;
        let value = line.text();
        match line.name.as_str() {
            "FN" | "SUMMARY" => {
                self.document.title = clean_property(&value);
                self.lines.insert(0, value);
            }
            "EMAIL" | "TEL" | "ORG" | "TITLE" | "ROLE" | "NICKNAME" | "ADR" | "NOTE" | "URL"
            | "IMPP" | "LOCATION" | "DESCRIPTION" | "COMMENT" | "CONTACT" | "N" | "RELATED" => {
                self.lines.push(value);
            }
            "CATEGORIES" => {
                append_keywords(&mut metadata.keywords, &value);
                self.lines.push(value);
            }
            "ORGANIZER" => {
                metadata.from = vec![line.person()];
                self.lines.push(line.person());
            }
            "ATTENDEE" => {
                metadata.to.push(line.person());
                self.lines.push(line.person());
            }
            "DTSTART" | "DUE" if metadata.date_ms.is_none() => {
                metadata.date_ms = parse_date(&value);
            }
            _ => {}
        }
    }

    fn finish(mut self, bytes_max: usize) -> ExtractedDocument {
        self.lines.retain(|line| !line.trim().is_empty());
        let mut seen = std::collections::HashSet::new();
        self.lines.retain(|line| seen.insert(line.clone()));
        self.document.text = self.lines.join("\n");
        self.document.truncated = encoding::truncate(&mut self.document.text, bytes_max);
        self.document
    }
}

/// Parses `20240506` or `20240506T070809Z`. Times in named time zones are treated as UTC.
fn parse_date(text: &str) -> Option<i64> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let part = |start: usize, end: usize| digits.get(start..end)?.parse().ok();
    let time = CalendarTime {
        year: part(0, 4)?,
        month: part(4, 6)?,
        day: part(6, 8)?,
        hour: part(8, 10).unwrap_or(0),
        minute: part(10, 12).unwrap_or(0),
        second: part(12, 14).unwrap_or(0),
        offset_minutes: 0,
    };
    time.is_valid().then(|| time.to_unix_ms())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::extract_documents;

    #[test]
    fn contacts_are_documents() {
        let source = "BEGIN:VCARD\r\nVERSION:3.0\r\nN:Lovelace;Ada;;;\r\nFN:Ada Lovelace\r\nEMAIL;TYPE=work:ada@exam\r\n ple.org\r\n\
            TEL:+44 1\r\nORG:Engines\\, Ltd;Research\r\nNOTE;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Gr=C3=B6=\r\n=C3=9Fe\r\n\
            PHOTO;ENCODING=b:AAAA\r\nCATEGORIES:friends\r\nEND:VCARD\r\nBEGIN:VCARD\r\nitem1.FN:Bob\r\nEND:VCARD\r\n";
        let documents = extract_documents("a.vcf", source.as_bytes());
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].kind, DocumentKind::Contact);
        assert_eq!(documents[0].title.as_deref(), Some("Ada Lovelace"));
        assert_eq!(
            documents[0].text,
            "Ada Lovelace\nLovelace Ada\nada@example.org\n+44 1\nEngines, Ltd Research\nGröße\nfriends"
        );
        assert_eq!(documents[1].inner_path.as_deref(), Some("#2"));
        assert_eq!(documents[1].text, "Bob");
    }

    #[test]
    fn events_are_documents() {
        let source = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;TZID=Europe/Vienna:20240506T070809\nSUMMARY:Lunch\\nagain\nLOCATION:Café\n\
            ORGANIZER;CN=Ada:mailto:ada@example.org\nATTENDEE:mailto:bob@example.org\nBEGIN:VALARM\nDESCRIPTION:hidden\nEND:VALARM\n\
            DESCRIPTION:Words\nEND:VEVENT\nBEGIN:VTODO\nSUMMARY:Task\nEND:VTODO\nEND:VCALENDAR";
        let documents = extract_documents("a.ics", source.as_bytes());
        assert_eq!(documents.len(), 2);
        let event = &documents[0];
        assert_eq!(event.kind, DocumentKind::Event);
        assert_eq!(
            event.text,
            "Lunch\nagain\nCafé\nAda <ada@example.org>\nbob@example.org\nWords"
        );
        assert_eq!(event.metadata.from, ["Ada <ada@example.org>"]);
        assert_eq!(event.metadata.to, ["bob@example.org"]);
        assert_eq!(event.metadata.date_ms, Some(1_714_979_289_000));
    }
}
