//! The log record of a commit to one collection, and the commit in memory. For commits to several
//! collections see [`transaction`].
//!
//! ```text
//! payload      collection id u64 LE | statements? | operation*
//! statements   6 | the results of a retryable write's statements, see `statements`
//! operation    insert  1 | first record id u64 LE | document count u32 LE | byte count u32 LE
//!                        | documents
//!              update  4 | record id u64 LE | old byte count u32 LE | document | index changes
//!                        | detail
//!              delete  5 | record id u64 LE | old byte count u32 LE | index changes | detail
//!              2, 3: update and delete without detail, as earlier versions wrote them
//! detail       byte count varint | what change events need, see `event_detail`
//! index changes  count varint, per index: map id varint
//!                | removed count varint, per key: byte count varint, key
//!                | added count varint, per entry: key byte count varint,
//!                  payload byte count varint, key, payload
//! ```
//! Inserted documents have consecutive record ids. Updates and deletions carry the keys that they
//! remove from and add to each index, so that a fold need not read the old document.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

pub mod net;
pub mod statements;
pub mod transaction;

use windrow_fold::{Position, RecordId, varint};

use windrow_document::Document;

use crate::ids::{CollectionId, MapId};
use bytes::Bytes;
use windrow_fold::prefetch::load;

/// A commit to one collection: a log record in the form that tails use.
#[derive(Debug)]
pub struct Commit {
    pub position: Position,
    pub operations: Vec<Operation>,
    /// Memory in bytes.
    pub bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    Insert {
        first: RecordId,
        documents: Bytes,
        hashes: Vec<KeyHashes>,
    },
    Update {
        id: RecordId,
        document: Bytes,
        changes: Vec<IndexChange>,
        detail: Bytes,
    },
    Delete {
        id: RecordId,
        changes: Vec<IndexChange>,
        detail: Bytes,
    },
}

/// The hashes of the keys that the commit's documents add to a unique index, if the writer computed
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyHashes {
    pub map: MapId,
    pub hashes: Vec<u64>,
}

impl KeyHashes {
    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.hashes.as_slice())
    }
}

/// The keys that the change of one document removes from and adds to one index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexChange {
    pub map: MapId,
    pub removed: Vec<Vec<u8>>,
    pub added: Vec<AddedKey>,
}

/// A key that a change adds to an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedKey {
    pub key: Vec<u8>,
    pub payload: Vec<u8>,
}

/// The effect of a commit on the number of documents, their bytes and the record ids in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    pub documents: i64,
    pub bytes: i64,
    /// The largest record id plus one, or 0 if the commit inserts nothing.
    pub next_record: RecordId,
}

impl Effect {
    pub fn add(&mut self, other: Effect) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.next_record = self.next_record.max(other.next_record);
    }
}

const INSERT: u8 = 1;
const UPDATE_WITHOUT_DETAIL: u8 = 2;
const DELETE_WITHOUT_DETAIL: u8 = 3;
const UPDATE: u8 = 4;
const DELETE: u8 = 5;

/// The length of the collection id at the start of a payload, in bytes.
pub const ID_BYTES: usize = 8;

/// Returns the start of a payload: the collection's id.
pub fn begin(collection: CollectionId) -> Vec<u8> {
    collection.0.to_le_bytes().to_vec()
}

/// Appends the header of an insert operation. The documents follow it.
pub fn push_insert(payload: &mut Vec<u8>, first: RecordId, count: u32, bytes: u32) {
    payload.push(INSERT);
    payload.extend_from_slice(&first.0.to_le_bytes());
    payload.extend_from_slice(&count.to_le_bytes());
    payload.extend_from_slice(&bytes.to_le_bytes());
}

pub fn push_update(
    payload: &mut Vec<u8>,
    id: RecordId,
    old_bytes: usize,
    document: Document<'_>,
    changes: &[IndexChange],
    detail: &[u8],
) {
    payload.push(UPDATE);
    payload.extend_from_slice(&id.0.to_le_bytes());
    payload.extend_from_slice(&(old_bytes as u32).to_le_bytes());
    payload.extend_from_slice(document.as_bytes());
    push_changes(payload, changes);
    push_detail(payload, detail);
}

pub fn push_delete(
    payload: &mut Vec<u8>,
    id: RecordId,
    old_bytes: usize,
    changes: &[IndexChange],
    detail: &[u8],
) {
    payload.push(DELETE);
    payload.extend_from_slice(&id.0.to_le_bytes());
    payload.extend_from_slice(&(old_bytes as u32).to_le_bytes());
    push_changes(payload, changes);
    push_detail(payload, detail);
}

fn push_detail(payload: &mut Vec<u8>, detail: &[u8]) {
    varint::put(payload, detail.len() as u64);
    payload.extend_from_slice(detail);
}

