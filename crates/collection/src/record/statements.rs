//! Which statements of a retryable write a commit contains, and their results. They precede the
//! commit's operations in the same record, so they are durable exactly if the write is.
//!
//! ```text
//! 6 | session id, 16 bytes | number i64 LE | count u32 LE | statement*
//! statement    number i32 LE | result
//! result       as in `statement_result`, or a code whose document the commit's operations contain:
//!              6: inserted; the `_id` of the next inserted document
//!              7: inserted; the next inserted document
//!              8: updated; the new version in the next update
//! ```
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf};
use windrow_invariant::Bug;

use super::transaction::{Origin, SessionKey};
use super::{ID_BYTES, Operation, PayloadReader, documents};
use crate::error::Unreadable;
use crate::statement_result::{Image, StatementResult};

pub(super) const STATEMENTS: u8 = 6;
const INSERTED_ID: u8 = 6;
const INSERTED: u8 = 7;
const UPDATED: u8 = 8;

/// The statements of a retryable write, to be recorded with the write.
#[derive(Clone, Copy, Debug)]
pub struct Statements<'a> {
    /// The session and its transaction number.
    pub origin: Origin,
    /// The statement number of each inserted document, in order. For an update or deletion, its one
    /// number.
    pub numbers: &'a [i32],
    /// Which version of the document the statement's result contains.
    pub image: RetainedImage,
}

/// Which version of a changed document is recorded, because a retry must return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetainedImage {
    /// None. For an inserted document only its `_id` is recorded.
    Id,
    /// The version before the change.
    Before,
    /// The version after the change.
    After,
}

/// The results of statements, as recorded in the log.
#[derive(Debug)]
pub struct StatementRecord {
    pub origin: Origin,
    pub results: Vec<NumberedResult>,
}

/// The result of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberedResult {
    /// The statement number.
    pub statement: i32,
    pub result: StatementResult,
}

fn push_header(payload: &mut Vec<u8>, origin: Origin, count: usize) {
    payload.push(STATEMENTS);
    payload.extend_from_slice(&origin.session.0);
    payload.extend_from_slice(&origin.number.to_le_bytes());
    payload.extend_from_slice(&(count as u32).to_le_bytes());
}

impl Statements<'_> {
    /// Returns the statement number of a document of an insert, or of the only change, which has
    /// index 0. A wrong number here would let the statement run again.
    fn number(&self, index: usize) -> Result<i32, Bug> {
        self.numbers.get(index).copied().ok_or_else(|| {
            let numbers = self.numbers.len();
            Bug::new(format!(
                "a retryable write of {numbers} statements has no statement {index}"
            ))
        })
    }
}

/// Appends that the next inserted documents are these statements; `indexes` are those of the
/// documents in the request.
pub fn push_inserted(
    payload: &mut Vec<u8>,
    statements: &Statements<'_>,
    indexes: impl ExactSizeIterator<Item = usize>,
) -> Result<(), Bug> {
    push_header(payload, statements.origin, indexes.len());
    let code = match statements.image {
        RetainedImage::Id => INSERTED_ID,
        RetainedImage::Before | RetainedImage::After => INSERTED,
    };
    for index in indexes {
        payload.extend_from_slice(&statements.number(index)?.to_le_bytes());
        payload.push(code);
    }
    Ok(())
}

/// Appends that the next update is this statement.
pub fn push_updated(
    payload: &mut Vec<u8>,
    statements: &Statements<'_>,
    old: Document<'_>,
) -> Result<(), Bug> {
    push_one(payload, statements)?;
    match statements.image {
        RetainedImage::Id => StatementResult::Updated(None).push(payload),
        RetainedImage::Before => {
            StatementResult::Updated(Some(Image::Before(old.to_buf()))).push(payload)
        }
        RetainedImage::After => payload.push(UPDATED),
    }
    Ok(())
}

/// Appends that the next deletion is this statement.
pub fn push_deleted(
    payload: &mut Vec<u8>,
    statements: &Statements<'_>,
    old: Document<'_>,
) -> Result<(), Bug> {
    push_one(payload, statements)?;
    let image = (statements.image != RetainedImage::Id).then(|| old.to_buf());
    StatementResult::Deleted(image).push(payload);
    Ok(())
}

