//! The entries of a document in an index, by key.

use std::collections::BTreeMap;

use windrow_document::Document;
use windrow_index::{Scratch, is_mark};
use windrow_mql::interrupt;

use crate::error::Error;
use crate::index::Index;

/// Payloads by key.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns the entries of a document, including the marks of its arrays, see [`without_marks`].
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

/// Returns the entries of a stored document. An older version of Windrow may have stored a document
/// that is rejected today, for example one where a number in a path is both an array position and a
/// name. The maps contain its entries up to the error, so these are returned, and the document can
/// be deleted or corrected. Fails if the operation is interrupted or meets a bug: returning some
/// entries would leave the others in the index.
pub(super) fn entries_of_stored(
    index: &Index,
    document: Document<'_>,
    scratch: &mut Scratch,
) -> Result<Entries, Error> {
    let mut entries = Entries::new();
    match collect(index, document, scratch, &mut entries) {
        Err(Error::Language(error)) => {
            interrupt::data_error(error)?;
        }
        collected => collected?,
    }
    Ok(entries)
}

/// Returns the keys that a unique index must not contain twice.
pub(crate) fn without_marks(mut entries: Entries) -> Entries {
    entries.retain(|key, _| !is_mark(key));
    entries
}
