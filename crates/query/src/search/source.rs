//! A search index of a collection as a source of crate `search`.
//!
//! A field of a query is a key prefix in the index: the path, a zero byte and the kind of the
//! entries.

mod shapes;

use std::sync::Arc;

use windrow_collection::StorageError;
use windrow_document::ValueRef;
use windrow_document::key::KeyReader;
use windrow_geo::SearchOrigin;
use windrow_index::search::{EXISTS, VALUE, path_of, prefix};
use windrow_interrupt::Interrupt;
use windrow_search::ids::SetIds;
use windrow_search::{
    END, FieldStatistics, IdSet, Ids, Nearness, Postings, Query, RecordValue, Terms,
};

use crate::Error;
use crate::key_range::KeyRange;
use crate::row::Pace;
use crate::source::{Direction, KeyLists, Source};
use crate::text::term_lists::{TermList, TermLists};
pub use shapes::{AreaFilter, ShapeFilter};

/// A search index of a snapshot.
pub struct IndexSource<'s> {
    source: &'s dyn Source,
    index: usize,
    lists: &'s TermLists,
    conditions: &'s ValueConditions,
    /// Points that are farther from the origin of a `near` are left out, in meters.
    distance_max: f64,
    interrupt: &'s dyn Interrupt,
}

/// The values that a query is about. The query refers to them by numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueConditions {
    /// The records of each [`windrow_search::Query::Filter`].
    pub filters: Vec<ValueFilter>,
    /// The values with each number, see [`windrow_search::Source::values`].
    pub values: Vec<RecordValues>,
}

/// A condition on values of records.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueFilter {
    /// The records with a key in one of some ranges.
    InRanges(Vec<KeyRange>),
    /// The records with a point in an area.
    InArea(AreaFilter),
    /// The records whose shapes have a relation to another one.
    Related(ShapeFilter),
}

/// Values of records, as numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordValues {
    /// Numbers, and dates in milliseconds since 1970.
    Numbers(Vec<ValueRange>),
    /// The distances of points from an origin, in meters.
    Distances {
        /// The paths of the points.
        paths: Vec<String>,
        /// The origin.
        origin: SearchOrigin,
    },
}

/// A range of keys with the numbers or dates of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRange {
    /// The path.
    pub path: String,
    /// The range.
    pub keys: KeyRange,
}

impl ValueConditions {
    const NONE: &'static ValueConditions = &ValueConditions {
        filters: Vec::new(),
        values: Vec::new(),
    };
}

/// Returns a number, or the milliseconds of a date since 1970.
pub fn number_of(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::DateTime(millis) => Some(millis as f64),
        number => number.as_f64(),
    }
}

/// Visits the records of the key at which `lists` is.
fn read_ids(
    lists: &mut KeyLists,
    pace: &mut Pace,
    interrupt: &dyn Interrupt,
    visit: &mut dyn FnMut(&[u64]),
) -> Result<(), Error> {
    let mut stopped = Ok(());
    let read = lists.read(&mut |ids| {
        if stopped.is_ok() {
            stopped = pace.step(interrupt);
        }
        visit(ids);
    });
    read.map_err(storage).and(stopped)
}