/// Appends nothing if it fails.
fn push_one(payload: &mut Vec<u8>, statements: &Statements<'_>) -> Result<(), Bug> {
    let number = statements.number(0)?;
    push_header(payload, statements.origin, 1);
    payload.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

/// Returns the record of results that do not refer to the operations of the commit. It precedes the
/// operations of a transaction's part.
pub fn encode_results(record: &StatementRecord) -> Vec<u8> {
    let mut payload = Vec::new();
    push_header(&mut payload, record.origin, record.results.len());
    for NumberedResult { statement, result } in &record.results {
        payload.extend_from_slice(&statement.to_le_bytes());
        result.push(&mut payload);
    }
    payload
}

/// Reads what this process wrote about statements into a commit's payload. Unreadable bytes are a
/// bug: without the record, a retried statement would run again.
pub fn read_own(payload: &Bytes, operations: &[Operation]) -> Result<Option<StatementRecord>, Bug> {
    let unreadable = || Bug::new("the statements of a log record cannot be read back");
    read(payload, operations).map_err(|Unreadable| unreadable())
}

/// Reads the statement results of a commit's payload; `operations` are the decoded operations.
/// Returns `None` if there are none. Fails if they cannot be read.
pub fn read(
    payload: &Bytes,
    operations: &[Operation],
) -> Result<Option<StatementRecord>, Unreadable> {
    if !has_statements(payload) {
        return Ok(None);
    }
    let at = ID_BYTES + 1;
    let mut reader = PayloadReader {
        payload: payload.clone(),
        at,
    };
    let record = reader.statements(Some(operations));
    record.map(Some).ok_or(Unreadable)
}

/// Returns `true` if the payload contains statement results.
pub fn has_statements(payload: &[u8]) -> bool {
    payload.get(ID_BYTES) == Some(&STATEMENTS)
}

/// Iterates over the documents that operations insert.
fn inserted(operations: &[Operation]) -> impl Iterator<Item = Document<'_>> {
    let buffers = operations.iter().filter_map(|operation| match operation {
        Operation::Insert { documents, .. } => Some(documents),
        _ => None,
    });
    buffers.flat_map(|buffer| documents(buffer).map(|(_, document)| document))
}

/// Iterates over the new versions of the documents that operations update.
fn updated(operations: &[Operation]) -> impl Iterator<Item = Document<'_>> {
    let buffers = operations.iter().filter_map(|operation| match operation {
        Operation::Update { document, .. } => Some(document),
        _ => None,
    });
    buffers.flat_map(|buffer| documents(buffer).map(|(_, document)| document))
}

/// Returns `{_id}` of a document.
fn id_of(document: Document<'_>) -> DocumentBuf {
    let mut id = DocumentBuf::new();
    if let Some(value) = document.get("_id") {
        id.push("_id", value);
    }
    id
}

impl PayloadReader {
    /// Reads what follows the first byte. With the operations, it builds the results; without, it
    /// only skips the bytes.
    pub(super) fn statements(
        &mut self,
        operations: Option<&[Operation]>,
    ) -> Option<StatementRecord> {
        let origin = Origin {
            session: SessionKey(*self.take(16)?.first_chunk()?),
            number: self.u64()?.cast_signed(),
        };
        let count = self.u32()?;
        let mut results = Vec::new();
        // Without operations only the length matters.
        let all = operations.unwrap_or_default();
        let (mut inserted, mut updated) = (inserted(all), updated(all));
        for _ in 0..count {
            let statement = self.u32()?.cast_signed();
            let code = self.byte()?;
            let result = match code {
                INSERTED_ID | INSERTED | UPDATED if operations.is_none() => continue,
                INSERTED_ID => StatementResult::Inserted(id_of(inserted.next()?)),
                INSERTED => StatementResult::Inserted(inserted.next()?.to_buf()),
                UPDATED => StatementResult::Updated(Some(Image::After(updated.next()?.to_buf()))),
                _ => {
                    let document = if StatementResult::has_document(code)? {
                        self.document()?
                    } else {
                        Bytes::new()
                    };
                    StatementResult::read(code, &document)?
                }
            };
            results.push(NumberedResult { statement, result });
        }
        Some(StatementRecord { origin, results })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use windrow_fold::{Position, RecordId};

    use super::*;
    use crate::ids::CollectionId;
    use crate::record::{begin, decode, push_delete, push_insert, push_update};
    use windrow_document::doc;
    use windrow_invariant::tolerate_bugs;

    const ORIGIN: Origin = Origin {
        session: SessionKey([3; 16]),
        number: 12,
    };

    fn statements(numbers: &[i32], image: RetainedImage) -> Statements<'_> {
        Statements {
            origin: ORIGIN,
            numbers,
            image,
        }
    }

