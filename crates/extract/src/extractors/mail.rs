//! Extracts headers, body and attachments from a mail message (RFC 5322 and MIME). The parser is
//! lenient: many mails declare wrong encodings, dates and structures, which a strict parser would
//! reject.
//!
//! ```text
//! Part          headers, type and body of a message or part      mail/part.rs
//!   Headers     fields → encoded words → encodings               mail/headers.rs …
//! MessageContent  bodies as text, attachments                    mail/content.rs
//! ```

mod addresses;
mod body_text;
pub(super) mod charset;
mod content;
mod date;
mod embedded_files;
mod encoded_words;
mod headers;
mod lines;
mod parameters;
mod part;
mod signed_data;
mod transfer;

use std::borrow::Cow;
use std::sync::Arc;

use crate::encoding::truncate;
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location};
use crate::format::{Input, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, DocumentMetadata, ExtractedDocument, MailReference};
use addresses::{parse_addresses, parse_message_ids};
use content::{Attachment, MessageContent};
pub(crate) use headers::parse_field_name;
use headers::{Headers, count_known_fields};
use lines::{split_line, trim_line_end};
use part::Part;

/// Returns `true` if the file begins with header fields, of which two are known. One is sufficient
/// if the file is named as in a maildir or MH folder.
pub(crate) fn is_mail(input: &Input<'_>) -> bool {
    let bytes = skip_envelope(input.bytes);
    let fields_min = if has_message_name(input.name) { 1 } else { 2 };
    count_known_fields(bytes, fields_min) == fields_min
}

/// Returns `true` for the file names of maildir (`1700000000.M1P2.host:2,S`) and MH (a number).
fn has_message_name(path: &str) -> bool {
    let mut components = path.rsplit('/');
    let name = components.next().unwrap_or_default();
    let is_in_maildir = matches!(components.next(), Some("cur" | "new"));
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    name.contains(":2,") || is_in_maildir || is_number
}

/// Skips the text before the header in some mailboxes: the `From …` line of an mbox, and the length
/// in Apple Mail files.
fn skip_envelope(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    loop {
        let (line, after) = split_line(rest);
        let line = trim_line_end(line).trim_ascii();
        let is_length = !line.is_empty() && line.iter().all(u8::is_ascii_digit);
        let is_envelope = line.starts_with(b"From ") || line.starts_with(b">From ");
        if !is_length && !is_envelope {
            return rest;
        }
        rest = after;
    }
}

/// Returns the message of an Apple Mail file. The file begins with the length of the message, and
/// ends with a property list.
fn cut_apple_mail(bytes: &[u8]) -> &[u8] {
    let (line, rest) = split_line(bytes);
    let length = std::str::from_utf8(line.trim_ascii())
        .ok()
        .and_then(|it| it.parse().ok());
    match length {
        Some(length) => take_prefix(rest, length),
        None => bytes,
    }
}

/// Extracts from a message and its attachments.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let bytes = cut_apple_mail(bytes);
    let message = Part::parse(skip_envelope(bytes), "text/plain");
    let mut metadata = read_metadata(&message.headers);
    if metadata.date_ms.is_none() {
        metadata.date_ms = read_delivery_date(&message.headers, split_line(bytes).0);
    }
    let content = MessageContent::read(message, &extraction.limits)?;
    let mut inner = location.clone();
    inner.mail = Some(Arc::new(MailReference {
        inner_path: location.inner_path.clone(),
        message_id: metadata.message_id.clone(),
    }));
    let document = build_document(&content, metadata, &extraction.limits);
    extraction.emit_document(location, document);
    for (number, attachment) in content.attachments.into_iter().enumerate() {
        extraction.limits.check_deadline()?;
        read_attachment(extraction, &inner, number + 1, attachment)?;
    }
    Ok(())
}

fn build_document(
    content: &MessageContent<'_>,
    metadata: DocumentMetadata,
    limits: &Limits,
) -> ExtractedDocument {
    let mut text = content.text();
    let truncated = truncate(&mut text, limits.text_bytes_max);
    ExtractedDocument {
        title: metadata.subject.clone(),
        metadata,
        truncated,
        ..ExtractedDocument::new(DocumentKind::Mail, text)
    }
}

