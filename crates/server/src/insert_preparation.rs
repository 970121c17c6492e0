//! Prepares the documents of an insert: each with its `_id` first, in one buffer, without those
//! that cannot be stored.
//!
//! Documents that need no change are not decoded: two searches for bytes show whether a closer look
//! is needed.

use std::ops::Range;

use bytes::Bytes;
use windrow_collection::DOCUMENT_BYTES_MAX;
use windrow_document::object_id::ObjectIdSource;
use windrow_document::{Document, DocumentBuf, DocumentBuilder, Type, ValueRef};
use windrow_invariant::Bug;
use windrow_wire::{CommandError, ErrorCode, RequestDocuments};

use crate::clock;

/// Documents that are ready to be inserted.
#[derive(Debug, Default)]
pub struct PreparedInsert {
    pub bytes: Bytes,
    /// The parts of the buffer that are inserted at once.
    pub chunks: Vec<InsertChunk>,
    /// The index in the command of each document in the buffer. Empty if all indexes are equal.
    pub numbers: Vec<u32>,
    /// The indexes of documents that were refused, and their errors.
    pub refused: Vec<(usize, CommandError)>,
}

/// A sequence of whole documents in the buffer.
#[derive(Debug, PartialEq)]
pub struct InsertChunk {
    pub range: Range<usize>,
    /// The index of its first document in the buffer.
    pub first: usize,
    pub count: usize,
}

impl InsertChunk {
    /// Returns the index in the command of a document of the chunk.
    pub fn number(&self, numbers: &[u32], place: usize) -> usize {
        let place = self.first + place;
        numbers.get(place).map_or(place, |number| *number as usize)
    }
}

/// Maximum bytes of a chunk with more than one document. A chunk is one log record.
const CHUNK_BYTES: usize = 4 << 20;

/// Maximum nesting depth of a stored document. It is less than that of a message, so that the
/// document fits in a reply.
pub const DEPTH_MAX: usize = 180;

/// A document with fewer bytes cannot be nested deeper than [`DEPTH_MAX`].
const SHALLOW_BYTES: usize = DEPTH_MAX * 7;

/// The name `_id` with its null byte, as it follows the type of the first element.
const ID_NAME: &[u8] = b"_id\0";

/// The offset of the first element's type in a document.
const FIRST_TYPE: usize = 4;

/// Prepares the documents. If `ordered` is set, stops at the first refused document. If
/// `keeps_zero` is set, zero timestamps are not replaced by the current time.
pub fn prepare(
    documents: &RequestDocuments<'_>,
    ordered: bool,
    keeps_zero: bool,
    ids: &ObjectIdSource,
) -> Result<PreparedInsert, Bug> {
    let mut output = Output::new(documents);
    let mut prepared = PreparedInsert::default();
    let buffer = documents.buffer();
    for number in 0..documents.count() {
        let range = documents.range(number);
        let range = range.ok_or_else(|| Bug::new(format!("a command has no document {number}")))?;
        let document = Document::from_validated(bytes_at(buffer, &range)?);
        match examine(document, ids, keeps_zero) {
            Ok(None) => output.take(range)?,
            Ok(Some(changed)) => output.put(changed.as_bytes())?,
            Err(error) => {
                prepared.refused.push((number, error));
                if ordered {
                    break;
                }
                continue;
            }
        }
        output.numbers.push(number as u32);
    }
    let Output {
        bytes,
        chunks,
        numbers,
        ..
    } = output.finish()?;
    let is_same = prepared.refused.is_empty();
    Ok(PreparedInsert {
        bytes: Bytes::from(bytes),
        chunks,
        numbers: if is_same { Vec::new() } else { numbers },
        ..prepared
    })
}

fn bytes_at<'a>(buffer: &'a [u8], range: &Range<usize>) -> Result<&'a [u8], Bug> {
    let bytes = buffer.get(range.clone());
    bytes.ok_or_else(|| Bug::new(format!("a command has no bytes at {range:?}")))
}

/// The output buffer. Adjacent documents are copied together.
struct Output<'a> {
    input: &'a [u8],
    /// The range of the input that is not copied yet.
    pending: Range<usize>,
    bytes: Vec<u8>,
    chunks: Vec<InsertChunk>,
    numbers: Vec<u32>,
}

