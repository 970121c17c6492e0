//! The entries that commits add to the maps of a collection.

use std::sync::Arc;

use windrow_document::{Document, ValueRef};
use windrow_fold::{
    Entry, EntryBuffer, EntryBufferBuilder, HashedKey, Position, RecordId, SharedPayload,
};
use windrow_index::{Definition, Scratch};
use windrow_invariant::Bug;
use windrow_mql::interrupt::without_interrupt;

use crate::index::Index;
use crate::record::{self, AddedKey, Commit, IndexChange, Operation};
use crate::unique_keys::key_probe::KeyProbe;
use crate::unique_keys::key_set::KeySet;

fn first_position(commits: &[Arc<Commit>]) -> Position {
    commits
        .first()
        .map_or(Position::ZERO, |commit| commit.position)
}

/// Estimates the number of inserted documents from their record ids. Commits may be out of id
/// order.
fn estimate_documents(commits: &[Arc<Commit>]) -> usize {
    let mut ids: Option<(RecordId, RecordId)> = None;
    // The totals of all inserts, and the insert with the largest ids.
    let (mut count, mut bytes, mut last) = (1, 0, &[][..]);
    for (_, operation) in operations(commits) {
        if let Operation::Insert {
            first, documents, ..
        } = operation
        {
            let (least, largest) = ids.unwrap_or((*first, *first));
            if *first >= largest {
                last = documents;
            }
            ids = Some((least.min(*first), largest.max(*first)));
            (count, bytes) = (count + 1, bytes + documents.len());
        }
    }
    let known = ids.map_or(0, |(least, largest)| (largest.0 - least.0) as usize);
    // The number in the last one is estimated from the average length, or from its first document.
    let first_bytes = || {
        record::documents(last)
            .next()
            .map(|(_, it)| it.as_bytes().len())
    };
    let mean = (bytes - last.len()).checked_div(known).or_else(first_bytes);
    let in_last = last.len() / mean.unwrap_or_default().max(DOCUMENT_BYTES_FEW);
    count + (known + in_last).min(bytes / DOCUMENT_BYTES_FEW)
}

/// Most documents are longer.
const DOCUMENT_BYTES_FEW: usize = 32;

/// Iterates over the operations of commits in order, with their positions.
fn operations(commits: &[Arc<Commit>]) -> impl Iterator<Item = (Position, &Operation)> {
    commits.iter().flat_map(|commit| {
        let operations = commit.operations.iter();
        operations.map(|operation| (commit.position, operation))
    })
}

fn deletion(key: &[u8], id: RecordId, position: Position) -> Entry<'_> {
    Entry {
        key,
        id,
        position,
        deleted: true,
        payload: b"",
    }
}

fn addition<'e>(key: &'e [u8], id: RecordId, position: Position, payload: &'e [u8]) -> Entry<'e> {
    Entry {
        key,
        id,
        position,
        deleted: false,
        payload,
    }
}

pub fn documents_by_record(commits: &[Arc<Commit>]) -> EntryBuffer {
    let mut builder = EntryBufferBuilder::new(first_position(commits), estimate_documents(commits));
    each_document(
        commits,
        &mut builder,
        |builder, _, id, position, payload| {
            builder.add_shared(b"", id, position, payload);
        },
        |builder, id, position, _| builder.add(deletion(b"", id, position)),
    );
    builder.finish()
}

/// Returns the documents of a clustered collection. `entries` is the expected number.
pub fn documents_by_id(id_index: &Index, commits: &[Arc<Commit>], entries: usize) -> EntryBuffer {
    let mut builder = EntryBufferBuilder::new(first_position(commits), entries);
    let mut key = Vec::new();
    each_document(
        commits,
        &mut builder,
        |builder, document, id, position, payload| {
            append_id_key(&id_index.definition, document, &mut key);
            builder.add_shared(&key, id, position, payload);
        },
        |builder, id, position, changes| add_changes(id_index, id, position, changes, builder),
    );
    builder.finish()
}