impl<'s> IndexSource<'s> {
    pub fn new(
        source: &'s dyn Source,
        index: usize,
        lists: &'s TermLists,
        interrupt: &'s dyn Interrupt,
    ) -> IndexSource<'s> {
        IndexSource {
            source,
            index,
            lists,
            conditions: ValueConditions::NONE,
            distance_max: f64::INFINITY,
            interrupt,
        }
    }

    /// Answers the conditions of a query.
    pub fn with_conditions(self, conditions: &'s ValueConditions) -> IndexSource<'s> {
        IndexSource { conditions, ..self }
    }

    /// Returns the source without the points that are farther from the origin of a `near` than so
    /// many meters.
    pub fn within(&self, meters: f64) -> IndexSource<'s> {
        IndexSource {
            distance_max: meters,
            ..*self
        }
    }

    /// Returns the scores by distance, if the query is a `near` with a point and nothing else.
    pub fn point_nearness(&self, query: &Query) -> Option<Nearness> {
        let Query::Near {
            number, nearness, ..
        } = query
        else {
            return None;
        };
        match self.conditions.values.get(*number)? {
            RecordValues::Distances { .. } => Some(*nearness),
            RecordValues::Numbers(_) => None,
        }
    }

    fn list(&self, key: &[u8]) -> Result<TermList, Error> {
        self.lists.open(self.source, self.index, key)
    }

    /// Opens the entries for the existence of the field, or of any other field with the same path.
    fn existence(&self, field: &str) -> Result<TermList, Error> {
        self.list(prefix(path_of(field), EXISTS).as_bytes())
    }

    /// Returns all records with a key in one of the ranges.
    fn records_within(&self, ranges: &[KeyRange]) -> Result<IdSet, Error> {
        self.records_of_keys(ranges, |_| true)
    }

    /// Returns all records with a key in one of the ranges that `includes` accepts.
    fn records_of_keys(
        &self,
        ranges: &[KeyRange],
        includes: impl Fn(&[u8]) -> bool,
    ) -> Result<IdSet, Error> {
        let (mut found, mut pace) = (IdSet::default(), Pace::default());
        for KeyRange { from, to } in ranges {
            let mut lists = self.source.key_lists(self.index, from, to)?;
            while lists.next().map_err(storage)? {
                if !includes(lists.key()) {
                    pace.step(self.interrupt)?;
                    continue;
                }
                read_ids(&mut lists, &mut pace, self.interrupt, &mut |ids| {
                    for id in ids {
                        found.insert(*id);
                    }
                })?;
            }
        }
        Ok(found)
    }

    /// Returns numbers and dates with the ids of their records.
    fn numbers(&self, ranges: &[ValueRange]) -> Result<Vec<RecordValue>, Error> {
        let mut found = Vec::new();
        for ValueRange { path, keys } in ranges {
            let value_at = prefix(path, VALUE).len();
            let number = |key: &[u8]| {
                let key = key.get(value_at..).unwrap_or_default();
                let value = KeyReader::new(key, &[]).value(false);
                value.and_then(|value| number_of(value.as_ref()))
            };
            self.add_values(keys, number, &mut found)?;
        }
        Ok(found)
    }

    /// Adds what `value` returns for the keys of a range, with the ids of their records.
    fn add_values(
        &self,
        keys: &KeyRange,
        value: impl Fn(&[u8]) -> Option<f64>,
        found: &mut Vec<RecordValue>,
    ) -> Result<(), Error> {
        let mut pace = Pace::default();
        let mut lists = self.source.key_lists(self.index, &keys.from, &keys.to)?;
        while lists.next().map_err(storage)? {
            let Some(value) = value(lists.key()) else {
                continue;
            };
            read_ids(&mut lists, &mut pace, self.interrupt, &mut |ids| {
                found.extend(ids.iter().map(|id| RecordValue { id: *id, value }));
            })?;
        }
        Ok(())
    }

    /// Returns all records of the collection: each has one entry in the index on `_id`.
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

/// Converts an error of reading keys.
pub fn storage(error: StorageError) -> Error {
    windrow_collection::Error::from(error).into()
}

/// Returns a key after all keys of a field.
fn end_of(field: &str) -> Vec<u8> {
    // The last byte of a field is a letter, the kind of the entries. No key begins with the byte
    // 255.
    let mut end = field.as_bytes().to_vec();
    match end.last_mut() {
        Some(kind) => *kind = kind.saturating_add(1),
        None => end.push(u8::MAX),
    }
    end
}

/// Returns the key of a term of a field.
fn key_of(field: &str, term: &[u8]) -> Vec<u8> {
    [field.as_bytes(), term].concat()
}

impl<'s> windrow_search::Source for IndexSource<'s> {
    type Postings = TermList;
    type Terms = KeyTerms<'s>;
    type Ids = FilterIds;
    type Error = Error;

    fn statistics(&self, field: &str) -> Result<FieldStatistics, Error> {
        let totals = self.existence(field)?.length_totals();
        Ok(FieldStatistics {
            records: totals.records,
            length: totals.sum,
        })
    }

    fn postings(&self, field: &str, term: &[u8]) -> Result<Option<TermList>, Error> {
        let list = self.list(&key_of(field, term))?;
        Ok((list.id() != END).then_some(list))
    }

    fn terms(&self, field: &str) -> Result<KeyTerms<'s>, Error> {
        KeyTerms::open(self, field)
    }

    fn exists(&self, field: &str) -> Result<FilterIds, Error> {
        Ok(FilterIds::from_list(self.existence(field)?))
    }

    fn all(&self) -> Result<FilterIds, Error> {
        Ok(FilterIds::Set(self.all_records()?))
    }

    fn filter(&self, number: usize) -> Result<FilterIds, Error> {
        let records = match self.conditions.filters.get(number) {
            None => IdSet::default(),
            Some(ValueFilter::InRanges(ranges)) => self.records_within(ranges)?,
            Some(ValueFilter::InArea(filter)) => self.records_in_area(filter)?,
            Some(ValueFilter::Related(filter)) => self.related_records(filter)?,
        };
        Ok(FilterIds::Set(records.into_ids()))
    }

    fn values(&self, number: usize) -> Result<Arc<[RecordValue]>, Error> {
        let mut values = match self.conditions.values.get(number) {
            None => Vec::new(),
            Some(RecordValues::Numbers(ranges)) => self.numbers(ranges)?,
            Some(RecordValues::Distances { paths, origin }) => self.distances(paths, *origin)?,
        };
        values.sort_unstable_by(|one: &RecordValue, other| {
            one.id
                .cmp(&other.id)
                .then(one.value.total_cmp(&other.value))
        });
        Ok(values.into())
    }
}

