//! Where documents come from: a snapshot of one collection with its indexes.

use std::sync::Arc;

use bytes::Bytes;
use windrow_document::{Array, Collation, DocumentBuf, ValueRef};
use windrow_index::search::SearchDefinition;
use windrow_index::{Definition, Multikey};
use windrow_invariant::Bug;

use crate::Error;
use crate::guidance::Guidance;
use crate::plan_cache::PlanCache;
use crate::statistics::{Statistics, unknown};

pub use windrow_collection::{Direction, KeyLists, PostingList, RecordId};

/// An index as a snapshot sees it.
#[derive(Clone, Debug)]
pub struct SourceIndex {
    /// Its place in [`Source::indexes`].
    pub number: usize,
    pub definition: Arc<Definition>,
    /// Which parts of the fields' paths have met arrays.
    pub multikey: Multikey,
}

/// Comes after the keys of all values.
pub(crate) const BEHIND_KEYS: &[u8] = &[0xFF];

/// A view: what it reads, which is no view, and the stages that make its documents.
#[derive(Clone, Copy)]
pub struct ViewParts<'s> {
    pub base: &'s Arc<dyn Source>,
    pub stages: Array<'s>,
}

/// A snapshot of one collection. Numbers of indexes are places in [`Source::indexes`].
pub trait Source: Send + Sync {
    /// "database.collection".
    fn namespace(&self) -> String;

    /// The collection's UUID; None where there is no collection, or it is a view.
    fn uuid(&self) -> Option<[u8; 16]> {
        None
    }

    /// Whether there is such a collection at all.
    fn exists(&self) -> bool {
        true
    }

    /// What a view is made of; such a source is read by its parts and in no other way.
    fn view(&self) -> Option<ViewParts<'_>> {
        None
    }

    /// How the collection compares strings where a command says nothing; None: by their bytes.
    fn collation(&self) -> Option<Arc<Collation>> {
        None
    }

    /// The number of documents; of a view, of the collection below it.
    fn count(&self) -> u64;

    /// Whether the entries of the index on `_id` carry the documents.
    fn is_clustered(&self) -> bool {
        false
    }

    /// The indexes that the planner may read; the one on `_id` is the first. Search indexes are not among
    /// them.
    fn indexes(&self) -> Vec<Arc<Definition>>;

    /// The number and the definition of the search index with this name. Its number is none of those of
    /// [`indexes`](Self::indexes).
    fn search_index(&self, _name: &str) -> Option<(usize, Arc<SearchDefinition>)> {
        None
    }

    /// Which parts of the paths of an index have met arrays.
    fn multikey(&self, index: usize) -> Result<Multikey, Error>;

    /// A document's bytes.
    fn get(&self, id: RecordId) -> Result<Option<Bytes>, Error>;

    /// The record of an `_id`, and its document.
    fn find(&self, id: ValueRef<'_>) -> Result<Option<(RecordId, Bytes)>, Error>;

    /// All records in natural order: of a clustered collection that of the first index.
    fn records(&self, direction: Direction) -> Result<Box<dyn RecordCursor>, Error>;

    /// All records in about so many parts of like size, in natural order; none where they are not read in
    /// parts.
    fn parts(&self, _count: u64) -> Result<Vec<RecordPart>, Error> {
        Ok(Vec::new())
    }

    /// All entries of an index in the order of their keys, then record ids.
    fn entries(&self, index: usize, direction: Direction) -> Result<Box<dyn EntryCursor>, Error>;

    /// The entries of an index from exactly this key on. Entries of other keys may be left out.
    fn postings(&self, index: usize, key: &[u8]) -> Result<Box<dyn EntryCursor>, Error> {
        let mut cursor = self.entries(index, Direction::Forward)?;
        cursor.seek(key, RecordId(0))?;
        Ok(cursor)
    }

    /// The postings of a term in a text index, whose key this is.
    fn posting_list(&self, index: usize, _key: &[u8]) -> Result<PostingList, Error> {
        Err(Bug::new(format!("index {index} of this source has no postings")).into())
    }

    /// The keys from `from` up to, without, `to`, of a search index, with their records.
    fn key_lists(&self, index: usize, _from: &[u8], _to: &[u8]) -> Result<KeyLists, Error> {
        Err(Bug::new(format!("index {index} of this source has no postings")).into())
    }

    /// What decides over plans besides the collection.
    fn guidance(&self) -> Option<&Guidance> {
        None
    }

    /// The plans that were chosen for the like of it, where they are of use here.
    fn plans(&self) -> Option<&PlanCache> {
        self.guidance().map(|guidance| &guidance.plans)
    }

    /// Whether an index is used wherever one can be.
    fn prefers_indexes(&self) -> bool {
        self.guidance()
            .is_some_and(|guidance| guidance.restrictions.forbids_table_scans())
    }

    /// The position of the log up to which it shows all that was stored, and nothing else. None where it
    /// is no such snapshot.
    fn position(&self) -> Option<u64> {
        None
    }

    /// Counts a plan that uses the index.
    fn note_use(&self, _index: usize) {}

    /// Counts a plan that looks through all records.
    fn note_scan(&self) {}

    /// How many entries have `from <= key < to`, where that is known without reading them.
    fn count_entries(&self, _index: usize, _from: &[u8], _to: &[u8]) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// About so many keys, in order, that cut all entries of an index into parts of like size; none where
    /// they are not read in parts.
    fn entry_cuts(&self, _index: usize, _count: u64) -> Result<Vec<Vec<u8>>, Error> {
        Ok(Vec::new())
    }

    /// About how many entries have `from <= key < to`.
    fn count_about(&self, index: usize, from: &[u8], to: &[u8]) -> Result<u64, Error>;
}

