//! Encodes documents as BSON into a batch.

use bytes::Bytes;
use windrow_document::{DocumentBuilder, ValueRef};
use windrow_extract::DocumentMetadata;

use crate::document::{FailureDocument, FileDocument};
use crate::walk::Stamp;

/// Documents that are inserted together, encoded one after the other.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    bytes: Vec<u8>,
    /// Reused for each document.
    buffer: Vec<u8>,
    count: usize,
}

impl Pending {
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the batch and starts an empty one. The result has no spare capacity, because the
    /// store may keep it for long.
    pub fn take(&mut self) -> Bytes {
        self.count = 0;
        let next = Vec::with_capacity(self.bytes.len());
        Bytes::from(std::mem::replace(&mut self.bytes, next).into_boxed_slice())
    }

    pub fn push_file(&mut self, document: &FileDocument) {
        self.push(|builder| {
            string(builder, "_id", &document.id);
            string(builder, "path", &document.path);
            optional_string(builder, "inner", document.inner.as_deref());
            string(builder, "title", &document.title);
            string(builder, "kind", document.kind.as_str());
            string(builder, "text", &document.text);
            optional_string(builder, "language", document.language.as_deref());
            stamp(builder, document.stamp);
            builder.append("indexed", ValueRef::DateTime(document.indexed_ms));
            if document.truncated {
                builder.append("truncated", ValueRef::Bool(true));
            }
            fields(builder, &document.fields);
        });
    }

    pub fn push_failure(&mut self, document: &FailureDocument) {
        self.push(|builder| {
            string(builder, "_id", &document.id);
            string(builder, "path", &document.path);
            optional_string(builder, "inner", document.failure.inner.as_deref());
            string(builder, "class", document.failure.class.as_str());
            string(builder, "reason", &document.failure.reason);
            if let Some(known) = document.stamp {
                stamp(builder, known);
            }
            builder.append("failed", ValueRef::DateTime(document.failed_ms));
        });
    }

    fn push(&mut self, fill: impl FnOnce(&mut DocumentBuilder)) {
        let mut builder = DocumentBuilder::with_buffer(std::mem::take(&mut self.buffer));
        fill(&mut builder);
        let document = builder.finish();
        self.bytes.extend_from_slice(document.as_bytes());
        self.buffer = document.into_bytes();
        self.count += 1;
    }
}

fn string(builder: &mut DocumentBuilder, name: &str, text: &str) {
    builder.append(name, ValueRef::String(text));
}

fn optional_string(builder: &mut DocumentBuilder, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        string(builder, name, text);
    }
}

fn stamp(builder: &mut DocumentBuilder, stamp: Stamp) {
    let size = i64::try_from(stamp.size).unwrap_or(i64::MAX);
    builder.append("size", ValueRef::Int64(size));
    builder.append("modified", ValueRef::DateTime(stamp.modified_ms()));
    builder.append("modified_ns", ValueRef::Int64(stamp.modified_ns));
}

fn fields(builder: &mut DocumentBuilder, fields: &DocumentMetadata) {
    optional_string(builder, "syntax", fields.syntax.as_deref());
    optional_string(builder, "author", fields.author.as_deref());
    if let Some(pages) = fields.pages {
        builder.append("pages", ValueRef::Int64(pages.into()));
    }
    strings(builder, "from", &fields.from);
    strings(builder, "to", &fields.to);
    strings(builder, "cc", &fields.cc);
    optional_string(builder, "subject", fields.subject.as_deref());
    if let Some(date_ms) = fields.date_ms {
        builder.append("date", ValueRef::DateTime(date_ms));
    }
    optional_string(builder, "message_id", fields.message_id.as_deref());
}

fn strings(builder: &mut DocumentBuilder, name: &str, texts: &[String]) {
    if texts.is_empty() {
        return;
    }
    builder.begin_array(name);
    for (number, text) in texts.iter().enumerate() {
        string(builder, &number.to_string(), text);
    }
    builder.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, FailureClass};
    use windrow_document::{DocumentBuf, Value, doc};
    use windrow_extract::DocumentKind;

    fn file() -> FileDocument {
        FileDocument {
            id: "/d/mail.mbox/#2".into(),
            path: "/d/mail.mbox".into(),
            inner: Some("#2".into()),
            title: "Bread".into(),
            kind: DocumentKind::Mail,
            text: "Flour".into(),
            language: Some("en".into()),
            stamp: Stamp {
                size: 9,
                modified_ns: 2_500_000,
            },
            indexed_ms: 7,
            truncated: true,
            fields: DocumentMetadata {
                from: vec!["Ada".into()],
                date_ms: Some(3),
                pages: Some(4),
                ..DocumentMetadata::default()
            },
        }
    }

    fn check(fill: impl FnOnce(&mut Pending), expected: DocumentBuf) {
        let mut pending = Pending::default();
        fill(&mut pending);
        assert_eq!(pending.count(), 1);
        let bytes = pending.take();
        assert_eq!(DocumentBuf::from_bytes(bytes.to_vec()), Ok(expected));
        assert_eq!((pending.bytes(), pending.count()), (0, 0));
    }

    #[test]
    fn documents_have_the_fields_that_are_drawn() {
        check(
            |pending| pending.push_file(&file()),
            doc! {
                "_id": "/d/mail.mbox/#2", "path": "/d/mail.mbox", "inner": "#2", "title": "Bread",
                "kind": "mail", "text": "Flour", "language": "en", "size": 9i64,
                "modified": (Value::DateTime(2)), "modified_ns": 2_500_000i64,
                "indexed": (Value::DateTime(7)), "truncated": true, "pages": 4i64,
                "from": ["Ada"], "date": (Value::DateTime(3)),
            },
        );
        let failure = FailureDocument {
            id: "/d/x".into(),
            path: "/d/x".into(),
            failure: Failure::of_file(FailureClass::Malformed, "bad"),
            stamp: Some(Stamp {
                size: 1,
                modified_ns: -1,
            }),
            failed_ms: 5,
        };
        check(
            |pending| pending.push_failure(&failure),
            doc! {
                "_id": "/d/x", "path": "/d/x", "class": "malformed", "reason": "bad", "size": 1i64,
                "modified": (Value::DateTime(-1)), "modified_ns": (-1i64),
                "failed": (Value::DateTime(5)),
            },
        );
        let untold = FailureDocument {
            stamp: None,
            ..failure
        };
        check(
            |pending| pending.push_failure(&untold),
            doc! {
                "_id": "/d/x", "path": "/d/x", "class": "malformed", "reason": "bad",
                "failed": (Value::DateTime(5)),
            },
        );
    }
}