/// Visits each document version and each deletion in the commits.
fn each_document(
    commits: &[Arc<Commit>],
    builder: &mut EntryBufferBuilder,
    mut add: impl FnMut(&mut EntryBufferBuilder, Document<'_>, RecordId, Position, SharedPayload),
    mut delete: impl FnMut(&mut EntryBufferBuilder, RecordId, Position, &[IndexChange]),
) {
    for (position, operation) in operations(commits) {
        match operation {
            Operation::Insert {
                first, documents, ..
            } => {
                let arena = builder.share(documents.clone());
                for ((offset, document), id) in
                    record::documents(documents).zip(first.and_following())
                {
                    let payload = SharedPayload {
                        arena,
                        offset: offset as u32,
                        length: document.as_bytes().len() as u32,
                    };
                    add(builder, document, id, position, payload);
                }
            }
            Operation::Update { id, document, .. } => {
                let payload = SharedPayload {
                    arena: builder.share(document.clone()),
                    offset: 0,
                    length: document.len() as u32,
                };
                let document = Document::from_validated(document);
                add(builder, document, *id, position, payload);
            }
            Operation::Delete { id, changes, .. } => delete(builder, *id, position, changes),
        }
    }
}

/// Returns the `_id` keys of a clustered collection by record id. An update never changes them.
pub fn ids_by_record(id_index: &Definition, commits: &[Arc<Commit>]) -> EntryBuffer {
    let mut builder = EntryBufferBuilder::new(first_position(commits), estimate_documents(commits));
    let mut key = Vec::new();
    for (position, operation) in operations(commits) {
        match operation {
            Operation::Insert {
                first, documents, ..
            } => {
                for ((_, document), id) in record::documents(documents).zip(first.and_following()) {
                    append_id_key(id_index, document, &mut key);
                    builder.add(addition(&id.0.to_be_bytes(), RecordId::MIN, position, &key));
                }
            }
            Operation::Update { .. } => {}
            Operation::Delete { id, .. } => {
                builder.add(deletion(&id.0.to_be_bytes(), RecordId::MIN, position));
            }
        }
    }
    builder.finish()
}

/// Replaces `key` by the document's key in the index on `_id`.
pub fn append_id_key(id_index: &Definition, document: Document<'_>, key: &mut Vec<u8>) {
    key.clear();
    id_index.append_only_value(key, document.get("_id").unwrap_or(ValueRef::Null));
}

/// Returns an index's entries of commits. `entries` is the expected number.
pub fn index_entries(index: &Index, commits: &[Arc<Commit>], entries: usize) -> EntryBuffer {
    let mut builder = EntryBufferBuilder::new(first_position(commits), entries);
    each_entry(index, commits, |_| true, |entry| builder.add(entry));
    builder.finish()
}

/// Returns an index's entries of one key.
pub fn entries_of(index: &Index, commits: &[Arc<Commit>], probe: &KeyProbe<'_>) -> EntryBuffer {
    let mut builder = EntryBufferBuilder::new(first_position(commits), 0);
    let may_have = |documents: &[u8]| probe.may_be_in(documents);
    each_entry(index, commits, may_have, |entry| {
        if entry.key == probe.key {
            builder.add(entry);
        }
    });
    builder.finish()
}

/// Visits the entries of commits, except inserted documents whose bytes `includes` rejects. It is
/// called for all documents of an operation first.
fn each_entry(
    index: &Index,
    commits: &[Arc<Commit>],
    includes: impl Fn(&[u8]) -> bool,
    mut visit: impl FnMut(Entry<'_>),
) {
    let mut scratch = Scratch::default();
    for (position, operation) in operations(commits) {
        match operation {
            Operation::Insert {
                first, documents, ..
            } if includes(documents) => {
                let numbered = record::documents(documents).zip(first.and_following());
                let included = numbered.filter(|((_, it), _)| includes(it.as_bytes()));
                for ((_, document), id) in included {
                    let mut add = |key: &[u8], payload: &[u8]| {
                        visit(addition(key, id, position, payload));
                    };
                    add_entries(index, document, &mut scratch, &mut add);
                }
            }
            Operation::Insert { .. } => {}
            Operation::Update { id, changes, .. } | Operation::Delete { id, changes, .. } => {
                each_change(index, *id, position, changes, &mut visit);
            }
        }
    }
}

/// Adds the hashes of the keys that a commit adds to an index.
pub fn add_hashes(index: &Index, commit: &Commit, set: &mut KeySet) {
    let mut scratch = Scratch::default();
    for operation in &commit.operations {
        match operation {
            Operation::Insert {
                documents, hashes, ..
            } => match hashes.iter().find(|made| made.map == index.map) {
                Some(made) => set.add(made.hashes.iter().copied()),
                None => {
                    for (_, document) in record::documents(documents) {
                        let mut add = |key: &[u8], _: &[u8]| set.add([HashedKey::new(key).hash]);
                        add_entries(index, document, &mut scratch, &mut add);
                    }
                }
            },
            Operation::Update { changes, .. } | Operation::Delete { changes, .. } => {
                let changes = changes.iter().filter(|change| change.map == index.map);
                for added in changes.flat_map(|change| &change.added) {
                    set.add([HashedKey::new(&added.key).hash]);
                }
            }
        }
    }
}

/// Adds the entries of a document to a buffer. The writer has checked that the document can be
/// indexed. If it cannot after all, it contributes no entry: the bug is logged, and `validate`
/// finds the missing entry.
///
/// A reader may create the entries, but they serve all readers and the next fold, so they are
/// complete even if that reader's operation is interrupted.
fn add_entries(
    index: &Index,
    document: Document<'_>,
    scratch: &mut Scratch,
    add: &mut dyn FnMut(&[u8], &[u8]),
) {
    let made = without_interrupt(|| index.definition.entries(document, scratch, add));
    if let Err(error) = made {
        // Tails cannot fail, so this only logs the bug.
        drop(Bug::new(format!(
            "a stored document cannot be indexed by '{}': {error}",
            index.definition.name
        )));
    }
}

fn add_changes(
    index: &Index,
    id: RecordId,
    position: Position,
    changes: &[IndexChange],
    builder: &mut EntryBufferBuilder,
) {
    each_change(index, id, position, changes, &mut |entry| {
        builder.add(entry)
    });
}

fn each_change(
    index: &Index,
    id: RecordId,
    position: Position,
    changes: &[IndexChange],
    visit: &mut dyn FnMut(Entry<'_>),
) {
    for change in changes.iter().filter(|change| change.map == index.map) {
        for key in &change.removed {
            visit(deletion(key, id, position));
        }
        for AddedKey { key, payload } in &change.added {
            visit(addition(key, id, position, payload));
        }
    }
}
