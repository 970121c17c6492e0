//! The source of a query: a snapshot of one collection with its indexes.

use std::sync::Arc;

use bytes::Bytes;
use windrow_document::{Array, Collation, DocumentBuf, ValueRef};
use windrow_index::{Definition, Multikey};
use windrow_invariant::Bug;

use crate::Error;
use crate::key_range::KeyRange;
use crate::plan_cache::PlanCache;
use crate::planner_settings::PlannerSettings;
use crate::statistics::{Statistics, unknown};

pub use windrow_collection::{
    CollectionUuid, Direction, KeyLists, Position, PostingList, RecordId, SearchIndex,
};

/// An index of a snapshot.
#[derive(Clone, Debug)]
pub struct SourceIndex {
    /// The position of the index in [`Source::indexes`].
    pub number: usize,
    /// The definition of the index.
    pub definition: Arc<Definition>,
    /// The components of the fields' paths that contain arrays.
    pub multikey: Multikey,
}

/// An upper bound of all keys.
pub(crate) const KEYS_END: &[u8] = &[0xFF];

/// A view: the collection below it, and the stages that compute its documents.
#[derive(Clone, Copy)]
pub struct ViewParts<'s> {
    /// The source below the view. It is not a view itself.
    pub base: &'s Arc<dyn Source>,
    /// The stages of the view's pipeline, and of the pipelines of all views below it.
    pub stages: Array<'s>,
}

/// A snapshot of one collection. An index number is a position in [`Source::indexes`].
pub trait Source: Send + Sync {
    /// "database.collection".
    fn namespace(&self) -> String;

    /// The collection's UUID. `None` for views and for collections that do not exist.
    fn uuid(&self) -> Option<CollectionUuid> {
        None
    }

    /// Returns `true` if the collection exists.
    fn exists(&self) -> bool {
        true
    }

    /// The parts of a view. The records of a view can be read only through its parts.
    fn view(&self) -> Option<ViewParts<'_>> {
        None
    }

    /// The default collation of the collection. `None`: strings are compared by their bytes.
    fn collation(&self) -> Option<Arc<Collation>> {
        None
    }

    /// The number of documents. For a view, the number of documents of the collection below it.
    fn count(&self) -> u64;

    /// Returns `true` if the entries of the index on `_id` contain the documents.
    fn is_clustered(&self) -> bool {
        false
    }

    /// The indexes that the planner may read. The index on `_id` is the first. Search indexes are
    /// not included.
    fn indexes(&self) -> Vec<Arc<Definition>>;

    /// The search index with this name. Its number is not a position in
    /// [`indexes`](Self::indexes).
    fn search_index(&self, _name: &str) -> Option<SearchIndex> {
        None
    }

    /// The components of the paths of an index that contain arrays.
    fn multikey(&self, index: usize) -> Result<Multikey, Error>;

    /// Returns the document of a record, as BSON bytes.
    fn get(&self, id: RecordId) -> Result<Option<Bytes>, Error>;

    /// Returns the documents of the first of `ids`, as BSON bytes: as many as can be read together
    /// from memory. The result is empty if the source reads documents only one by one.
    fn get_all(&self, _ids: &[RecordId]) -> Result<Vec<Option<Bytes>>, Error> {
        Ok(Vec::new())
    }

    /// Returns the record with this `_id`, and its document.
    fn find(&self, id: ValueRef<'_>) -> Result<Option<(RecordId, Bytes)>, Error>;

    /// Returns a cursor over all records in natural order. In a clustered collection that is the
    /// order of the `_id`s.
    fn records(&self, direction: Direction) -> Result<Box<dyn RecordCursor>, Error>;

    /// Splits all records into about `count` parts of similar size, in natural order. Returns no
    /// parts if the source does not support this.
    fn parts(&self, _count: u64) -> Result<Vec<RecordPart>, Error> {
        Ok(Vec::new())
    }

    /// Returns a cursor over all entries of an index in the order of their keys, then of their
    /// record ids.
    fn entries(&self, index: usize, direction: Direction) -> Result<Box<dyn EntryCursor>, Error>;

    /// Returns a cursor over the entries of an index with exactly this key. The cursor may leave
    /// out entries of other keys.
    fn postings(&self, index: usize, key: &[u8]) -> Result<Box<dyn EntryCursor>, Error> {
        let mut cursor = self.entries(index, Direction::Forward)?;
        cursor.seek(key, RecordId(0))?;
        Ok(cursor)
    }

    /// Returns the postings of a term of a text index. `key` is the key of the term.
    fn posting_list(&self, index: usize, _key: &[u8]) -> Result<PostingList, Error> {
        Err(Bug::new(format!("index {index} of this source has no postings")).into())
    }

    /// Returns the keys of a search index with `from <= key < to`, each with its records.
    fn key_lists(&self, index: usize, _from: &[u8], _to: &[u8]) -> Result<KeyLists, Error> {
        Err(Bug::new(format!("index {index} of this source has no postings")).into())
    }

    /// The server's settings for the choice of plans.
    fn planner_settings(&self) -> Option<&PlannerSettings> {
        None
    }

    /// The plan cache, if it may be used for this source.
    fn plans(&self) -> Option<&PlanCache> {
        self.planner_settings()
            .map(|planner_settings| &planner_settings.plans)
    }

    /// Returns `true` if an index is used even when a collection scan would be cheaper.
    fn prefers_indexes(&self) -> bool {
        self.planner_settings()
            .is_some_and(|planner_settings| planner_settings.restrictions.forbids_table_scans())
    }

    /// The log position of the snapshot. `None` if the source does not show exactly what was stored
    /// up to one position.
    fn position(&self) -> Option<Position> {
        None
    }

    /// Counts a use of the index, for `$indexStats`.
    fn record_use(&self, _index: usize) {}

    /// Counts a collection scan, for `$collStats`.
    fn record_scan(&self) {}

    /// The number of entries with `from <= key < to`, if it is known without reading them.
    fn count_entries(&self, _index: usize, _from: &[u8], _to: &[u8]) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// Returns about `count` keys, in order, that split the entries of an index into parts of
    /// similar size. Returns no keys if the source does not support this.
    fn entry_split_keys(&self, _index: usize, _count: u64) -> Result<Vec<Vec<u8>>, Error> {
        Ok(Vec::new())
    }

    /// Estimates the number of entries with `from <= key < to`.
    fn approximate_count(&self, index: usize, from: &[u8], to: &[u8]) -> Result<u64, Error>;
}

