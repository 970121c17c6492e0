//! A search index of a collection, as queries of the crate `search` see it.
//!
//! A field of such a query is the beginning of the keys of its terms: the path, a zero byte and the kind
//! of the entries.

use windrow_index::search::{EXISTS, path_of, prefix};
use windrow_search::ids::SetIds;
use windrow_search::{END, FieldStatistics, IdSet, Ids, Postings, Terms};

use crate::Error;
use crate::row::{Interrupt, Pace};
use crate::source::{Direction, EntryCursor, RecordId, Source};
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

    /// The entries that say that a record has the field of a term, or any other field of its path.
    fn existence(&self, field: &str) -> Result<TermList, Error> {
        self.list(prefix(path_of(field), EXISTS).as_bytes())
    }

    /// All records with a key in one of the ranges.
    fn records_within(&self, ranges: &[KeyRange]) -> Result<SetIds, Error> {
        let (mut found, mut pace) = (IdSet::default(), Pace::default());
        for (from, to) in ranges {
            let mut lists = self.source.key_lists(self.index, from, to)?;
            while lists.next().map_err(storage)? {
                let mut stopped = Ok(());
                let take = &mut |ids: &[u64]| {
                    if stopped.is_ok() {
                        stopped = pace.step(self.interrupt);
                    }
                    for id in ids {
                        found.insert(*id);
                    }
                };
                lists.read(take).map_err(storage)?;
                stopped?;
            }
        }
        Ok(found.into_ids())
    }

    /// All records of the collection: each has one entry in the index on `_id`.
    fn all_records(&self) -> Result<SetIds, Error> {
        let (mut found, mut pace) = (IdSet::default(), Pace::default());
        let mut cursor = self.source.entries(0, Direction::Forward)?;
        while cursor.next()? {
            pace.step(self.interrupt)?;
            found.insert(cursor.id().0);
        }
        Ok(found.into_ids())
    }
}

/// The error of reading keys.
pub fn storage(error: windrow_collection::StorageError) -> Error {
    windrow_collection::Error::from(error).into()
}

/// The key of a term of a field.
fn key_of(field: &str, term: &[u8]) -> Vec<u8> {
    [field.as_bytes(), term].concat()
}

impl<'s> windrow_search::Source for IndexSource<'s> {
    type Postings = TermList;
    type Terms = KeyTerms<'s>;
    type Ids = RecordIds;
    type Error = Error;

    fn statistics(&self, field: &str) -> Result<FieldStatistics, Error> {
        let (records, length) = self.existence(field)?.lengths();
        Ok(FieldStatistics { records, length })
    }

    fn postings(&self, field: &str, term: &[u8]) -> Result<Option<TermList>, Error> {
        let list = self.list(&key_of(field, term))?;
        Ok((list.id() != END).then_some(list))
    }

    fn terms(&self, field: &str) -> Result<KeyTerms<'s>, Error> {
        KeyTerms::open(self, field)
    }

    fn exists(&self, field: &str) -> Result<RecordIds, Error> {
        Ok(RecordIds::of_list(self.existence(field)?))
    }

    fn all(&self) -> Result<RecordIds, Error> {
        Ok(RecordIds::Set(self.all_records()?))
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

    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        match self {
            RecordIds::List { list, .. } => list.fill(first, bits),
            RecordIds::Set(set) => set.fill(first, bits),
        }
    }
}

/// The distinct terms of a field: keys of the index that begin with the field.
pub struct KeyTerms<'s> {
    source: &'s dyn Source,
    index: usize,
    lists: &'s Lists,
    cursor: Box<dyn EntryCursor>,
    field: Vec<u8>,
    is_at_term: bool,
}

impl<'s> KeyTerms<'s> {
    fn open(of: &IndexSource<'s>, field: &str) -> Result<KeyTerms<'s>, Error> {
        let mut terms = KeyTerms {
            source: of.source,
            index: of.index,
            lists: of.lists,
            cursor: of.source.entries(of.index, Direction::Forward)?,
            field: field.as_bytes().to_vec(),
            is_at_term: false,
        };
        terms.go_to(field.as_bytes())?;
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
            self.lists.keep(error);
        }
    }
}

impl Terms for KeyTerms<'_> {
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
        if !self.is_at_term {
            return 0;
        }
        let list = self.lists.open(self.source, self.index, self.cursor.key());
        match list {
            Ok(mut list) => list.count_at_most(),
            Err(error) => {
                self.lists.keep(error);
                0
            }
        }
    }
}
