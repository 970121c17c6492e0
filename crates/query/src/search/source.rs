//! A search index of a collection, as queries of the crate `search` see it.
//!
//! A field of such a query is the beginning of the keys of its terms: the path, a zero byte and the kind
//! of the entries.

use std::sync::Arc;

use parking_lot::Mutex;
use windrow_search::ids::SetIds;
use windrow_search::{END, FieldStatistics, IdSet, Ids, Postings, Terms};

use crate::Error;
use crate::row::Interrupt;
use crate::source::{Direction, EntryCursor, RecordCursor, RecordId, Source};
use crate::text::lists::{Lists, TermList};

/// A search index at a snapshot.
pub struct IndexSource<'s> {
    source: &'s dyn Source,
    index: usize,
    lists: &'s Lists,
    /// The keys that filters of the query go through, from the first to, without, the last.
    ranges: &'s [Vec<KeyRange>],
    interrupt: &'s dyn Interrupt,
}

/// Keys from the first to, without, the second.
pub type KeyRange = (Vec<u8>, Vec<u8>);

/// Keys between two questions to the interrupt.
const KEYS_PER_CHECK: usize = 256;

impl<'s> IndexSource<'s> {
    pub fn new(
        source: &'s dyn Source,
        index: usize,
        lists: &'s Lists,
        ranges: &'s [Vec<KeyRange>],
        interrupt: &'s dyn Interrupt,
    ) -> IndexSource<'s> {
        IndexSource {
            source,
            index,
            lists,
            ranges,
            interrupt,
        }
    }

    fn list(&self, key: &[u8]) -> Result<TermList, Error> {
        self.lists.open(self.source, self.index, key)
    }

    /// All records of the collection.
    fn records_of(&self, mut records: Box<dyn RecordCursor>) -> Result<SetIds, Error> {
        let mut found = IdSet::default();
        let mut met = 0_usize;
        while records.next()? {
            met += 1;
            if met.is_multiple_of(KEYS_PER_CHECK) {
                self.interrupt.check()?;
            }
            found.insert(records.id().0);
        }
        Ok(found.into_ids())
    }

    /// All records with a key in one of the ranges.
    fn records_within(&self, ranges: &[KeyRange]) -> Result<SetIds, Error> {
        let mut found = IdSet::default();
        let mut cursor = self.source.entries(self.index, Direction::Forward)?;
        for (from, to) in ranges {
            cursor.seek(from, RecordId(0))?;
            let mut met = 0_usize;
            while cursor.next()? && cursor.key() < to.as_slice() {
                met += 1;
                if met.is_multiple_of(KEYS_PER_CHECK) {
                    self.interrupt.check()?;
                }
                found.insert(cursor.id().0);
            }
        }
        Ok(found.into_ids())
    }
}

/// The key of a term of a field.
fn key_of(field: &str, term: &[u8]) -> Vec<u8> {
    [field.as_bytes(), term].concat()
}

/// The field of the entries which say that a record has a field, of the path of any field of it.
pub fn exists_field(path: &str) -> String {
    format!("{path}\0e")
}

/// The field of the terms of a text.
pub fn text_field(path: &str) -> String {
    format!("{path}\0t")
}

/// The field of whole values.
pub fn value_field(path: &str) -> String {
    format!("{path}\0v")
}

/// The path of a field.
pub fn path_of(field: &str) -> &str {
    field.split_once('\0').map_or(field, |(path, _)| path)
}

