//! Extracts headers, body and attachments from a mail message.

use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::document::{Extracted, Fields, Kind};
use crate::encoding::truncate;
use crate::error::ExtractError;
use crate::extraction::{Extraction, Place, guarded};
use crate::html;
use crate::limits::Limits;

/// Reads a message and its attachments.
pub(crate) fn read(
    extraction: &mut Extraction<'_>,
    place: &Place,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let message = guarded("mail", || {
        let message = MessageParser::default().parse(bytes);
        message.ok_or_else(|| ExtractError::malformed("mail", "it has no headers"))
    })?;
    read_message(extraction, place, &message)
}

fn read_message(
    extraction: &mut Extraction<'_>,
    place: &Place,
    message: &Message<'_>,
) -> Result<(), ExtractError> {
    extraction.limits.check_depth(place.depth)?;
    let document = document(message, &extraction.limits)?;
    extraction.document(place, document);
    for (number, part) in message.attachments().enumerate() {
        extraction.spent.member(&extraction.limits)?;
        attachment(extraction, place, number + 1, part)?;
    }
    Ok(())
}

fn attachment(
    extraction: &mut Extraction<'_>,
    place: &Place,
    number: usize,
    part: &MessagePart<'_>,
) -> Result<(), ExtractError> {
    let name = attachment_name(part);
    let mut place = extraction.member_place(place, &format!("{number}/{name}"));
    place.name = name;
    if let PartType::Message(message) = &part.body {
        let result = read_message(extraction, &place, message);
        return extraction.settle(&place, result);
    }
    let bytes = part.contents();
    extraction.spent.expanded(bytes.len(), &extraction.limits)?;
    extraction.member(&place, bytes)
}

/// Returns the attachment's file name without folders. If there is none, returns a name that
/// indicates the content type.
fn attachment_name(part: &MessagePart<'_>) -> String {
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

fn document(message: &Message<'_>, limits: &Limits) -> Result<Extracted, ExtractError> {
    let mut text = String::new();
    for part in message.text_bodies() {
        let body = match &part.body {
            PartType::Html(page) => guarded("HTML", || html::read_text(page, limits))?.text,
            _ => part
                .text_contents()
                .unwrap_or_default()
                .trim_end()
                .to_string(),
        };
        if !text.is_empty() && !body.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&body);
    }
    let truncated = truncate(&mut text, limits.text_bytes_max);
    let fields = fields(message);
    Ok(Extracted {
        title: fields.subject.clone(),
        fields,
        truncated,
        ..Extracted::new(Kind::Mail, text)
    })
}

fn fields(message: &Message<'_>) -> Fields {
    Fields {
        from: addresses(message.from()),
        to: addresses(message.to()),
        cc: addresses(message.cc()),
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
        ..Fields::default()
    }
}

fn addresses(header: Option<&Address<'_>>) -> Vec<String> {
    let display = |addr: &mail_parser::Addr<'_>| match (&addr.name, &addr.address) {
        (Some(name), Some(address)) => Some(format!("{name} <{address}>")),
        (Some(one), None) | (None, Some(one)) => Some(one.to_string()),
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
    use crate::document::{Output, Tally};
    use crate::fixtures::{documents, outputs};

    #[test]
    fn headers_and_body_are_read_in_their_encodings() {
        let mail = b"From: =?utf-8?q?Ad=C3=A9le?= <a@x.org>\r\nTo: b@x.org, C <c@x.org>\r\n\
            Subject: =?iso-8859-1?Q?Gr=FC=DFe?=\r\nDate: Tue, 2 Jan 2024 03:04:05 +0100\r\n\
            Message-ID: <1@x.org>\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\
            Content-Transfer-Encoding: quoted-printable\r\n\r\nSch=F6ne W=\r\norte\r\n";
        let [document] = &documents("a.eml", mail)[..] else {
            panic!("one document")
        };
        assert_eq!(document.title.as_deref(), Some("Grüße"));
        assert_eq!(document.text, "Schöne Worte");
        let fields = &document.fields;
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
    fn attachments_of_known_kinds_are_documents() {
        let (outputs, tally) = outputs("a.eml", ATTACHED.as_bytes());
        assert_eq!(
            tally,
            Ok(Tally {
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
    fn html_alone_is_the_body() {
        let mail =
            b"From: a\nSubject: s\nContent-Type: text/html\n\n<p>one<p>two<script>x</script>";
        assert_eq!(documents("a.eml", mail)[0].text, "one\n\ntwo");
    }
}