/// The names in a namespace.
pub(crate) struct NamespaceParts<'n> {
    pub database: &'n str,
    pub collection: &'n str,
}

/// Splits [`Source::namespace`] into the names of the database and the collection.
pub(crate) fn split_namespace(namespace: &str) -> Result<NamespaceParts<'_>, Bug> {
    match namespace.split_once('.') {
        Some((database, collection)) => Ok(NamespaceParts {
            database,
            collection,
        }),
        None => Err(Bug::new(format!(
            "the namespace '{namespace}' does not contain a database"
        ))),
    }
}

/// The largest number of ranges whose entries are counted. Larger lists of ranges are sampled.
const RANGES_COUNTED: usize = 64;

/// Estimates the number of entries in all ranges.
pub(crate) fn approximate_count_all(
    source: &dyn Source,
    index: usize,
    ranges: &[KeyRange],
) -> Result<f64, Error> {
    let mut sum = 0;
    let sample = sample_positions(ranges.len());
    let counted = sample.len().max(1);
    for range in sample
        .into_iter()
        .filter_map(|position| ranges.get(position))
    {
        sum += source.approximate_count(index, &range.from, &range.to)?;
    }
    Ok(sum as f64 * ranges.len() as f64 / counted as f64)
}

/// Returns positions spread over a list of this length. The list is divided into `RANGES_COUNTED`
/// parts, and each part contributes one position at a varying offset, so that a pattern that
/// repeats in the list does not bias the sample.
fn sample_positions(length: usize) -> Vec<usize> {
    if length <= RANGES_COUNTED {
        return (0..length).collect();
    }
    let begin = |part: usize| part * length / RANGES_COUNTED;
    // The fractional parts of the multiples of the golden ratio are evenly distributed in 0..1.
    let within = |part: usize| (part as f64 * 0.618_033_988_75).fract();
    let position = |part: usize| {
        let width = begin(part + 1) - begin(part);
        begin(part) + (within(part) * width as f64) as usize
    };
    (0..RANGES_COUNTED).map(position).collect()
}

/// A cursor over records.
pub trait RecordCursor: Send {
    /// Advances to the next record. Returns `false` at the end.
    fn next(&mut self) -> Result<bool, Error>;
    /// The id of the current record.
    fn id(&self) -> RecordId;
    /// The document of the current record.
    fn document(&self) -> &[u8];
    /// The document of the current record, as bytes that outlive the cursor.
    fn document_bytes(&mut self) -> Bytes;
}

