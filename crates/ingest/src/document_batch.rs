//! Encodes documents as BSON into a batch.

use bytes::Bytes;
use windrow_document::{Document, DocumentBuilder, ValueRef};
use windrow_extract::{DocumentMetadata, MailReference};

use crate::changes::MovedFile;
use crate::file_signature::FileSigner;
use crate::stored_document::{
    FailureDocument, FileDocument, SkippedDocument, extension, file_name, folders,
    format_document_id,
};
use crate::walk::FileStamp;

/// Documents that are inserted together, encoded one after the other.
#[derive(Debug, Default)]
pub(crate) struct DocumentBatch {
    bytes: Vec<u8>,
    /// Reused for each document.
    buffer: Vec<u8>,
    count: usize,
}

impl DocumentBatch {
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the batch and starts an empty one. The result has no unused capacity, because the
    /// store may retain it.
    pub fn take(&mut self) -> Bytes {
        self.count = 0;
        let next = Vec::with_capacity(self.bytes.len());
        Bytes::from(std::mem::replace(&mut self.bytes, next).into_boxed_slice())
    }

    pub fn push_file(&mut self, document: &FileDocument, signer: &FileSigner) {
        self.push(|builder| {
            append_string(builder, "_id", &document.id);
            append_string(builder, "path", &document.path);
            append_optional(builder, "inner", document.inner.as_deref());
            append_optional(builder, "title", document.title.as_deref());
            append_string(builder, "filename", &document.file_name);
            append_optional(builder, "ext", extension(&document.file_name).as_deref());
            append_strings(builder, "folders", folders(&document.path));
            append_string(builder, "kind", document.kind.as_str());
            append_string(builder, "text", &document.text);
            append_optional(builder, "language", document.language.as_deref());
            append_signed_stamp(builder, document.stamp, &document.path, signer);
            builder.append("indexed", ValueRef::DateTime(document.indexed_ms));
            if document.truncated {
                builder.append("truncated", ValueRef::Bool(true));
            }
            let own_ms = document.metadata.date_ms;
            let time_ms = own_ms.unwrap_or_else(|| document.stamp.modified_ms());
            builder.append("time", ValueRef::DateTime(time_ms));
            append_metadata(builder, &document.metadata);
            if let Some(mail) = &document.metadata.attached_to {
                append_mail_reference(builder, &document.path, mail);
            }
            append_optional(builder, "unread", document.unread.as_deref());
        });
    }

    /// Adds a stored document of a moved file, with its new path.
    pub fn push_moved(
        &mut self,
        document: Document<'_>,
        moved: &MovedFile<'_>,
        now_ms: i64,
        signer: &FileSigner,
    ) {
        let text = |name: &str| document.get(name).and_then(ValueRef::as_str);
        let inner = text("inner");
        let (path, name) = (moved.file.path_text(), |path: &str| file_name(path, inner));
        let has_title = text("title").is_some_and(|title| title != name(&moved.from));
        let is_signed = document.get("signature").is_some();
        self.push(|builder| {
            for (field, value) in document {
                match field {
                    "_id" => append_string(builder, "_id", &format_document_id(&path, inner)),
                    "path" => append_string(builder, "path", &path),
                    "title" if !has_title => append_string(builder, "title", &name(&path)),
                    "filename" => {
                        append_string(builder, "filename", &name(&path));
                        append_optional(builder, "ext", extension(&name(&path)).as_deref());
                    }
                    "folders" => append_strings(builder, "folders", folders(&path)),
                    "size" if is_signed => {
                        append_signed_stamp(builder, moved.file.stamp, &path, signer);
                    }
                    "size" => append_stamp(builder, moved.file.stamp),
                    "ext" | "modified" | "modified_ns" | "changed_ns" | "inode" | "signature" => {}
                    "indexed" => builder.append("indexed", ValueRef::DateTime(now_ms)),
                    "attached_to" => append_moved_reference(builder, value, &moved.from, &path),
                    other => builder.append(other, value),
                }
            }
        });
    }

    /// Adds the documents of another batch.
    pub fn append(&mut self, other: DocumentBatch) {
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
    }