impl windrow_search::Source for IndexSource<'_> {
    type Postings = TermList;
    type Terms = KeyTerms;
    type Ids = RecordIds;
    type Error = Error;

    fn statistics(&self, field: &str) -> Result<FieldStatistics, Error> {
        let mut list = self.list(exists_field(path_of(field)).as_bytes())?;
        let (records, length) = list.lengths();
        Ok(FieldStatistics { records, length })
    }

    fn postings(&self, field: &str, term: &[u8]) -> Result<Option<TermList>, Error> {
        let list = self.list(&key_of(field, term))?;
        Ok((list.id() != END).then_some(list))
    }

    fn terms(&self, field: &str) -> Result<KeyTerms, Error> {
        let cursor = self.source.entries(self.index, Direction::Forward)?;
        KeyTerms::open(cursor, field, self.lists)
    }

    fn exists(&self, field: &str) -> Result<RecordIds, Error> {
        let list = self.list(exists_field(path_of(field)).as_bytes())?;
        Ok(RecordIds::of_list(list))
    }

    fn all(&self) -> Result<RecordIds, Error> {
        let records = self.source.records(Direction::Forward)?;
        Ok(RecordIds::Set(self.records_of(records)?))
    }

    fn filter(&self, number: usize) -> Result<RecordIds, Error> {
        let ranges = self.ranges.get(number).map_or(&[][..], Vec::as_slice);
        Ok(RecordIds::Set(self.records_within(ranges)?))
    }
}

/// Record ids of a query's filters.
#[derive(Debug)]
pub enum RecordIds {
    List {
        list: TermList,
        count: Option<u64>,
        count_at_most: u64,
    },
    Set(SetIds),
}

impl RecordIds {
    fn of_list(mut list: TermList) -> RecordIds {
        RecordIds::List {
            count: list.count(),
            count_at_most: list.count_at_most(),
            list,
        }
    }
}

impl Ids for RecordIds {
    #[inline]
    fn id(&self) -> u64 {
        match self {
            RecordIds::List { list, .. } => list.id(),
            RecordIds::Set(set) => set.id(),
        }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        match self {
            RecordIds::List { list, .. } => list.next(),
            RecordIds::Set(set) => set.next(),
        }
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        match self {
            RecordIds::List { list, .. } => list.seek(id),
            RecordIds::Set(set) => set.seek(id),
        }
    }

    fn count_at_most(&self) -> u64 {
        match self {
            RecordIds::List { count_at_most, .. } => *count_at_most,
            RecordIds::Set(set) => set.count_at_most(),
        }
    }

    fn count(&self) -> Option<u64> {
        match self {
            RecordIds::List { count, .. } => *count,
            RecordIds::Set(set) => set.count(),
        }
    }
}

/// The distinct terms of a field: keys of the index that begin with the field.
pub struct KeyTerms {
    cursor: Box<dyn EntryCursor>,
    field: Vec<u8>,
    is_at_term: bool,
    error: Arc<Mutex<Option<Error>>>,
}

impl KeyTerms {
    fn open(cursor: Box<dyn EntryCursor>, field: &str, lists: &Lists) -> Result<KeyTerms, Error> {
        let mut terms = KeyTerms {
            cursor,
            field: field.as_bytes().to_vec(),
            is_at_term: false,
            error: lists.error(),
        };
        let first = terms.field.clone();
        terms.go_to(&first)?;
        Ok(terms)
    }

    /// Goes to the first key at or after this one, if it is of the field.
    fn go_to(&mut self, key: &[u8]) -> Result<(), Error> {
        self.cursor.seek(key, RecordId(0))?;
        self.is_at_term = self.cursor.next()? && self.cursor.key().starts_with(&self.field);
        Ok(())
    }

    fn try_to(&mut self, key: &[u8]) {
        if let Err(error) = self.go_to(key) {
            self.is_at_term = false;
            self.error.lock().get_or_insert(error);
        }
    }
}

impl Terms for KeyTerms {
    fn term(&self) -> Option<&[u8]> {
        match self.is_at_term {
            true => self.cursor.key().get(self.field.len()..),
            false => None,
        }
    }

    fn next(&mut self) {
        if self.is_at_term {
            // The least key behind this one.
            let behind = [self.cursor.key(), &[0]].concat();
            self.try_to(&behind);
        }
    }

    fn seek(&mut self, key: &[u8]) {
        let target = [self.field.as_slice(), key].concat();
        if self.is_at_term && self.cursor.key() < target.as_slice() {
            self.try_to(&target);
        }
    }

    fn records(&mut self) -> u64 {
        // The most similar terms are chosen among few, so their postings are counted then.
        1
    }
}