/// Opens a cursor over one part of the records.
pub type RecordPart = Box<dyn Fn() -> Result<Box<dyn RecordCursor>, Error> + Send + Sync>;

/// A cursor over the entries of an index.
pub trait EntryCursor: Send {
    /// Advances to the next entry. Returns `false` at the end.
    fn next(&mut self) -> Result<bool, Error>;
    /// The key of the current entry.
    fn key(&self) -> &[u8];
    /// The payload of the current entry: the key shape in ordinary indexes, the score in text
    /// indexes, the document if the collection is clustered by the index.
    fn payload(&self) -> &[u8];
    /// The payload of the current entry, as bytes that outlive the cursor.
    fn payload_bytes(&mut self) -> Bytes;
    /// The record id of the current entry.
    fn id(&self) -> RecordId;
    /// Moves the cursor: the next entry is the first one at or after this key and record id. In a
    /// backward scan it is the last one at or before them.
    fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), Error>;
    /// Moves the cursor to the entries with exactly this key. After them, the cursor may leave out
    /// entries of other keys. Not supported in backward scans.
    fn seek_key(&mut self, key: &[u8]) -> Result<(), Error>;
}

/// The collections that a pipeline can read besides its own.
pub trait Collections: Send + Sync {
    /// Returns a snapshot of a collection. A collection that does not exist has no documents.
    fn source(&self, database: &str, collection: &str) -> Result<Arc<dyn Source>, Error>;

    /// Returns statistics of a collection or view. Fails with 238 if there is no provider of
    /// statistics.
    fn statistics(
        &self,
        _database: &str,
        _collection: &str,
        _statistics: &Statistics,
    ) -> Result<Vec<DocumentBuf>, Error> {
        Err(unknown())
    }
}

/// The source of a collection that does not exist.
#[derive(Clone, Debug)]
pub struct NoCollection {
    /// "database.collection".
    pub namespace: String,
}

impl Source for NoCollection {
    fn namespace(&self) -> String {
        self.namespace.clone()
    }

    fn exists(&self) -> bool {
        false
    }

    fn count(&self) -> u64 {
        0
    }

    fn indexes(&self) -> Vec<Arc<Definition>> {
        Vec::new()
    }

    fn multikey(&self, _: usize) -> Result<Multikey, Error> {
        Ok(Multikey::default())
    }

    fn get(&self, _: RecordId) -> Result<Option<Bytes>, Error> {
        Ok(None)
    }

    fn find(&self, _: ValueRef<'_>) -> Result<Option<(RecordId, Bytes)>, Error> {
        Ok(None)
    }

    fn records(&self, _: Direction) -> Result<Box<dyn RecordCursor>, Error> {
        Ok(Box::new(EmptyCursor))
    }

    fn entries(&self, _: usize, _: Direction) -> Result<Box<dyn EntryCursor>, Error> {
        Ok(Box::new(EmptyCursor))
    }

    fn approximate_count(&self, _: usize, _: &[u8], _: &[u8]) -> Result<u64, Error> {
        Ok(0)
    }
}

/// A cursor without rows.
struct EmptyCursor;

impl RecordCursor for EmptyCursor {
    fn next(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    fn id(&self) -> RecordId {
        RecordId(0)
    }

    fn document(&self) -> &[u8] {
        &[]
    }

    fn document_bytes(&mut self) -> Bytes {
        Bytes::new()
    }
}

impl EntryCursor for EmptyCursor {
    fn next(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    fn key(&self) -> &[u8] {
        &[]
    }

    fn payload(&self) -> &[u8] {
        &[]
    }

    fn payload_bytes(&mut self) -> Bytes {
        Bytes::new()
    }

    fn id(&self) -> RecordId {
        RecordId(0)
    }

    fn seek(&mut self, _: &[u8], _: RecordId) -> Result<(), Error> {
        Ok(())
    }

    fn seek_key(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_ranges_are_spread_over_the_list() {
        for length in [0, 1, 63, 64, 65, 100, 128, 5_000, 1_000_000] {
            let places = sample_positions(length);
            assert_eq!(places.len(), length.min(RANGES_COUNTED));
            let part = length.div_ceil(RANGES_COUNTED);
            assert!(places.iter().all(|place| *place < length), "{length}");
            let steps = places.windows(2).map(|pair| pair[1].checked_sub(pair[0]));
            for step in steps {
                assert!((1..=2 * part).contains(&step.unwrap()), "{length}");
            }
            let odd = places.iter().filter(|place| **place % 2 == 1).count();
            assert!(length < 64 || (16..48).contains(&odd), "{length} {odd}");
        }
    }
}