    pub fn push_failure(&mut self, document: &FailureDocument) {
        self.push(|builder| {
            append_string(builder, "_id", &document.id);
            append_string(builder, "path", &document.path);
            append_optional(builder, "inner", document.failure.inner.as_deref());
            append_string(builder, "class", document.failure.class.as_str());
            append_string(builder, "reason", &document.failure.reason);
            if let Some(stamp) = document.stamp {
                append_stamp(builder, stamp);
            }
            builder.append("failed", ValueRef::DateTime(document.failed_ms));
        });
    }

    pub fn push_skipped(&mut self, document: &SkippedDocument) {
        self.push(|builder| {
            append_string(builder, "_id", &document.id);
            append_string(builder, "path", &document.path);
            append_optional(builder, "inner", document.inner.as_deref());
            append_string(builder, "format", &document.format);
            append_string(builder, "reason", &document.reason());
            append_stamp(builder, document.stamp);
            builder.append("skipped", ValueRef::DateTime(document.skipped_ms));
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

fn append_string(builder: &mut DocumentBuilder, name: &str, text: &str) {
    builder.append(name, ValueRef::String(text));
}

fn append_optional(builder: &mut DocumentBuilder, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        append_string(builder, name, text);
    }
}

fn append_stamp(builder: &mut DocumentBuilder, stamp: FileStamp) {
    let size = i64::try_from(stamp.size).unwrap_or(i64::MAX);
    builder.append("size", ValueRef::Int64(size));
    builder.append("modified", ValueRef::DateTime(stamp.modified_ms()));
    builder.append("modified_ns", ValueRef::Int64(stamp.modified_ns));
    builder.append("changed_ns", ValueRef::Int64(stamp.changed_ns));
    builder.append("inode", ValueRef::Int64(stamp.inode.cast_signed()));
}

/// Appends a stamp and the signature of path and stamp.
fn append_signed_stamp(
    builder: &mut DocumentBuilder,
    stamp: FileStamp,
    path: &str,
    signer: &FileSigner,
) {
    append_stamp(builder, stamp);
    let signature = signer.sign(path, &stamp);
    builder.append(
        "signature",
        ValueRef::Binary {
            subtype: 0,
            bytes: &signature,
        },
    );
}

fn append_metadata(builder: &mut DocumentBuilder, metadata: &DocumentMetadata) {
    append_optional(builder, "syntax", metadata.syntax.as_deref());
    append_optional(builder, "author", metadata.author.as_deref());
    append_strings(
        builder,
        "keywords",
        metadata.keywords.iter().map(String::as_str),
    );
    append_optional(builder, "description", metadata.description.as_deref());
    append_strings(
        builder,
        "columns",
        metadata.columns.iter().map(String::as_str),
    );
    append_optional(builder, "album", metadata.album.as_deref());
    append_optional(builder, "camera", metadata.camera.as_deref());
    append_optional(builder, "converter", metadata.converter.as_deref());
    let numbers = [
        ("pages", metadata.pages.map(i64::from)),
        ("width", metadata.width.map(i64::from)),
        ("height", metadata.height.map(i64::from)),
        (
            "duration_ms",
            metadata.duration_ms.and_then(|ms| i64::try_from(ms).ok()),
        ),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            builder.append(name, ValueRef::Int64(number));
        }
    }
    append_strings(builder, "from", metadata.from.iter().map(String::as_str));
    append_strings(builder, "to", metadata.to.iter().map(String::as_str));
    append_strings(builder, "cc", metadata.cc.iter().map(String::as_str));
    append_optional(builder, "subject", metadata.subject.as_deref());
    if let Some(date_ms) = metadata.date_ms {
        builder.append("date", ValueRef::DateTime(date_ms));
    }
    append_mail_headers(builder, metadata);
}

fn append_mail_headers(builder: &mut DocumentBuilder, metadata: &DocumentMetadata) {
    append_optional(builder, "message_id", metadata.message_id.as_deref());
    let lists = [
        ("bcc", &metadata.bcc),
        ("reply_to", &metadata.reply_to),
        ("in_reply_to", &metadata.in_reply_to),
        ("references", &metadata.references),
    ];
    for (name, texts) in lists {
        append_strings(builder, name, texts.iter().map(String::as_str));
    }
    append_optional(builder, "list_id", metadata.list_id.as_deref());
}

/// Appends a reference to the mail to which a document is attached.
fn append_mail_reference(builder: &mut DocumentBuilder, path: &str, mail: &MailReference) {
    builder.begin_document("attached_to");
    let id = format_document_id(path, mail.inner_path.as_deref());
    append_string(builder, "_id", &id);
    append_optional(builder, "message_id", mail.message_id.as_deref());
    builder.end();
}

/// Appends the mail reference of a document whose file was moved.
fn append_moved_reference(
    builder: &mut DocumentBuilder,
    reference: ValueRef<'_>,
    from: &str,
    path: &str,
) {
    builder.begin_document("attached_to");
    for (field, value) in reference.as_document().into_iter().flatten() {
        let id = value.as_str().filter(|_| field == "_id");
        match id.and_then(|id| id.strip_prefix(from)) {
            Some(inner) => append_string(builder, "_id", &format!("{path}{inner}")),
            None => builder.append(field, value),
        }
    }
    builder.end();
}

fn append_strings<'t>(
    builder: &mut DocumentBuilder,
    name: &str,
    texts: impl IntoIterator<Item = &'t str>,
) {
    let mut texts = texts.into_iter().peekable();
    if texts.peek().is_none() {
        return;
    }
    builder.begin_array(name);
    for (number, text) in texts.enumerate() {
        append_string(builder, &number.to_string(), text);
    }
    builder.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, FailureClass};
    use windrow_document::{DocumentBuf, Value, doc};
    use windrow_extract::DocumentKind;