impl<'a> Output<'a> {
    fn new(documents: &RequestDocuments<'a>) -> Output<'a> {
        let mut output = Output {
            input: documents.buffer(),
            pending: 0..0,
            bytes: Vec::with_capacity(documents.extent().len()),
            chunks: Vec::new(),
            numbers: Vec::with_capacity(documents.count()),
        };
        output.chunks.push(InsertChunk {
            range: 0..0,
            first: 0,
            count: 0,
        });
        output
    }

    /// Appends a document of the input.
    fn take(&mut self, range: Range<usize>) -> Result<(), Bug> {
        self.place(range.len())?;
        if self.pending.end != range.start {
            self.flush()?;
            self.pending.start = range.start;
        }
        self.pending.end = range.end;
        Ok(())
    }

    /// Appends a new document.
    fn put(&mut self, document: &[u8]) -> Result<(), Bug> {
        self.place(document.len())?;
        self.flush()?;
        self.bytes.extend_from_slice(document);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Bug> {
        let pending = std::mem::replace(&mut self.pending, 0..0);
        self.bytes
            .extend_from_slice(bytes_at(self.input, &pending)?);
        Ok(())
    }

    /// Adds a document to the last chunk, or starts a new chunk.
    fn place(&mut self, length: usize) -> Result<(), Bug> {
        let first = self.numbers.len();
        let chunk = self.chunks.last_mut();
        let chunk = chunk.ok_or_else(|| Bug::new("the documents of an insert have no chunk"))?;
        if chunk.range.is_empty() || chunk.range.len() + length <= CHUNK_BYTES {
            chunk.range.end += length;
            chunk.count += 1;
            return Ok(());
        }
        let start = chunk.range.end;
        let range = start..start + length;
        self.chunks.push(InsertChunk {
            range,
            first,
            count: 1,
        });
        Ok(())
    }

    fn finish(mut self) -> Result<Output<'a>, Bug> {
        self.flush()?;
        self.chunks.retain(|chunk| !chunk.range.is_empty());
        Ok(self)
    }
}

/// Returns the document to store, or `None` if it can be stored as it is. If `keeps_zero` is set,
/// zero timestamps are kept.
pub fn examine(
    document: Document<'_>,
    ids: &ObjectIdSource,
    keeps_zero: bool,
) -> Result<Option<DocumentBuf>, CommandError> {
    let bytes = document.as_bytes();
    if bytes.len() > DOCUMENT_BYTES_MAX {
        let message = format!(
            "object to insert too large. size in bytes: {}, max size: {DOCUMENT_BYTES_MAX}",
            bytes.len()
        );
        return Err(CommandError::new(ErrorCode::BSONObjectTooLarge, message));
    }
    check_depth(document)?;
    let has_id_in_front = bytes
        .get(FIRST_TYPE + 1..)
        .is_some_and(|rest| rest.starts_with(ID_NAME));
    if has_id_in_front && is_plain(bytes) {
        return Ok(None);
    }
    let needs_change = check_elements(document)? && !keeps_zero;
    if has_id_in_front && !needs_change {
        return Ok(None);
    }
    let changed = with_id_in_front(document, ids, keeps_zero);
    if changed.as_bytes().len() > DOCUMENT_BYTES_MAX {
        return Err(CommandError::new(
            ErrorCode::BSONObjectTooLarge,
            format!("object to insert too large with its _id, max size: {DOCUMENT_BYTES_MAX}"),
        ));
    }
    Ok(Some(changed))
}

/// Returns `true` if the bytes show that the document needs no change: no `$`, no byte that is the
/// type of a timestamp, and an `_id` with a type that needs no check.
fn is_plain(bytes: &[u8]) -> bool {
    let id_type = bytes.get(FIRST_TYPE).copied().and_then(Type::from_byte);
    let is_simple = !matches!(
        id_type,
        None | Some(Type::Array | Type::Regex | Type::Undefined)
    );
    is_simple && memchr::memchr2(b'$', Type::Timestamp as u8, bytes).is_none()
}

/// Checks names and `_id`. Returns `true` if a zero timestamp has to be set.
fn check_elements(document: Document<'_>) -> Result<bool, CommandError> {
    let mut needs_change = false;
    for (name, value) in document {
        match (name, value) {
            ("_id", id) => check_id(id)?,
            ("$ref" | "$id" | "$db", _) => {
                let message = format!("Document can't have {name} prefixed field names: {name}");
                return Err(CommandError::new(ErrorCode::BadValue, message));
            }
            (_, ValueRef::Timestamp(timestamp)) if timestamp.bits() == 0 => needs_change = true,
            _ => {}
        }
    }
    Ok(needs_change)
}

/// Checks the type and the content of an `_id`.
fn check_id(id: ValueRef<'_>) -> Result<(), CommandError> {
    match id {
        ValueRef::Array(_) | ValueRef::Regex { .. } | ValueRef::Undefined => {
            let message = format!("can't use a {} for _id", id.type_of().name());
            Err(CommandError::new(ErrorCode::BadValue, message))
        }
        ValueRef::Document(document) => check_id_names(document),
        _ => Ok(()),
    }
}

/// Checks the names at all levels. The depth is limited by [`DEPTH_MAX`].
fn check_id_names(id: Document<'_>) -> Result<(), CommandError> {
    for (name, value) in id {
        if name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db") {
            let message = format!(
                "_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."
            );
            let code = ErrorCode::DollarPrefixedFieldName;
            return Err(CommandError::new(code, message));
        }
        match value {
            ValueRef::Document(inner) => check_id_names(inner)?,
            ValueRef::Array(inner) => check_id_names(inner.as_document())?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns the document with its `_id` first, or a new one, and with the current time in zero
/// timestamps unless they are kept.
pub fn with_id_in_front(
    document: Document<'_>,
    ids: &ObjectIdSource,
    keeps_zero: bool,
) -> DocumentBuf {
    let mut builder =
        DocumentBuilder::with_buffer(Vec::with_capacity(document.as_bytes().len() + 17));
    let id = document.get("_id");
    builder.append(
        "_id",
        id.unwrap_or_else(|| ValueRef::ObjectId(ids.next_now())),
    );
    let mut elements = document.elements();
    let mut seen_id = false;
    while let Some(element) = elements.next_raw() {
        if element.name == b"_id" && !std::mem::replace(&mut seen_id, true) {
            continue;
        }
        match (element.value(), element.name_str()) {
            (Some(ValueRef::Timestamp(timestamp)), Some(name))
                if timestamp.bits() == 0 && !keeps_zero =>
            {
                builder.append(name, ValueRef::Timestamp(clock::timestamp()));
            }
            _ => builder.append_element(&element),
        }
    }
    builder.finish()
}

/// Fails if documents and arrays are nested deeper than [`DEPTH_MAX`].
pub fn check_depth(document: Document<'_>) -> Result<(), CommandError> {
    if document.as_bytes().len() < SHALLOW_BYTES || is_within(document, DEPTH_MAX) {
        return Ok(());
    }
    Err(CommandError::new(
        ErrorCode::Overflow,
        format!("cannot insert document because it exceeds {DEPTH_MAX} levels of nesting"),
    ))
}

fn is_within(document: Document<'_>, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return false;
    };
    let mut elements = document.elements();
    while let Some(element) = elements.next_raw() {
        let fits = match element.type_of {
            Type::Document | Type::Array => {
                is_within(Document::from_validated(element.bytes), below)
            }
            Type::JavaScriptWithScope => match element.value() {
                Some(ValueRef::JavaScriptWithScope { scope, .. }) => is_within(scope, below),
                _ => true,
            },
            _ => true,
        };
        if !fits {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::request_for_tests;
    use windrow_document::{Timestamp, Value, doc};

    /// Checks the prepared documents, and the indexes of those that are refused.
    fn check(
        documents: Vec<DocumentBuf>,
        ordered: bool,
        expected: &[DocumentBuf],
        refused: &[usize],
    ) {
        let list: Vec<Value> = documents.into_iter().map(Value::from).collect();
        let request = request_for_tests(&doc! { "insert": "c", "documents": list, "$db": "a" });
        let documents = request.documents("documents").unwrap().unwrap();
        let prepared = prepare(&documents, ordered, false, &ObjectIdSource::new(1)).unwrap();
        let bytes: Vec<u8> = expected
            .iter()
            .flat_map(|it| it.as_bytes().to_vec())
            .collect();
        assert_eq!(prepared.bytes, bytes);
        let numbers: Vec<usize> = prepared.refused.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, refused);
        let covered: usize = prepared.chunks.iter().map(|chunk| chunk.range.len()).sum();
        assert_eq!(covered, bytes.len());
    }

    #[test]
    fn documents_are_prepared_for_storage() {
        let plain = || doc! { "_id": 1, "a": "$x" };
        check(vec![plain(), plain()], true, &[plain(), plain()], &[]);
        let moved = doc! { "_id": 2, "a": 1, "b": 3 };
        check(
            vec![doc! { "a": 1, "_id": 2, "b": 3 }, plain()],
            true,
            &[moved, plain()],
            &[],
        );
        let bad = || doc! { "_id": [1] };
        check(vec![plain(), bad(), plain()], true, &[plain()], &[1]);
        check(
            vec![bad(), plain(), bad(), plain()],
            false,
            &[plain(), plain()],
            &[0, 2],
        );
        check(vec![bad()], false, &[], &[0]);
    }

    #[test]
    fn zero_timestamps_become_the_current_time() {
        let zero = Value::Timestamp(Timestamp::from_bits(0));
        let document = doc! { "_id": 1, "t": (zero.clone()), "o": { "t": zero } };
        let changed = examine(document.as_document(), &ObjectIdSource::new(1), false)
            .unwrap()
            .unwrap();
        let time = |value: Option<ValueRef<'_>>| match value {
            Some(ValueRef::Timestamp(timestamp)) => timestamp.bits(),
            other => panic!("{other:?}"),
        };
        assert_ne!(time(changed.get("t")), 0);
        let inner = changed.get("o").and_then(ValueRef::as_document).unwrap();
        assert_eq!(time(inner.get("t")), 0);
    }

    #[test]
    fn large_inserts_are_split_into_chunks() {
        let large = |id: i32| doc! { "_id": id, "s": ("x".repeat(3 << 20)) };
        let list: Vec<Value> = (0..3).map(|id| Value::from(large(id))).collect();
        let request = request_for_tests(&doc! { "insert": "c", "documents": list, "$db": "a" });
        let documents = request.documents("documents").unwrap().unwrap();
        let prepared = prepare(&documents, true, false, &ObjectIdSource::new(1)).unwrap();
        let firsts: Vec<usize> = prepared.chunks.iter().map(|chunk| chunk.first).collect();
        assert_eq!(firsts, [0, 1, 2]);
        for (chunk, id) in prepared.chunks.iter().zip(0..) {
            let bytes = prepared.bytes.get(chunk.range.clone()).unwrap();
            assert_eq!(bytes, large(id).as_bytes());
        }
    }
}