/// Extracts from an attachment. It is part of the message, so neither its size nor the number of
/// attachments is limited further.
fn read_attachment(
    extraction: &mut Extraction<'_>,
    location: &Location,
    number: usize,
    attachment: Attachment<'_>,
) -> Result<(), ExtractError> {
    let name = match &attachment {
        Attachment::Part(part) => choose_attachment_name(extraction, part),
        Attachment::File(file) => {
            part::clean_file_name(&file.name).unwrap_or_else(|| "part".into())
        }
        Attachment::Encrypted => "encrypted".into(),
        Attachment::Signed(_) => "message.eml".into(),
    };
    let mut location = extraction.member_location(location, &format!("{number}/{name}"));
    location.name = name;
    match attachment {
        Attachment::Part(part) => {
            let bytes = decode_attachment(&part);
            if is_message(&part) {
                extract_message(extraction, &location, &bytes)
            } else {
                extraction.extract_member(&location, &bytes)
            }
        }
        Attachment::File(file) => extraction.extract_member(&location, &file.bytes),
        Attachment::Encrypted => {
            let error = ExtractError::Encrypted("mail");
            extraction.record_result(&location, Err(error))
        }
        Attachment::Signed(bytes) => extract_message(extraction, &location, &bytes),
    }
}

fn is_message(part: &Part<'_>) -> bool {
    ["message/rfc822", "message/global", "message/news"]
        .iter()
        .any(|it| part.is(it))
}

fn extract_message(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let result = extraction
        .limits
        .check_depth(location.depth)
        .and_then(|()| extract(extraction, location, bytes));
    extraction.record_result(location, result)
}

/// Returns the bytes of an attachment. Text is converted to UTF-8, because its extractor does not
/// know the encoding declared by the mail.
fn decode_attachment<'m>(part: &Part<'m>) -> Cow<'m, [u8]> {
    let bytes = part.decode_body();
    let is_text = part.content_type.main_type() == "text";
    if is_text && part.content_type.parameter("charset").is_some() && !bytes.is_ascii() {
        return part.decode_text(&bytes).into_bytes().into();
    }
    bytes
}

/// Returns the attachment's file name without folders. If there is none, returns a name that
/// indicates the content type.
fn choose_attachment_name(extraction: &Extraction<'_>, part: &Part<'_>) -> String {
    part.file_name().unwrap_or_else(|| {
        if is_message(part) {
            return "message.eml".to_string();
        }
        match extraction.find_extension(&part.content_type.value) {
            Some(extension) => format!("part.{extension}"),
            None => "part".to_string(),
        }
    })
}

fn read_metadata(headers: &Headers<'_>) -> DocumentMetadata {
    let addresses = |name: &str| -> Vec<String> {
        headers
            .values(name)
            .flat_map(|value| parse_addresses(&value))
            .collect()
    };
    let first_of = |names: [&str; 2]| {
        let [first, second] = names.map(addresses);
        if first.is_empty() { second } else { first }
    };
    let ids = |name: &str| -> Vec<String> {
        headers
            .values(name)
            .flat_map(|value| parse_message_ids(&value))
            .collect()
    };
    DocumentMetadata {
        from: first_of(["from", "sender"]),
        to: first_of(["to", "newsgroups"]),
        cc: addresses("cc"),
        bcc: addresses("bcc"),
        reply_to: addresses("reply-to"),
        subject: headers.text("subject").as_deref().and_then(clean_property),
        date_ms: headers
            .values("date")
            .find_map(|value| date::parse_date(&value)),
        message_id: ids("message-id").into_iter().next(),
        in_reply_to: ids("in-reply-to"),
        references: ids("references"),
        list_id: headers.text("list-id").as_deref().and_then(clean_property),
        ..DocumentMetadata::default()
    }
}

/// Sets missing properties from the header of a mail.
pub(super) fn complete_metadata(metadata: &mut DocumentMetadata, header: &[u8]) {
    let headers = Part::parse(header, "text/plain").headers;
    let found = read_metadata(&headers);
    let lists = [
        (&mut metadata.from, found.from),
        (&mut metadata.to, found.to),
        (&mut metadata.cc, found.cc),
        (&mut metadata.reply_to, found.reply_to),
        (&mut metadata.in_reply_to, found.in_reply_to),
        (&mut metadata.references, found.references),
    ];
    for (known, found) in lists {
        if known.is_empty() {
            *known = found;
        }
    }
    metadata.message_id = metadata.message_id.take().or(found.message_id);
    metadata.list_id = metadata.list_id.take().or(found.list_id);
    metadata.date_ms = metadata.date_ms.or(found.date_ms);
}