    use crate::walk::FileEntry;

    fn file() -> FileDocument {
        FileDocument {
            id: "/d/mail.mbox/#2".into(),
            path: "/d/mail.mbox".into(),
            inner: Some("#2".into()),
            title: Some("Bread".into()),
            file_name: "mail.mbox".into(),
            kind: DocumentKind::Mail,
            text: "Flour".into(),
            language: Some("en".into()),
            stamp: FileStamp {
                size: 9,
                modified_ns: 2_500_000,
                changed_ns: 5,
                inode: 6,
            },
            indexed_ms: 7,
            truncated: true,
            metadata: DocumentMetadata {
                from: vec!["Ada".into()],
                date_ms: Some(3),
                pages: Some(4),
                keywords: vec!["yeast".into()],
                description: Some("How to".into()),
                columns: vec!["a".into(), "b".into()],
                references: vec!["1@x".into()],
                list_id: Some("Bread <bread.x>".into()),
                attached_to: Some(MailReference {
                    inner_path: Some("#1".into()),
                    message_id: Some("2@x".into()),
                }),
                ..DocumentMetadata::default()
            },
            unread: None,
        }
    }

    fn check(fill: impl FnOnce(&mut DocumentBatch), expected: DocumentBuf) {
        let mut batch = DocumentBatch::default();
        fill(&mut batch);
        assert_eq!(batch.count(), 1);
        let bytes = batch.take();
        assert_eq!(DocumentBuf::from_bytes(bytes.to_vec()), Ok(expected));
        assert_eq!((batch.bytes(), batch.count()), (0, 0));
    }

    /// A moved document is what the file would become under its new path.
    fn check_move() {
        let mut moved_file = file();
        moved_file.title = Some("mail.mbox".into());
        let mut batch = DocumentBatch::default();
        batch.push_file(&moved_file, &signer());
        let stored = DocumentBuf::from_bytes(batch.take().to_vec()).unwrap();
        let stamp = FileStamp {
            changed_ns: 77,
            ..moved_file.stamp
        };
        let entry = FileEntry {
            path: "/e/f/inbox".into(),
            stamp,
            languages: Default::default(),
        };
        let moved = MovedFile {
            from: moved_file.path.clone(),
            file: &entry,
        };
        let expected = FileDocument {
            id: "/e/f/inbox/#2".into(),
            path: "/e/f/inbox".into(),
            title: Some("inbox".into()),
            file_name: "inbox".into(),
            stamp,
            indexed_ms: 8,
            ..moved_file
        };
        batch.push_moved(stored.as_document(), &moved, 8, &signer());
        let found = batch.take();
        batch.push_file(&expected, &signer());
        assert_eq!(found, batch.take());
        check_move_of_row(&moved);
    }

