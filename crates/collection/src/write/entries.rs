//! The entries of a document in an index, by key.

use std::collections::BTreeMap;

use windrow_document::Document;
use windrow_index::{Scratch, is_mark};

use crate::error::Error;
use crate::index::Index;

/// Payloads by key.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// With the marks of its arrays, which are no keys: see [`without_marks`].
pub(crate) fn entries_of(
    index: &Index,
    document: Document<'_>,
    scratch: &mut Scratch,
) -> Result<Entries, Error> {
    let mut entries = Entries::new();
    let definition = &index.definition;
    definition.entries(document, scratch, &mut |key, payload| {
        // Of equal keys the smallest payload counts, as in tails and builds.
        let known = entries.entry(key.to_vec());
        let known = known.or_insert_with(|| payload.to_vec());
        if payload < known.as_slice() {
            *known = payload.to_vec();
        }
    })?;
    Ok(entries)
}

/// What must not be there twice in a unique index.
pub(crate) fn without_marks(mut entries: Entries) -> Entries {
    entries.retain(|key, _| !is_mark(key));
    entries
}