/// Returns the delivery date: that of the newest `Received` field, which ends with a date, or that
/// of the `From …` line of an mbox.
fn read_delivery_date(headers: &Headers<'_>, first_line: &[u8]) -> Option<i64> {
    let received = headers.values("received").find_map(|value| {
        let (_, date) = value.rsplit_once(';')?;
        date::parse_date(date)
    });
    received.or_else(|| {
        let line = String::from_utf8_lossy(first_line.strip_prefix(b"From ")?).into_owned();
        let (_, date) = line.trim_start().split_once(char::is_whitespace)?;
        date::parse_date(date)
    })
}

#[cfg(test)]
mod tests {
    use crate::error::ExtractError;
    use crate::fixtures::{extract_documents, extract_outputs};
    use crate::output::{DocumentKind, ExtractionCounts, Output};

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
        --B\nContent-Type: font/ttf\nContent-Disposition: attachment; filename=a.ttf\n\
        Content-Transfer-Encoding: base64\n\nAAEAAAAuLi4u\n\
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
                Output::Failure(_) | Output::Skipped(_) => None,
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

    fn check_text(mail: &str, expected: &str) {
        assert_eq!(
            extract_documents("a.eml", mail.as_bytes())[0].text,
            expected,
            "{mail}"
        );
    }

    /// A mail with these alternatives: their types and contents.
    fn alternatives(parts: &[(&str, &str)]) -> String {
        let mut mail = "From: a\nContent-Type: multipart/alternative; boundary=A\n\n".to_string();
        for (media_type, content) in parts {
            mail += &format!("--A\nContent-Type: {media_type}\n\n{content}\n");
        }
        mail + "--A--\n"
    }

    #[test]
    fn the_best_body_is_chosen() {
        let page = format!("<p>{}</p>", "words ".repeat(50));
        let words = "words ".repeat(50);
        let words = words.trim_end();
        check_text(
            "From: a\nSubject: s\nContent-Type: text/html\n\n<p>one<p>two<script>x</script>",
            "one\n\ntwo",
        );
        check_text(
            &alternatives(&[
                ("text/plain", "plain words"),
                ("text/html", "<p>Plain html"),
            ]),
            "plain words",
        );
        // The plain one says something else, and is not much shorter.
        check_text(
            &alternatives(&[
                (
                    "text/plain",
                    "This message is in HTML. Your program cannot show it.",
                ),
                (
                    "text/html",
                    "<p>We meet on Friday at the old mill by the river.",
                ),
            ]),
            "We meet on Friday at the old mill by the river.\n\n\
             This message is in HTML. Your program cannot show it.",
        );
        check_text(
            &alternatives(&[("text/plain", " \n"), ("text/html", "<p>html")]),
            "html",
        );
        let stub = [
            ("text/plain", "Your program shows no HTML."),
            ("text/html", &page),
        ];
        check_text(&alternatives(&stub), words);
        check_text(&alternatives(&[("text/html", &page)]), words);
        let invitation = "BEGIN:VCALENDAR\nSUMMARY:Bread\nEND:VCALENDAR";
        let invited = [("text/plain", "Come"), ("text/calendar", invitation)];
        check_text(&alternatives(&invited), "Come\n\nBread");
        check_text("words alone", "words alone");
        check_text(
            "Subject: s\nContent-Type: multipart/mixed; boundary=B\n\nlost",
            "lost",
        );
    }

    #[test]
    fn damaged_headers_are_read() {
        let mail = b"From x@y Mon Jan  1 00:00:00 2024\nFrom: B\xe4r <b@x.org>\nReceived: by x; Tue, 2 Jan 2024 03:04:05 +0100\n\
            SUBJECT: Gr\xfc\xdfe aus der K\xfcche\nDate: now\nContent-Type: text/plain; charset=us-ascii\n\n\
            Die Gr\xf6\xdfe der T\xfcr ist f\xfcr alle gleich";
        let document = &extract_documents("1700000000.M1P2.host:2,S", mail)[0];
        assert_eq!(
            document.title.as_deref(),
            Some("Gr\u{fc}\u{df}e aus der K\u{fc}che")
        );
        assert_eq!(document.metadata.from, ["B\u{e4}r <b@x.org>"]);
        assert_eq!(document.metadata.date_ms, Some(1_704_161_045_000));
        assert_eq!(document.text, "Die Größe der Tür ist für alle gleich");
    }