/// The record ids of a query's filters.
#[derive(Clone, Debug)]
pub enum FilterIds {
    List {
        list: TermList,
        count: Option<u64>,
        count_at_most: u64,
    },
    Set(SetIds),
}

impl FilterIds {
    fn from_list(mut list: TermList) -> FilterIds {
        FilterIds::List {
            count: list.count(),
            count_at_most: list.count_at_most(),
            list,
        }
    }
}

impl Ids for FilterIds {
    #[inline]
    fn id(&self) -> u64 {
        match self {
            FilterIds::List { list, .. } => list.id(),
            FilterIds::Set(set) => set.id(),
        }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        match self {
            FilterIds::List { list, .. } => list.next(),
            FilterIds::Set(set) => set.next(),
        }
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        match self {
            FilterIds::List { list, .. } => list.seek(id),
            FilterIds::Set(set) => set.seek(id),
        }
    }

    fn count_at_most(&self) -> u64 {
        match self {
            FilterIds::List { count_at_most, .. } => *count_at_most,
            FilterIds::Set(set) => set.count_at_most(),
        }
    }

    fn count(&self) -> Option<u64> {
        match self {
            FilterIds::List { count, .. } => *count,
            FilterIds::Set(set) => set.count(),
        }
    }

    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        match self {
            FilterIds::List { list, .. } => list.fill(first, bits),
            FilterIds::Set(set) => set.fill(first, bits),
        }
    }
}

/// The maximum number of entries of a term whose records are read together with the terms.
const FEW_RECORDS: u64 = 16;

/// The distinct terms of a field: the keys of the index that begin with the field. Some of them may
/// no longer have records.
pub struct KeyTerms<'s> {
    source: &'s dyn Source,
    index: usize,
    lists: &'s TermLists,
    interrupt: &'s dyn Interrupt,
    keys: KeyLists,
    /// The length of the field prefix of each key.
    field_bytes: usize,
    is_at_term: bool,
}

impl<'s> KeyTerms<'s> {
    fn open(of: &IndexSource<'s>, field: &str) -> Result<KeyTerms<'s>, Error> {
        let end = end_of(field);
        let mut keys = of.source.key_lists(of.index, field.as_bytes(), &end)?;
        Ok(KeyTerms {
            source: of.source,
            index: of.index,
            lists: of.lists,
            interrupt: of.interrupt,
            is_at_term: keys.next().map_err(storage)?,
            keys,
            field_bytes: field.len(),
        })
    }

    fn move_by(&mut self, go: impl FnOnce(&mut KeyLists) -> Result<bool, StorageError>) {
        if self.is_at_term {
            self.is_at_term = go(&mut self.keys).unwrap_or_else(|error| {
                self.lists.record_error(storage(error));
                false
            });
        }
    }
}

impl Terms for KeyTerms<'_> {
    fn term(&self) -> Option<&[u8]> {
        if self.is_at_term {
            self.keys.key().get(self.field_bytes..)
        } else {
            None
        }
    }

    fn next(&mut self) {
        self.move_by(KeyLists::next);
    }

    fn seek(&mut self, key: &[u8]) {
        let field_bytes = self.field_bytes;
        self.move_by(|keys| {
            let field = keys.key().get(..field_bytes).unwrap_or_default();
            let target = [field, key].concat();
            keys.seek(&target)
        });
    }

    fn records(&mut self) -> u64 {
        if !self.is_at_term {
            return 0;
        }
        let list = self.lists.open(self.source, self.index, self.keys.key());
        match list {
            Ok(list) if list.id() == END => 0,
            Ok(mut list) => list.count_at_most(),
            Err(error) => {
                self.lists.record_error(error);
                0
            }
        }
    }

    fn has_few_records(&self) -> bool {
        self.is_at_term && self.keys.has_few(FEW_RECORDS)
    }

    fn add_records(&mut self, set: &mut IdSet) {
        if !self.is_at_term {
            return;
        }
        let read = read_ids(
            &mut self.keys,
            &mut Pace::default(),
            self.interrupt,
            &mut |ids| {
                for id in ids {
                    set.insert(*id);
                }
            },
        );
        if let Err(error) = read {
            self.lists.record_error(error);
            self.is_at_term = false;
        }
    }
}
