//! Documents that may be too long for a catalog row. Longer ones are stored in separate rows, in
//! pieces.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_storage::{Catalog, RowChange, StorageError};

use super::{key, read};

/// The longest document that is stored within a row, in bytes.
const WHOLE_BYTES_MAX: usize = 2_000;
/// The length of a piece, in bytes.
const PIECE_BYTES: usize = 4_000;

/// A document that belongs to a row: a field of the row, or pieces in rows of their own.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongField {
    /// The name of the field in the row.
    pub name: &'static str,
    /// The kind of the rows with the pieces.
    pub kind: u8,
    /// The first number in the keys of these rows.
    pub id: u64,
}

impl LongField {
    /// Stores a document in the row `value`, or returns the changes that write its pieces.
    pub fn put(self, value: &mut DocumentBuf, document: &DocumentBuf) -> Vec<RowChange> {
        let put = |(number, piece): (usize, &[u8])| {
            RowChange::put(key(self.kind, &[self.id, number as u64]), piece.to_vec())
        };
        let changes: Vec<RowChange> = pieces(document).enumerate().map(put).collect();
        if changes.is_empty() {
            value.push(self.name, document.clone());
        }
        changes
    }

    /// Returns the changes that delete the pieces of a document.
    pub fn delete(self, document: &DocumentBuf) -> Vec<RowChange> {
        let numbers = pieces(document).enumerate();
        let delete = |(number, _)| RowChange::delete(key(self.kind, &[self.id, number as u64]));
        numbers.map(delete).collect()
    }

    /// Reads the document from the row `value`, or from its pieces.
    pub fn read(self, value: Document<'_>, catalog: &Catalog) -> Result<DocumentBuf, StorageError> {
        if let Some(document) = value.get(self.name).and_then(ValueRef::as_document) {
            return Ok(document.to_buf());
        }
        let mut bytes = Vec::new();
        for (_, piece) in catalog.scan(&key(self.kind, &[self.id])) {
            bytes.extend_from_slice(&piece);
        }
        Ok(read(&bytes)?.to_buf())
    }
}

/// Iterates over the pieces of a document. There are none if it is stored within its row.
fn pieces(document: &DocumentBuf) -> impl Iterator<Item = &[u8]> {
    let bytes = document.as_bytes();
    let apart = if bytes.len() > WHOLE_BYTES_MAX {
        bytes
    } else {
        &[]
    };
    apart.chunks(PIECE_BYTES)
}

/// Returns the changes that replace rows: `put`, and those of `deletions` whose rows are not
/// written again. A catalog change may contain each key only once.
pub(super) fn replacing(mut put: Vec<RowChange>, mut deletions: Vec<RowChange>) -> Vec<RowChange> {
    deletions.retain(|deletion| put.iter().all(|put| put.key != deletion.key));
    put.extend(deletions);
    put
}