    /// A document without a statement number used to be logged as statement 0. A retry of statement
    /// 0 then counted as done.
    #[test]
    fn a_document_without_a_statement_is_a_bug() {
        let old = doc! { "_id": 1 };
        let one = statements(&[4], RetainedImage::Id);
        let none = statements(&[], RetainedImage::Before);
        let before = begin(CollectionId(7));
        let mut payload = before.clone();
        tolerate_bugs(|| {
            push_inserted(&mut Vec::new(), &one, [0, 1].into_iter()).unwrap_err();
            push_updated(&mut payload, &none, old.as_document()).unwrap_err();
            push_deleted(&mut payload, &none, old.as_document()).unwrap_err();
        });
        assert_eq!(payload, before);
        // The record names two documents, but the commit inserts only one.
        let mut payload = begin(CollectionId(7));
        push_inserted(
            &mut payload,
            &statements(&[4, 5], RetainedImage::Id),
            [0, 1].into_iter(),
        )
        .unwrap();
        let inserted = Operation::Insert {
            first: RecordId(1),
            documents: Bytes::from(old.into_bytes()),
            hashes: Vec::new(),
        };
        let payload = Bytes::from(payload);
        tolerate_bugs(|| read_own(&payload, &[inserted])).unwrap_err();
    }

    fn check(payload: Vec<u8>, expected: &[(i32, StatementResult)]) {
        let payload = Bytes::from(payload);
        let (commit, _) = decode(Position(9), payload.clone()).unwrap();
        let record = super::read(&payload, &commit.operations).unwrap().unwrap();
        let expected = expected.iter().map(|(statement, result)| NumberedResult {
            statement: *statement,
            result: result.clone(),
        });
        assert_eq!(record.origin, ORIGIN);
        assert_eq!(record.results, expected.collect::<Vec<_>>());
        for length in ID_BYTES + 1..payload.len() {
            let cut = payload.slice(..length);
            let operations = decode(Position(9), cut.clone()).map(|(commit, _)| commit.operations);
            let _ = super::read(&cut, &operations.unwrap_or_default());
        }
    }

    #[test]
    fn results_round_trip() {
        let (one, two) = (doc! { "_id": 1, "a": 1 }, doc! { "_id": 2 });
        let both = [one.as_bytes(), two.as_bytes()].concat();
        let insert = |image: RetainedImage| {
            let mut payload = begin(CollectionId(7));
            push_inserted(
                &mut payload,
                &statements(&[4, 5, 6], image),
                [0, 2].into_iter(),
            )
            .unwrap();
            push_insert(&mut payload, RecordId(40), 2, both.len() as u32);
            payload.extend_from_slice(&both);
            payload
        };
        let ids = [doc! { "_id": 1 }, doc! { "_id": 2 }].map(StatementResult::Inserted);
        let [first, second] = ids;
        check(insert(RetainedImage::Id), &[(4, first), (6, second)]);
        let whole = [one.clone(), two.clone()].map(StatementResult::Inserted);
        let [first, second] = whole;
        check(insert(RetainedImage::After), &[(4, first), (6, second)]);

        let update = |image: RetainedImage, expected: Option<Image>| {
            let mut payload = begin(CollectionId(7));
            push_updated(&mut payload, &statements(&[-3], image), one.as_document()).unwrap();
            push_update(&mut payload, RecordId(5), 9, two.as_document(), &[], b"");
            check(payload, &[(-3, StatementResult::Updated(expected))]);
        };
        update(RetainedImage::Id, None);
        update(RetainedImage::Before, Some(Image::Before(one.clone())));
        update(RetainedImage::After, Some(Image::After(two.clone())));

        let delete = |image: RetainedImage, expected: Option<DocumentBuf>| {
            let mut payload = begin(CollectionId(7));
            push_deleted(&mut payload, &statements(&[0], image), one.as_document()).unwrap();
            push_delete(&mut payload, RecordId(5), 9, &[], b"");
            check(payload, &[(0, StatementResult::Deleted(expected))]);
        };
        delete(RetainedImage::Id, None);
        delete(RetainedImage::Before, Some(one.clone()));
    }
}
