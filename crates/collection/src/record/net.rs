//! The net effect of one commit's operations. A transaction may change a document several times,
//! but all entries of a commit have one position, so only the last version may become entries.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use windrow_fold::RecordId;

use super::{AddedKey, IndexChange, Operation, documents};
use crate::ids::MapId;

/// The net change of a document that existed before the commit or was inserted by it.
#[derive(Default)]
struct NetChange {
    /// The last version, or `None` if the document was deleted.
    document: Option<Bytes>,
    /// The last payload by map and key, or `None` if the key was removed.
    keys: BTreeMap<(MapId, Vec<u8>), Option<Vec<u8>>>,
}

/// Returns operations with the same net effect, at most one per document. If no document has two
/// operations, these are the given ones.
pub fn net(operations: Vec<Operation>) -> Vec<Operation> {
    if !has_repeated_documents(&operations) {
        return operations;
    }
    let (mut inserts, mut changed) = (Vec::new(), BTreeMap::<RecordId, NetChange>::new());
    for operation in operations {
        match operation {
            Operation::Insert {
                first, documents, ..
            } => inserts.push((first, documents)),
            Operation::Update {
                id,
                document,
                changes,
                ..
            } => changed.entry(id).or_default().take(Some(document), changes),
            Operation::Delete { id, changes, .. } => {
                changed.entry(id).or_default().take(None, changes);
            }
        }
    }
    let mut operations = Vec::new();
    for (first, documents) in inserts {
        insert(first, &documents, &mut changed, &mut operations);
    }
    let others = changed.into_iter();
    operations.extend(others.map(|(id, changed)| changed.operation(id)));
    operations
}

/// Returns `true` if a document has two operations.
fn has_repeated_documents(operations: &[Operation]) -> bool {
    let (mut inserted, mut seen) = (Vec::new(), BTreeSet::new());
    for operation in operations {
        match operation {
            Operation::Insert {
                first,
                documents: all,
                ..
            } => {
                let end = first.0.saturating_add(documents(all).count() as u64);
                inserted.push(*first..RecordId(end));
            }
            Operation::Update { id, .. } | Operation::Delete { id, .. } => {
                if !seen.insert(*id) {
                    return true;
                }
            }
        }
    }
    inserted
        .into_iter()
        .any(|range| seen.range(range).next().is_some())
}

/// Inserts documents in their last versions, without those that were deleted later.
fn insert(
    first: RecordId,
    buffer: &Bytes,
    changed: &mut BTreeMap<RecordId, NetChange>,
    operations: &mut Vec<Operation>,
) {
    // The offset and the record id of the first document that was not pushed yet.
    let (mut start, mut start_id, mut end) = (0, first, 0);
    let mut push = |first: RecordId, documents: Bytes| {
        if !documents.is_empty() {
            operations.push(Operation::Insert {
                first,
                documents,
                hashes: Vec::new(),
            });
        }
    };
    for ((offset, document), id) in documents(buffer).zip(first.and_following()) {
        end = offset + document.as_bytes().len();
        let Some(change) = changed.remove(&id) else {
            continue;
        };
        push(start_id, buffer.slice(start..offset));
        if let Some(document) = change.document {
            push(id, document);
        }
        (start, start_id) = (end, id.next());
    }
    push(start_id, buffer.slice(start..end));
}

impl NetChange {
    fn take(&mut self, document: Option<Bytes>, changes: Vec<IndexChange>) {
        self.document = document;
        for change in changes {
            let map = change.map;
            let removed = change.removed.into_iter().map(|key| (key, None));
            let added = change.added.into_iter();
            let added = added.map(|added| (added.key, Some(added.payload)));
            let keys = removed.chain(added);
            self.keys
                .extend(keys.map(|(key, payload)| ((map, key), payload)));
        }
    }

    fn operation(self, id: RecordId) -> Operation {
        let mut changes: Vec<IndexChange> = Vec::new();
        for ((map, key), payload) in self.keys {
            if changes.last().is_none_or(|last| last.map != map) {
                changes.push(IndexChange {
                    map,
                    ..IndexChange::default()
                });
            }
            if let Some(change) = changes.last_mut() {
                match payload {
                    None => change.removed.push(key),
                    Some(payload) => change.added.push(AddedKey { key, payload }),
                }
            }
        }
        match self.document {
            Some(document) => Operation::Update {
                id,
                document,
                changes,
                detail: Bytes::new(),
            },
            None => Operation::Delete {
                id,
                changes,
                detail: Bytes::new(),
            },
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use windrow_document::doc;

    fn buffer(numbers: &[i32]) -> Bytes {
        let documents = numbers.iter().map(|number| doc! { "_id": *number });
        let bytes: Vec<u8> = documents.flat_map(|one| one.as_bytes().to_vec()).collect();
        Bytes::from(bytes)
    }

    fn insert(first: u64, numbers: &[i32]) -> Operation {
        Operation::Insert {
            first: RecordId(first),
            documents: buffer(numbers),
            hashes: Vec::new(),
        }
    }

    fn changes(removed: &[&str], added: &[&str]) -> Vec<IndexChange> {
        let key = |key: &&str| key.as_bytes().to_vec();
        let added = added.iter().map(|one| AddedKey {
            key: key(one),
            payload: Vec::new(),
        });
        vec![IndexChange {
            map: MapId(7),
            removed: removed.iter().map(key).collect(),
            added: added.collect(),
        }]
    }

    fn update(id: u64, number: i32, removed: &[&str], added: &[&str]) -> Operation {
        Operation::Update {
            id: RecordId(id),
            document: buffer(&[number]),
            changes: changes(removed, added),
            detail: Bytes::new(),
        }
    }

    fn delete(id: u64, removed: &[&str]) -> Operation {
        Operation::Delete {
            id: RecordId(id),
            changes: changes(removed, &[]),
            detail: Bytes::new(),
        }
    }

    fn check(operations: Vec<Operation>, expected: Vec<Operation>) {
        assert_eq!(net(operations), expected);
    }

    #[test]
    fn operations_on_distinct_documents_are_unchanged() {
        let operations = || {
            vec![
                insert(5, &[1, 2]),
                update(3, 9, &["a"], &["b"]),
                delete(4, &[]),
            ]
        };
        check(operations(), operations());
    }

    #[test]
    fn inserted_documents_have_their_last_version() {
        check(
            vec![insert(5, &[1, 2, 3]), update(6, 9, &["a"], &["b"])],
            vec![insert(5, &[1]), insert(6, &[9]), insert(7, &[3])],
        );
        check(
            vec![insert(5, &[1, 2, 3]), delete(5, &["a"]), delete(7, &["b"])],
            vec![insert(6, &[2])],
        );
        check(
            vec![insert(5, &[1]), update(5, 2, &[], &[]), delete(5, &["a"])],
            vec![],
        );
    }

    #[test]
    fn the_last_change_of_a_key_counts() {
        check(
            vec![
                update(3, 1, &["a"], &["b"]),
                update(3, 2, &["b"], &["a", "c"]),
            ],
            vec![update(3, 2, &["b"], &["a", "c"])],
        );
        check(
            vec![update(3, 1, &["a"], &["b"]), delete(3, &["b"])],
            vec![delete(3, &["a", "b"])],
        );
    }
}