fn push_changes(record: &mut Vec<u8>, changes: &[IndexChange]) {
    varint::put(record, changes.len() as u64);
    for change in changes {
        varint::put(record, change.map.0);
        varint::put(record, change.removed.len() as u64);
        for key in &change.removed {
            varint::put(record, key.len() as u64);
            record.extend_from_slice(key);
        }
        varint::put(record, change.added.len() as u64);
        for AddedKey { key, payload } in &change.added {
            varint::put(record, key.len() as u64);
            varint::put(record, payload.len() as u64);
            record.extend_from_slice(key);
            record.extend_from_slice(payload);
        }
    }
}

/// How many bytes ahead [`documents`] prefetches. The end of a document is known only after its
/// first bytes are read, so without this each document costs one wait for memory.
const PREFETCH_DISTANCE: usize = 1 << 10;
/// Of longer documents, only a part of this many bytes is prefetched.
const PREFETCH_BYTES_MAX: usize = 4 * LINE_BYTES;
/// The size of a cache line.
const LINE_BYTES: usize = 64;

/// Iterates over documents that are stored one after the other, with their offsets.
pub fn documents(buffer: &[u8]) -> impl Iterator<Item = (usize, Document<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = buffer.get(at..)?;
        let length = rest
            .first_chunk::<4>()
            .map(|chunk| i32::from_le_bytes(*chunk))?;
        let length = usize::try_from(length).ok().filter(|length| *length >= 5)?;
        let document = Document::from_validated(rest.get(..length)?);
        let ahead = rest.get(PREFETCH_DISTANCE.max(length)..);
        let lines = ahead.unwrap_or_default().chunks(LINE_BYTES);
        let lines = lines.take(length.min(PREFETCH_BYTES_MAX).div_ceil(LINE_BYTES));
        load(lines.filter_map(|line| line.first().copied()));
        at += length;
        Some((at - length, document))
    })
}

/// Counts consecutive documents. Returns `None` if the last one does not end with the buffer.
pub fn count_documents(mut buffer: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !buffer.is_empty() {
        let length = i32::from_le_bytes(*buffer.first_chunk()?);
        let length = usize::try_from(length).ok().filter(|length| *length >= 5)?;
        (_, buffer) = buffer.split_at_checked(length)?;
        count += 1;
    }
    Some(count)
}

/// Returns the collection of a payload, or `None` if the payload is too short.
pub fn collection_of(payload: &[u8]) -> Option<CollectionId> {
    payload
        .first_chunk()
        .map(|chunk| CollectionId(u64::from_le_bytes(*chunk)))
}

/// Decodes the payload of a commit to one collection into the commit and its effect. Returns `None`
/// if this module did not write the payload.
pub fn decode(position: Position, payload: Bytes) -> Option<(Commit, Effect)> {
    let bytes = payload.len();
    let mut reader = PayloadReader {
        payload,
        at: ID_BYTES,
    };
    let (mut operations, mut effect) = (Vec::new(), Effect::default());
    while let Some(kind) = reader.byte() {
        if kind == statements::STATEMENTS && operations.is_empty() {
            reader.statements(None)?;
            continue;
        }
        let (operation, its_effect) = reader.operation(kind)?;
        operations.push(operation);
        effect.add(its_effect);
    }
    Some((
        Commit {
            position,
            operations,
            bytes,
        },
        effect,
    ))
}

struct PayloadReader {
    payload: Bytes,
    at: usize,
}

