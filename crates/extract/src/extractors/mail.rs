//! Extracts headers, body and attachments from a mail message.

use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use super::html;
use crate::encoding::truncate;
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location, catch_panic};
use crate::format::{Input, take_prefix};
use crate::limits::Limits;
use crate::output::{DocumentKind, DocumentMetadata, ExtractedDocument};

/// Returns `true` if two known mail headers are among the first lines, and no other lines before
/// the second.
pub(crate) fn is_mail(input: &Input<'_>) -> bool {
    const HEADERS: [&[u8]; 11] = [
        b"from",
        b"to",
        b"subject",
        b"date",
        b"received",
        b"return-path",
        b"message-id",
        b"mime-version",
        b"delivered-to",
        b"reply-to",
        b"dkim-signature",
    ];
    let lines = take_prefix(input.bytes, 8192)
        .split(|&byte| byte == b'\n')
        .take(60);
    let mut found = 0;
    for line in lines.filter(|line| !line.first().is_some_and(|b| matches!(b, b' ' | b'\t'))) {
        let Some(name) = parse_header_name(line) else {
            return false;
        };
        found += usize::from(HEADERS.iter().any(|known| known.eq_ignore_ascii_case(name)));
        if found == 2 {
            return true;
        }
    }
    false
}

/// Returns the name of the header in a line.
pub(crate) fn parse_header_name(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', take_prefix(line, 80))?;
    let name = line.get(..colon)?;
    let valid = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-');
    valid.then_some(name)
}

/// Extracts from a message and its attachments.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let message = catch_panic("mail", || {
        let message = MessageParser::default().parse(bytes);
        message.ok_or_else(|| ExtractError::malformed("mail", "it has no headers"))
    })?;
    read_message(extraction, location, &message)
}

fn read_message(
    extraction: &mut Extraction<'_>,
    location: &Location,
    message: &Message<'_>,
) -> Result<(), ExtractError> {
    extraction.limits.check_depth(location.depth)?;
    let document = build_document(message, &extraction.limits)?;
    extraction.emit_document(location, document);
    for (number, part) in message.attachments().enumerate() {
        extraction.usage.count_member(&extraction.limits)?;
        read_attachment(extraction, location, number + 1, part)?;
    }
    Ok(())
}

fn read_attachment(
    extraction: &mut Extraction<'_>,
    location: &Location,
    number: usize,
    part: &MessagePart<'_>,
) -> Result<(), ExtractError> {
    let name = choose_attachment_name(part);
    let mut location = extraction.member_location(location, &format!("{number}/{name}"));
    location.name = name;
    if let PartType::Message(message) = &part.body {
        let result = read_message(extraction, &location, message);
        return extraction.record_result(&location, result);
    }
    let bytes = part.contents();
    extraction
        .usage
        .add_expanded(bytes.len(), &extraction.limits)?;
    extraction.extract_member(&location, bytes)
}

/// Returns the attachment's file name without folders. If there is none, returns a name that
/// indicates the content type.
fn choose_attachment_name(part: &MessagePart<'_>) -> String {
    let given = part
        .attachment_name()
        .and_then(|name| name.rsplit(['/', '\\']).next());
    let unnamed = match &part.body {
        PartType::Message(_) => "message.eml",
        PartType::Html(_) => "part.html",
        PartType::Text(_) => "part.txt",
        _ => "part",
    };
    given
        .filter(|name| !name.is_empty())
        .unwrap_or(unnamed)
        .to_string()
}

fn build_document(
    message: &Message<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let mut text = String::new();
    for part in message.text_bodies() {
        let body = extract_body(part, limits)?;
        if !text.is_empty() && !body.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&body);
    }
    let truncated = truncate(&mut text, limits.text_bytes_max);
    let metadata = read_metadata(message);
    Ok(ExtractedDocument {
        title: metadata.subject.clone(),
        metadata,
        truncated,
        ..ExtractedDocument::new(DocumentKind::Mail, text)
    })
}

fn extract_body(part: &MessagePart<'_>, limits: &Limits) -> Result<String, ExtractError> {
    if let PartType::Html(page) = &part.body {
        return Ok(catch_panic("HTML", || html::extract_page(page, limits))?.text);
    }
    let text = part.text_contents().unwrap_or_default();
    Ok(text.trim_end().to_string())
}