/// The names of database and collection of [`Source::namespace`].
pub(crate) fn split_namespace(namespace: &str) -> Result<(&str, &str), Bug> {
    let parts = namespace.split_once('.');
    parts.ok_or_else(|| Bug::new(format!("the namespace '{namespace}' names no database")))
}

/// Ranges that are counted; the others are taken to be like them.
const RANGES_COUNTED: usize = 64;

/// About how many entries lie in all of these ranges.
pub(crate) fn count_about_all(
    source: &dyn Source,
    index: usize,
    ranges: &[(Vec<u8>, Vec<u8>)],
) -> Result<f64, Error> {
    let mut sum = 0;
    let places = places_counted(ranges.len());
    let counted = places.len().max(1);
    for (from, to) in places.into_iter().filter_map(|place| ranges.get(place)) {
        sum += source.count_about(index, from, to)?;
    }
    Ok(sum as f64 * ranges.len() as f64 / counted as f64)
}

/// Places that lie spread over a list, one in each of so many parts of it, and each elsewhere in its part:
/// what comes again and again in the list is not what stands at all of them.
fn places_counted(length: usize) -> Vec<usize> {
    if length <= RANGES_COUNTED {
        return (0..length).collect();
    }
    let begin = |part: usize| part * length / RANGES_COUNTED;
    // The parts of the golden ratio's multiples lie evenly between 0 and 1.
    let within = |part: usize| (part as f64 * 0.618_033_988_75).fract();
    let place = |part: usize| {
        let width = begin(part + 1) - begin(part);
        begin(part) + (within(part) * width as f64) as usize
    };
    (0..RANGES_COUNTED).map(place).collect()
}

/// Goes through records.
pub trait RecordCursor: Send {
    /// Goes to the next record; false at the end.
    fn next(&mut self) -> Result<bool, Error>;
    fn id(&self) -> RecordId;
    /// The record's document.
    fn document(&self) -> &[u8];
    /// The same, as a view that outlives the cursor.
    fn document_bytes(&mut self) -> Bytes;
}

/// Opens one part of the records.
pub type RecordPart = Box<dyn Fn() -> Result<Box<dyn RecordCursor>, Error> + Send + Sync>;

/// Goes through the entries of an index.
pub trait EntryCursor: Send {
    /// Goes to the next entry; false at the end.
    fn next(&mut self) -> Result<bool, Error>;
    fn key(&self) -> &[u8];
    /// The shape of an ordinary key, the score of a text key, the document where the collection is
    /// clustered by the index.
    fn payload(&self) -> &[u8];
    /// The same, as a view that outlives the cursor.
    fn payload_bytes(&mut self) -> Bytes;
    fn id(&self) -> RecordId;
    /// The next entry will be the first at or after this place; backward, the last at or before.
    fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), Error>;
    /// The next entries will be those of exactly this key; of other keys that follow, some may be
    /// missing. Not backward.
    fn seek_key(&mut self, key: &[u8]) -> Result<(), Error>;
}

/// The collections that a pipeline can reach besides its own.
pub trait Collections: Send + Sync {
    /// A snapshot; of a collection that is not there, one without documents.
    fn source(&self, database: &str, collection: &str) -> Result<Arc<dyn Source>, Error>;

    /// What is known of a collection or view besides. Error 238 where nobody knows.
    fn statistics(&self, _: &str, _: &str, _: &Statistics) -> Result<Vec<DocumentBuf>, Error> {
        Err(unknown())
    }
}

/// The snapshot of a collection that is not there.
#[derive(Clone, Debug)]
pub struct NoCollection {
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
        Ok(Box::new(Nothing))
    }

    fn entries(&self, _: usize, _: Direction) -> Result<Box<dyn EntryCursor>, Error> {
        Ok(Box::new(Nothing))
    }

    fn count_about(&self, _: usize, _: &[u8], _: &[u8]) -> Result<u64, Error> {
        Ok(0)
    }
}

/// A cursor that is at its end.
struct Nothing;

impl RecordCursor for Nothing {
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

impl EntryCursor for Nothing {
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
    fn ranges_are_counted_all_over_a_list() {
        for length in [0, 1, 63, 64, 65, 100, 128, 5_000, 1_000_000] {
            let places = places_counted(length);
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
