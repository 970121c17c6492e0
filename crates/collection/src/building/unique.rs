//! Whether a unique index that was built has a key twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_document::Document;

use super::BuildControl;
use crate::collection::Collection;
use crate::error::Error;
use crate::index::Index;
use crate::read::RecordId;
use crate::record::Operation;
use crate::write::keys_of;

/// Entries between two looks at whether to stop.
const ENTRIES_PER_CHECK: usize = 10_000;

/// Goes through all entries of unique indexes, while others write.
pub(super) fn check_before(
    collection: &Collection,
    indexes: &[Arc<Index>],
    control: &BuildControl<'_>,
) -> Result<(), Error> {
    for index in indexes.iter().filter(|index| index.definition.unique) {
        check_all(collection, index, control)?;
    }
    Ok(())
}

fn check_all(
    collection: &Collection,
    index: &Arc<Index>,
    control: &BuildControl<'_>,
) -> Result<(), Error> {
    let reader = collection.reader()?;
    let mut cursor = reader.entries_of_unready(index.map)?;
    let (mut last_key, mut last_id, mut count) = (Vec::new(), None, 0);
    while cursor.next()? {
        count += 1;
        if count % ENTRIES_PER_CHECK == 0
            && let Some(why) = (control.should_stop)()
        {
            return Err(Error::Interrupted(why));
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

/// With all writers held off: looks at the keys that commits brought while the index was built. No
/// writer has looked for them.
pub(super) fn check_after(collection: &Collection, indexes: &[Arc<Index>]) -> Result<(), Error> {
    for index in indexes.iter().filter(|index| index.definition.unique) {
        let mut keys = BTreeSet::new();
        for commit in collection
            .state()
            .generations()
            .flat_map(|it| it.commits_since(index.since))
        {
            for operation in &commit.operations {
                collect(index, operation, &mut keys)?;
            }
        }
        let reader = collection.reader()?;
        for key in &keys {
            let mut cursor = reader.entries_of_unready(index.map)?;
            cursor.seek(key, RecordId(0))?;
            let first = cursor.next()? && cursor.key() == key.as_slice();
            if first && cursor.next()? && cursor.key() == key.as_slice() {
                return Err(collection.duplicate(index, key, &[]));
            }
        }
    }
    Ok(())
}

fn collect(
    index: &Index,
    operation: &Operation,
    keys: &mut BTreeSet<Vec<u8>>,
) -> Result<(), Error> {
    match operation {
        Operation::Insert { documents, .. } => {
            for (_, document) in crate::record::documents(documents) {
                keys.extend(keys_of(index, document)?.into_keys());
            }
        }
        Operation::Update { document, .. } => {
            let document = Document::from_validated(document);
            keys.extend(keys_of(index, document)?.into_keys());
        }
        Operation::Delete { .. } => {}
    }
    Ok(())
}
