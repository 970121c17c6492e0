//! The check of a new unique index for duplicate keys.
//!
//! First it reads all entries, concurrently with writers. Then it excludes writers, and looks up
//! the keys of the commits since.

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_document::Document;
use windrow_fold::{Position, RecordId};
use windrow_index::Scratch;

use super::control::BuildControl;
use crate::collection::Collection;
use crate::error::Error;
use crate::index::Index;
use crate::read::Reader;
use crate::record::Operation;
use crate::write::{entries_of, without_marks};

/// Entries between two checks whether to stop.
const ENTRIES_PER_CHECK: usize = 10_000;

/// Reads all entries of unique indexes, concurrently with writers. Returns the position up to which
/// it saw all.
pub(super) fn check_before(
    collection: &Collection,
    indexes: &[Arc<Index>],
    control: &BuildControl<'_>,
) -> Result<Position, Error> {
    let reader = collection.reader_without_age_limit()?;
    for index in indexes.iter().filter(|index| index.definition.unique) {
        check_all(collection, &reader, index, control)?;
    }
    Ok(reader.position())
}

fn check_all(
    collection: &Collection,
    reader: &Reader,
    index: &Arc<Index>,
    control: &BuildControl<'_>,
) -> Result<(), Error> {
    let mut cursor = reader.entries_of_unready(index.map)?;
    let (mut last_key, mut last_id, mut count) = (Vec::new(), None, 0);
    while cursor.next()? {
        count += 1;
        if count % ENTRIES_PER_CHECK == 0 {
            control.interrupt.check()?;
        }
        if last_id.is_some_and(|id: RecordId| id != cursor.id()) && last_key == cursor.key() {
            return Err(collection.duplicate(index, cursor.key(), cursor.payload()));
        }
        last_key.clear();
        last_key.extend_from_slice(cursor.key());
        last_id = Some(cursor.id());
    }
    Ok(())
}

/// Looks up the keys that commits have added after `checked`. The caller excludes all writers.
/// Returns `false` if folds have removed some of these commits.
pub(super) fn check_after(
    collection: &Collection,
    indexes: &[Arc<Index>],
    checked: Position,
) -> Result<bool, Error> {
    let state = collection.state();
    let unique = || indexes.iter().filter(|index| index.definition.unique);
    let has_all = state.generations().any(|it| it.start() <= checked);
    if unique().next().is_some() && !has_all {
        return Ok(false);
    }
    let mut scratch = Scratch::default();
    for index in unique() {
        let mut keys = BTreeSet::new();
        for commit in state.generations().flat_map(|it| it.commits_since(checked)) {
            for operation in &commit.operations {
                collect(index, operation, &mut scratch, &mut keys)?;
            }
        }
        let reader = collection.reader_without_age_limit()?;
        for key in &keys {
            let mut cursor = reader.entries_of_unready(index.map)?;
            cursor.seek(key, RecordId(0))?;
            let first = cursor.next()? && cursor.key() == key.as_slice();
            if first && cursor.next()? && cursor.key() == key.as_slice() {
                return Err(collection.duplicate(index, key, &[]));
            }
        }
    }
    Ok(true)
}

fn collect(
    index: &Index,
    operation: &Operation,
    scratch: &mut Scratch,
    keys: &mut BTreeSet<Vec<u8>>,
) -> Result<(), Error> {
    match operation {
        Operation::Insert { documents, .. } => {
            for (_, document) in crate::record::documents(documents) {
                keys.extend(without_marks(entries_of(index, document, scratch)?).into_keys());
            }
        }
        Operation::Update { document, .. } => {
            let document = Document::from_validated(document);
            keys.extend(without_marks(entries_of(index, document, scratch)?).into_keys());
        }
        Operation::Delete { .. } => {}
    }
    Ok(())
}