impl PayloadReader {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.payload.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, count: usize) -> Option<Bytes> {
        let end = self
            .at
            .checked_add(count)
            .filter(|end| *end <= self.payload.len())?;
        let taken = self.payload.slice(self.at..end);
        self.at = end;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?
            .first_chunk()
            .map(|chunk| u32::from_le_bytes(*chunk))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?
            .first_chunk()
            .map(|chunk| u64::from_le_bytes(*chunk))
    }

    fn number(&mut self) -> Option<u64> {
        let mut rest = self.payload.get(self.at..)?;
        let number = varint::take(&mut rest)?;
        self.at = self.payload.len() - rest.len();
        Some(number)
    }

    fn length_and_bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        Some(self.take(length)?.to_vec())
    }

    fn document(&mut self) -> Option<Bytes> {
        let chunk = self.payload.get(self.at..)?.first_chunk::<4>()?;
        self.take(usize::try_from(i32::from_le_bytes(*chunk)).ok()?)
    }

    fn operation(&mut self, kind: u8) -> Option<(Operation, Effect)> {
        match kind {
            INSERT => self.insert(),
            UPDATE | UPDATE_WITHOUT_DETAIL => self.update(kind),
            DELETE | DELETE_WITHOUT_DETAIL => self.delete(kind),
            _ => None,
        }
    }

    fn insert(&mut self) -> Option<(Operation, Effect)> {
        let first = RecordId(self.u64()?);
        let (count, length) = (self.u32()?, self.u32()? as usize);
        let documents = self.take(length)?;
        if count_documents(&documents) != Some(count as usize) {
            return None;
        }
        let effect = Effect {
            documents: i64::from(count),
            bytes: length as i64,
            next_record: RecordId(first.0.checked_add(u64::from(count))?),
        };
        let operation = Operation::Insert {
            first,
            documents,
            hashes: Vec::new(),
        };
        Some((operation, effect))
    }

    fn update(&mut self, kind: u8) -> Option<(Operation, Effect)> {
        let id = RecordId(self.u64()?);
        let old_bytes = self.u32()?;
        let document = self.document()?;
        let effect = Effect {
            bytes: document.len() as i64 - i64::from(old_bytes),
            ..Effect::default()
        };
        let operation = Operation::Update {
            id,
            document,
            changes: self.changes()?,
            detail: if kind == UPDATE {
                self.detail()?
            } else {
                Bytes::new()
            },
        };
        Some((operation, effect))
    }

    fn delete(&mut self, kind: u8) -> Option<(Operation, Effect)> {
        let id = RecordId(self.u64()?);
        let old_bytes = self.u32()?;
        let effect = Effect {
            documents: -1,
            bytes: -i64::from(old_bytes),
            next_record: RecordId::MIN,
        };
        let operation = Operation::Delete {
            id,
            changes: self.changes()?,
            detail: if kind == DELETE {
                self.detail()?
            } else {
                Bytes::new()
            },
        };
        Some((operation, effect))
    }

    fn detail(&mut self) -> Option<Bytes> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    fn changes(&mut self) -> Option<Vec<IndexChange>> {
        let mut changes = Vec::new();
        for _ in 0..self.number()? {
            let mut change = IndexChange {
                map: MapId(self.number()?),
                ..IndexChange::default()
            };
            for _ in 0..self.number()? {
                change.removed.push(self.length_and_bytes()?);
            }
            for _ in 0..self.number()? {
                let (key, payload) = (self.number()?, self.number()?);
                change.added.push(AddedKey {
                    key: self.take(usize::try_from(key).ok()?)?.to_vec(),
                    payload: self.take(usize::try_from(payload).ok()?)?.to_vec(),
                });
            }
            changes.push(change);
        }
        Some(changes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn commits_round_trip() {
        let (one, two) = (doc! { "_id": 1 }, doc! { "_id": 2, "a": "x" });
        let change = IndexChange {
            map: MapId(300),
            removed: vec![b"k".to_vec()],
            added: vec![
                AddedKey {
                    key: b"l".to_vec(),
                    payload: Vec::new(),
                },
                AddedKey {
                    key: Vec::new(),
                    payload: b"p".to_vec(),
                },
            ],
        };
        let documents_bytes = [one.as_bytes(), two.as_bytes()].concat();
        let mut payload = begin(CollectionId(7));
        push_insert(&mut payload, RecordId(40), 2, documents_bytes.len() as u32);
        payload.extend_from_slice(&documents_bytes);
        push_update(
            &mut payload,
            RecordId(5),
            100,
            two.as_document(),
            std::slice::from_ref(&change),
            b"detail",
        );
        push_delete(&mut payload, RecordId(6), 10, &[], b"");
        assert_eq!(collection_of(&payload), Some(CollectionId(7)));
        let (commit, effect) = decode(Position(9), Bytes::from(payload.clone())).unwrap();
        let next_record = RecordId(42);
        let bytes = documents_bytes.len() as i64 + two.as_bytes().len() as i64 - 110;
        assert_eq!(
            effect,
            Effect {
                documents: 1,
                bytes,
                next_record
            }
        );
        let [
            Operation::Insert {
                first: RecordId(40),
                documents: inserted,
                ..
            },
            update,
            delete,
        ] = commit.operations.as_slice()
        else {
            panic!("{commit:?}");
        };
        let found: Vec<Document<'_>> = documents(inserted).map(|(_, document)| document).collect();
        assert_eq!(found, [one.as_document(), two.as_document()]);
        assert!(
            matches!(update, Operation::Update { id: RecordId(5), changes, detail, .. }
            if changes[0] == change && &detail[..] == b"detail")
        );
        assert!(
            matches!(delete, Operation::Delete { id: RecordId(6), changes, detail }
            if changes.is_empty() && detail.is_empty())
        );
        for length in 9..payload.len() {
            let _ = decode(Position(9), Bytes::from(payload[..length].to_vec()));
        }
    }
}
