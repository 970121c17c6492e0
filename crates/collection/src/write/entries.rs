//! The entries of a document in an index, by key.

use std::collections::BTreeMap;

use windrow_document::Document;
use windrow_index::{Multikey, Scratch};

use crate::error::Error;
use crate::index::Index;

/// Payloads by key.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn entries_of(
    index: &Index,
    document: Document<'_>,
    scratch: &mut Scratch,
) -> Result<Entries, Error> {
    let mut entries = Entries::new();
    let mut multikey = Multikey::of(index.definition.fields.len());
    index
        .definition
        .entries(document, scratch, &mut multikey, &mut |key, payload| {
            // Of equal keys the smallest payload counts, as in tails and builds.
            let known = entries.entry(key.to_vec());
            let known = known.or_insert_with(|| payload.to_vec());
            if payload < known.as_slice() {
                *known = payload.to_vec();
            }
        })?;
    Ok(entries)
}