    fn check_move_of_row(moved: &MovedFile<'_>) {
        let row = |path: &str, stamp| SkippedDocument {
            id: format!("{path}/!/y"),
            path: path.into(),
            inner: Some("!/y".into()),
            format: "font".into(),
            stamp,
            skipped_ms: 8,
        };
        let mut batch = DocumentBatch::default();
        batch.push_skipped(&row(&moved.from, file().stamp));
        let stored = DocumentBuf::from_bytes(batch.take().to_vec()).unwrap();
        batch.push_moved(stored.as_document(), moved, 9, &signer());
        let found = batch.take();
        batch.push_skipped(&row(&moved.file.path_text(), moved.file.stamp));
        assert_eq!(found, batch.take());
    }

    fn signer() -> FileSigner {
        FileSigner::with_key(&[7; 32]).unwrap()
    }

    #[test]
    fn documents_have_the_documented_fields() {
        let bytes = signer().sign("/d/mail.mbox", &file().stamp).to_vec();
        let signature = Value::Binary { subtype: 0, bytes };
        check(
            |batch| batch.push_file(&file(), &signer()),
            doc! {
                "_id": "/d/mail.mbox/#2", "path": "/d/mail.mbox", "inner": "#2", "title": "Bread",
                "filename": "mail.mbox", "ext": "mbox", "folders": ["/d", "/"], "kind": "mail", "text": "Flour", "language": "en", "size": 9i64,
                "modified": (Value::DateTime(2)), "modified_ns": 2_500_000i64,
                "changed_ns": 5i64, "inode": 6i64, "signature": (signature),
                "indexed": (Value::DateTime(7)), "truncated": true, "time": (Value::DateTime(3)),
                "keywords": ["yeast"], "description": "How to", "columns": ["a", "b"], "pages": 4i64,
                "from": ["Ada"], "date": (Value::DateTime(3)), "references": ["1@x"],
                "list_id": "Bread <bread.x>",
                "attached_to": { "_id": "/d/mail.mbox/#1", "message_id": "2@x" },
            },
        );
        check_move();
        let failure = FailureDocument {
            id: "/d/x".into(),
            path: "/d/x".into(),
            failure: Failure::new(FailureClass::Malformed, "bad"),
            stamp: Some(FileStamp {
                size: 1,
                modified_ns: -1,
                changed_ns: 0,
                inode: 2,
            }),
            failed_ms: 5,
        };
        check(
            |batch| batch.push_failure(&failure),
            doc! {
                "_id": "/d/x", "path": "/d/x", "class": "malformed", "reason": "bad", "size": 1i64,
                "modified": (Value::DateTime(-1)), "modified_ns": (-1i64),
                "changed_ns": 0i64, "inode": 2i64,
                "failed": (Value::DateTime(5)),
            },
        );
        let skipped = SkippedDocument {
            id: "/d/x/!/y".into(),
            path: "/d/x".into(),
            inner: Some("!/y".into()),
            format: "font".into(),
            stamp: file().stamp,
            skipped_ms: 8,
        };
        check(
            |batch| batch.push_skipped(&skipped),
            doc! {
                "_id": "/d/x/!/y", "path": "/d/x", "inner": "!/y", "format": "font",
                "reason": "no text can be extracted from this format: font", "size": 9i64,
                "modified": (Value::DateTime(2)), "modified_ns": 2_500_000i64,
                "changed_ns": 5i64, "inode": 6i64, "skipped": (Value::DateTime(8)),
            },
        );
        let without_stamp = FailureDocument {
            stamp: None,
            ..failure
        };
        check(
            |batch| batch.push_failure(&without_stamp),
            doc! {
                "_id": "/d/x", "path": "/d/x", "class": "malformed", "reason": "bad",
                "failed": (Value::DateTime(5)),
            },
        );
    }
}
