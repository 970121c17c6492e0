//! The documents that share a key of an index that is about to become unique.

use windrow_document::{Document, Value};
use windrow_fold::{Direction, RecordId};
use windrow_interrupt::{Interrupt, PacedInterrupt};

use crate::collection::Collection;
use crate::error::Error;
use crate::read::Reader;

/// The maximal number of reported `_id`s, which must fit a reply.
const IDS_MAX: usize = 10_000;

impl Collection {
    /// Returns the `_id`s of documents that share a key, grouped by key. `interrupt` stops the
    /// search.
    pub fn duplicate_keys(
        &self,
        index: &str,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<Vec<Value>>, Error> {
        let mut interrupt = PacedInterrupt::new(interrupt);
        let reader = self.reader_without_age_limit()?;
        let number = reader.indexes().iter().position(|one| one.name() == index);
        let number = number.ok_or_else(|| Error::IndexNotFound(index.to_owned()))?;
        let mut cursor = reader.entries(number, Direction::Forward)?;
        let (mut found, mut ids) = (Vec::new(), 0);
        let (mut last, mut sharing) = (Vec::new(), Vec::<RecordId>::new());
        while cursor.next()? && ids < IDS_MAX {
            interrupt.step()?;
            if last != cursor.key() {
                ids += take(&reader, &mut sharing, &mut found)?;
                last.clear();
                last.extend_from_slice(cursor.key());
            }
            if sharing.last() != Some(&cursor.id()) {
                sharing.push(cursor.id());
            }
        }
        take(&reader, &mut sharing, &mut found)?;
        Ok(found)
    }
}

/// Moves `sharing` to `found` if it has several `_id`s. Returns how many.
fn take(
    reader: &Reader,
    sharing: &mut Vec<RecordId>,
    found: &mut Vec<Vec<Value>>,
) -> Result<usize, Error> {
    let records = std::mem::take(sharing);
    if records.len() < 2 {
        return Ok(0);
    }
    let mut ids = Vec::new();
    for record in records.into_iter().take(IDS_MAX) {
        if let Some(bytes) = reader.get(record)? {
            let id = Document::from_validated(&bytes).get("_id");
            ids.extend(id.map(|id| id.to_value()));
        }
    }
    let count = ids.len();
    found.push(ids);
    Ok(count)
}
