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
    collect(index, document, scratch, &mut entries)?;
    Ok(entries)
}

fn collect(
    index: &Index,
    document: Document<'_>,
    scratch: &mut Scratch,
    entries: &mut Entries,
) -> Result<(), Error> {
    let mut emit = |key: &[u8], payload: &[u8]| {
        // Of equal keys the smallest payload counts, as in tails and builds.
        let known = entries.entry(key.to_vec());
        let known = known.or_insert_with(|| payload.to_vec());
        if payload < known.as_slice() {
            *known = payload.to_vec();
        }
    };
    Ok(index.definition.entries(document, scratch, &mut emit)?)
}

/// The entries of a document that is stored. What could not be stored today may have been by an older
/// build (a number in a path that is a place in an array and a name): it has the entries that come before
/// the error, since that is what maps took in of it. So it can be deleted, and mended.
pub(super) fn entries_of_stored(
    index: &Index,
    document: Document<'_>,
    scratch: &mut Scratch,
) -> Entries {
    let mut entries = Entries::new();
    // The error is of the writer who brought it.
    let _ = collect(index, document, scratch, &mut entries);
    entries
}

/// What must not be there twice in a unique index.
pub(crate) fn without_marks(mut entries: Entries) -> Entries {
    entries.retain(|key, _| !is_mark(key));
    entries
}