    #[test]
    fn messages_are_detected_by_fields_or_names() {
        let kind = |name: &str, bytes: &[u8]| extract_documents(name, bytes)[0].kind;
        for (name, bytes) in [
            ("a", "Path: x\nNewsgroups: a.b\nSubject: c\n\nd"),
            ("cur/1700000000.M1P2.host:2,S", "Subject: a\n\nb"),
            ("inbox/17", "X-Y: 1\nSubject: a\n\nb"),
            ("a.emlx", "20 \nTo: a\nSubject: b\n\nc\n<?xml?>"),
            ("draft.eml", "Subject: x\n"),
        ] {
            assert_eq!(kind(name, bytes.as_bytes()), DocumentKind::Mail, "{name}");
        }
        assert_eq!(kind("17", b"words"), DocumentKind::Text);
        assert_eq!(kind("notes", b"Subject: a\n\nb"), DocumentKind::Text);
        let apple = b"20 \nTo: a\nSubject: b\n\nc\n<?xml?>";
        assert_eq!(extract_documents("a.emlx", apple)[0].text, "c");
    }

    #[test]
    fn attachments_refer_to_their_mail() {
        let mail = "Message-ID: <out@x>\nContent-Type: multipart/mixed; boundary=B\n\n\
            --B\nContent-Type: image/png\nContent-ID: <i>\n\npicture\n\
            --B\nContent-Type: text/csv\nContent-Disposition: attachment\n\na,b\n\
            --B\nContent-Type: message/rfc822\n\nMessage-ID: <in@x>\nContent-Type: multipart/mixed; boundary=C\n\n\
            --C\nContent-Disposition: attachment; filename*=utf-8''%C3%A4.txt\n\nwords\n--C--\n\
            --B\nContent-Type: text/plain; name=v.txt\nContent-Transfer-Encoding: x-uuencode\n\n\
            begin 644 v.txt\n%:&5L;&\\\n`\nend\n\
            --B\nContent-Type: text/plain\n\nbegin 644 u.txt\n%:&5L;&\\\n`\nend\n--B--\n";
        let found: Vec<_> = extract_documents("a.eml", mail.as_bytes())
            .into_iter()
            .map(|document| {
                let mail = document.metadata.attached_to.unwrap_or_default();
                (
                    document.inner_path.unwrap_or_default(),
                    mail.inner_path,
                    mail.message_id,
                )
            })
            .collect();
        let outer = Some("out@x".to_string());
        let inner_path = "!/2/message.eml".to_string();
        let expected = [
            (String::new(), None, None),
            ("!/1/part.csv".into(), None, outer.clone()),
            (inner_path.clone(), None, outer.clone()),
            (
                format!("{inner_path}!/1/ä.txt"),
                Some(inner_path),
                Some("in@x".to_string()),
            ),
            ("!/3/v.txt".into(), None, outer.clone()),
            ("!/4/u.txt".into(), None, outer),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn nested_messages_are_read_to_the_limit_of_depth() {
        let mut mail = "Subject: 0\n\nwords".to_string();
        for depth in 1..=5 {
            mail = format!("Subject: {depth}\nContent-Type: message/rfc822\n\n{mail}");
        }
        assert_eq!(extract_documents("a.eml", mail.as_bytes()).len(), 6);
        let deeper = format!("Subject: 6\nContent-Type: message/rfc822\n\n{mail}");
        let (_, counts) = extract_outputs("a.eml", deeper.as_bytes());
        assert_eq!(
            counts.map(|counts| (counts.documents, counts.failures)),
            Ok((6, 1))
        );
    }

    #[test]
    fn encrypted_mails_are_said_to_be_encrypted() {
        for content_type in [
            "multipart/encrypted; boundary=B\n\n--B\n\nx\n--B--",
            "application/pkcs7-mime\nContent-Transfer-Encoding: base64\n\nMAsGCSqGSIb3DQEHAw==",
            "text/plain\n\n-----BEGIN PGP MESSAGE-----\n\nhQ==\n-----END PGP MESSAGE-----\n",
        ] {
            let mail = format!("Subject: s\nContent-Type: {content_type}");
            let (outputs, _) = extract_outputs("a.eml", mail.as_bytes());
            let [Output::Document(document), Output::Failure(failure)] = &outputs[..] else {
                panic!("{outputs:?}")
            };
            assert_eq!(
                (document.title.as_deref(), document.text.as_str()),
                (Some("s"), "")
            );
            assert_eq!(failure.inner_path, "!/1/encrypted");
            assert_eq!(failure.error, ExtractError::Encrypted("mail"));
        }
    }
}