fn read_metadata(message: &Message<'_>) -> DocumentMetadata {
    DocumentMetadata {
        from: format_addresses(message.from()),
        to: format_addresses(message.to()),
        cc: format_addresses(message.cc()),
        subject: message
            .subject()
            .map(str::trim)
            .filter(|s| !s.is_empty())
            .map(str::to_string),
        date_ms: message
            .date()
            .filter(|date| date.is_valid())
            .map(|date| date.to_timestamp().saturating_mul(1000)),
        message_id: message.message_id().map(str::to_string),
        ..DocumentMetadata::default()
    }
}

fn format_addresses(header: Option<&Address<'_>>) -> Vec<String> {
    let display = |addr: &mail_parser::Addr<'_>| match (&addr.name, &addr.address) {
        (Some(name), Some(address)) => Some(format!("{name} <{address}>")),
        (Some(part), None) | (None, Some(part)) => Some(part.to_string()),
        (None, None) => None,
    };
    header
        .into_iter()
        .flat_map(Address::iter)
        .filter_map(display)
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{extract_documents, extract_outputs};
    use crate::output::{ExtractionCounts, Output};

    #[test]
    fn headers_and_body_are_decoded() {
        let mail = b"From: =?utf-8?q?Ad=C3=A9le?= <a@x.org>\r\nTo: b@x.org, C <c@x.org>\r\n\
            Subject: =?iso-8859-1?Q?Gr=FC=DFe?=\r\nDate: Tue, 2 Jan 2024 03:04:05 +0100\r\n\
            Message-ID: <1@x.org>\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\
            Content-Transfer-Encoding: quoted-printable\r\n\r\nSch=F6ne W=\r\norte\r\n";
        let [document] = &extract_documents("a.eml", mail)[..] else {
            panic!("one document")
        };
        assert_eq!(document.title.as_deref(), Some("Grüße"));
        assert_eq!(document.text, "Schöne Worte");
        let fields = &document.metadata;
        assert_eq!(fields.from, ["Adéle <a@x.org>"]);
        assert_eq!(fields.to, ["b@x.org", "C <c@x.org>"]);
        assert_eq!(fields.date_ms, Some(1_704_161_045_000));
        assert_eq!(fields.message_id.as_deref(), Some("1@x.org"));
    }

    const ATTACHED: &str = "From: a\nSubject: s\nMIME-Version: 1.0\n\
        Content-Type: multipart/mixed; boundary=B\n\n\
        --B\nContent-Type: multipart/alternative; boundary=A\n\n\
        --A\nContent-Type: text/plain\n\nplain words\n\
        --A\nContent-Type: text/html\n\n<p>html words\n--A--\n\
        --B\nContent-Type: text/html; name=page.html\nContent-Disposition: attachment; \
        filename=page.html\nContent-Transfer-Encoding: base64\n\nPHRpdGxlPlQ8L3RpdGxlPng=\n\
        --B\nContent-Type: image/png\nContent-Disposition: attachment; filename=a.png\n\
        Content-Transfer-Encoding: base64\n\niVBORw0KGgo=\n\
        --B\nContent-Type: message/rfc822\n\nFrom: b\nSubject: inner\n\ninner words\n--B--\n";

    #[test]
    fn attachments_are_documents() {
        let (outputs, counts) = extract_outputs("a.eml", ATTACHED.as_bytes());
        assert_eq!(
            counts,
            Ok(ExtractionCounts {
                documents: 3,
                failures: 0,
                skipped: 1
            })
        );
        let found: Vec<_> = outputs
            .into_iter()
            .filter_map(|output| match output {
                Output::Document(d) => Some((d.inner_path, d.title.unwrap(), d.text)),
                Output::Failure(_) => None,
            })
            .collect();
        let expected = [
            (None, "s".into(), "plain words".into()),
            (Some("!/1/page.html".into()), "T".into(), "x".into()),
            (
                Some("!/3/message.eml".into()),
                "inner".into(),
                "inner words".into(),
            ),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_html_body_is_extracted() {
        let mail =
            b"From: a\nSubject: s\nContent-Type: text/html\n\n<p>one<p>two<script>x</script>";
        assert_eq!(extract_documents("a.eml", mail)[0].text, "one\n\ntwo");
    }
}
