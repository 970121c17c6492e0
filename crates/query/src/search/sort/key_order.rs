//! The first records of a result that is sorted by one field, found by the keys of the index.
//!
//! The keys of a field's values are in the order of the result. They are read from its beginning,
//! range by range, until enough of their records match. The work depends on the keys before the
//! last record of the page, and not on the number of matching records.
//!
//! ```text
//! order of the result    none | smallest value … greatest value | none
//! ```
//!
//! *None* are the records without a value and those with null. They come first or last, as the
//! order and `noData` say.

use std::ops::Range;

use windrow_document::ValueRef;
use windrow_index::search::{EXISTS, FieldMapping, VALUE, append_value_key, prefix};
use windrow_interrupt::Interrupt;
use windrow_search::{END, Hit, IdSet, Ids};

use super::{FirstHits, NoData, SortedHit, VALUE_MARK, invert};
use crate::Error;
use crate::bounds::interval::after;
use crate::key_range::KeyRange;
use crate::row::Pace;
use crate::search::source::storage;
use crate::source::{RecordId, Source};

/// The order of the keys of a field.
#[derive(Clone, Copy, Debug)]
pub struct KeyOrder<'o> {
    path: &'o str,
    no_data: NoData,
    is_descending: bool,
}

/// The records to be sorted.
pub struct SortRequest<'r> {
    pub source: &'r dyn Source,
    pub index: usize,
    /// The records that match.
    pub matched: &'r IdSet,
    /// How many records match.
    pub count: u64,
    /// The sort key after which the first record is.
    pub after: Option<&'r [u8]>,
}

/// The cost of reading a document and computing its sort key, in keys that are read. Measured.
const KEYS_PER_DOCUMENT: u64 = 15;

/// About how many keys the first range has. Each further one has `RANGE_GROWTH` times as many.
const RANGE_KEYS: u64 = 4_096;
const RANGE_GROWTH: u64 = 4;

impl<'o> KeyOrder<'o> {
    /// Returns the order of a field. Returns `None` if its keys do not tell the order of the
    /// result.
    pub(super) fn new(
        path: &'o str,
        no_data: NoData,
        is_descending: bool,
        mapping: &FieldMapping,
    ) -> Option<KeyOrder<'o>> {
        let order = KeyOrder {
            path,
            no_data,
            is_descending,
        };
        // Values that are indexed for facets only have keys, but are not sorted by.
        let has_facets_only = mapping.string_facet && mapping.token.is_none()
            || mapping.number_facet.is_some() && mapping.number.is_none()
            || mapping.date_facet && !mapping.date;
        // The entry for existence also stands for texts and subdocuments.
        let tells_none = mapping.string.is_none() && mapping.document.is_none();
        (!has_facets_only && (tells_none || !order.begins_with_none())).then_some(order)
    }

    /// Returns `true` if the records without a value come first.
    fn begins_with_none(&self) -> bool {
        (self.no_data == NoData::Lowest) != self.is_descending
    }

    /// Returns the range of the keys of all values. It begins with the key of null.
    fn range(&self) -> KeyRange {
        let mut null = Vec::new();
        append_value_key(&mut null, self.path, ValueRef::Null);
        KeyRange {
            from: null,
            to: after(prefix(self.path, VALUE).as_bytes()),
        }
    }

    /// Returns `true` if reading keys is cheaper than reading the documents of all matching
    /// records.
    pub fn is_cheaper(&self, request: &SortRequest<'_>, first: &FirstHits) -> Result<bool, Error> {
        let KeyRange { from, to } = self.range();
        let keys = request
            .source
            .approximate_count(request.index, &from, &to)?;
        // As many keys as are read if the values of the matching records are spread evenly.
        let records = (first.count_max() as u64).min(request.count);
        let needed = u128::from(keys) * u128::from(records) / u128::from(request.count.max(1));
        let needed = if request.after.is_some() {
            keys
        } else {
            (2 * needed as u64 + RANGE_KEYS).min(keys)
        };
        Ok(needed < request.count.saturating_mul(KEYS_PER_DOCUMENT))
    }

    /// Adds the first records of the result to `first`, with scores of 0. Returns how many keys
    /// were read.
    pub fn read(
        &self,
        request: &SortRequest<'_>,
        first: &mut FirstHits,
        interrupt: &dyn Interrupt,
    ) -> Result<u64, Error> {
        let mut reading = Reading {
            order: self,
            request,
            first,
            seen: IdSet::default(),
            keys_read: 0,
            pace: Pace::default(),
            interrupt,
        };
        if self.begins_with_none() {
            reading.read_none()?;
        }
        reading.read_values()?;
        if !self.begins_with_none() && !reading.first.is_full() {
            reading.add_without(|_| false)?;
        }
        let (seen, keys_read) = (reading.seen.len(), reading.keys_read);
        first.has_more |= seen < request.count;
        Ok(keys_read)
    }
}

struct Reading<'r> {
    order: &'r KeyOrder<'r>,
    request: &'r SortRequest<'r>,
    first: &'r mut FirstHits,
    /// The matching records that were read.
    seen: IdSet,
    keys_read: u64,
    pace: Pace,
    interrupt: &'r dyn Interrupt,
}

/// The matching records with a value in a range of keys.
#[derive(Default)]
struct RangeRecords {
    /// The key bytes of the values, one after the other.
    values: Vec<u8>,
    records: Vec<RangeRecord>,
}

struct RangeRecord {
    id: RecordId,
    /// The position of the record's value in the values of the range.
    value: Range<usize>,
}

impl Reading<'_> {
    /// Adds a record, unless it was added before.
    fn add(&mut self, component: &[u8], id: RecordId) {
        if !self.seen.insert(id.0) {
            return;
        }
        let mut key = Vec::with_capacity(component.len() + size_of::<u64>());
        key.extend_from_slice(component);
        if self.order.is_descending {
            invert(&mut key, 0);
        }
        key.extend_from_slice(&id.0.to_be_bytes());
        let after = self.request.after;
        if after.is_none_or(|after| self.first.comes_after(&key, after)) {
            let hit = Hit {
                id: id.0,
                score: 0.0,
            };
            self.first.offer(SortedHit { hit, key });
        }
    }

    /// Adds the matching records without a value, and those with null.
    fn read_none(&mut self) -> Result<(), Error> {
        let SortRequest { source, index, .. } = *self.request;
        let component = [self.order.no_data.mark()];
        let null = self.order.range().from;
        let records = self.matching(&null, &after(&null))?;
        for record in records.records {
            self.add(&component, record.id);
        }
        let existence = prefix(self.order.path, EXISTS);
        let mut existing = source.posting_list(index, existence.as_bytes())?;
        self.add_without(|id| existing.seek(id) == id)?;
        let error = existing.take_error();
        error.map_or(Ok(()), |error| Err(storage(error)))
    }

    /// Adds the matching records that were not read, as records without a value, but those for
    /// which `has_value` returns `true`. It is called in the order of the ids.
    fn add_without(&mut self, mut has_value: impl FnMut(RecordId) -> bool) -> Result<(), Error> {
        let component = [self.order.no_data.mark()];
        let mut ids = self.request.matched.clone().into_ids();
        while ids.id() != END {
            self.pace.step(self.interrupt)?;
            let id = RecordId(ids.id());
            if !has_value(id) {
                self.add(&component, id);
            }
            ids.next();
        }
        Ok(())
    }

    /// Reads the keys of values until there are enough records.
    fn read_values(&mut self) -> Result<(), Error> {
        let KeyRange { from: null, mut to } = self.order.range();
        let mut from = after(&null);
        let mut count = RANGE_KEYS;
        while from < to && !self.first.is_full() && self.seen.len() < self.request.count {
            let cut = self.cut(&from, &to, count)?;
            let records = if self.order.is_descending {
                self.matching(&cut, &to)?
            } else {
                self.matching(&from, &cut)?
            };
            self.add_range(&records);
            if self.order.is_descending {
                to = cut;
            } else {
                from = cut;
            }
            count = count.saturating_mul(RANGE_GROWTH);
        }
        Ok(())
    }

    /// Adds the records of a range in the order of the result.
    fn add_range(&mut self, range: &RangeRecords) {
        let is_descending = self.order.is_descending;
        let mut component = vec![VALUE_MARK];
        let mut add = |record: &RangeRecord| {
            component.truncate(1);
            let value = range.values.get(record.value.clone());
            component.extend_from_slice(value.unwrap_or_default());
            self.add(&component, record.id);
        };
        if is_descending {
            range.records.iter().rev().for_each(&mut add);
        } else {
            range.records.iter().for_each(&mut add);
        }
    }

    /// Reads the keys of a range.
    fn matching(&mut self, from: &[u8], to: &[u8]) -> Result<RangeRecords, Error> {
        let SortRequest {
            source,
            index,
            matched,
            ..
        } = *self.request;
        let prefix_bytes = prefix(self.order.path, VALUE).len();
        let mut found = RangeRecords::default();
        let mut lists = source.key_lists(index, from, to)?;
        while lists.next().map_err(storage)? {
            self.keys_read += 1;
            let mut stopped = self.pace.step(self.interrupt);
            let (start, value_start) = (found.records.len(), found.values.len());
            let take = &mut |ids: &[u64]| {
                let ids = ids.iter().filter(|id| matched.contains(**id));
                found.records.extend(ids.map(|id| RangeRecord {
                    id: RecordId(*id),
                    value: 0..0,
                }));
                if stopped.is_ok() {
                    stopped = self.pace.step(self.interrupt);
                }
            };
            lists.read(take).map_err(storage)?;
            stopped?;
            if found.records.len() > start {
                let value = lists.key().get(prefix_bytes..).unwrap_or_default();
                found.values.extend_from_slice(value);
                let records = found.records.iter_mut().skip(start);
                records.for_each(|record| record.value = value_start..found.values.len());
            }
        }
        Ok(found)
    }

    /// Returns a key between `from` and `to` such that the range before it, or behind it if the
    /// order is descending, has about `count` keys. The range is everything if no such key is
    /// found.
    fn cut(&self, from: &[u8], to: &[u8], count: u64) -> Result<Vec<u8>, Error> {
        let SortRequest { source, index, .. } = *self.request;
        let is_descending = self.order.is_descending;
        let common = from
            .iter()
            .zip(to)
            .take_while(|(one, other)| one == other)
            .count();
        let key_of = |number: u128| {
            let mut key = from.get(..common).unwrap_or_default().to_vec();
            key.extend_from_slice(&number.to_be_bytes());
            key
        };
        let (mut least, mut greatest) = (number_of(from, common), number_of(to, common));
        while greatest - least > 1 {
            let middle = least + (greatest - least) / 2;
            let cut = key_of(middle);
            let found = if is_descending {
                source.approximate_count(index, &cut, to)?
            } else {
                source.approximate_count(index, from, &cut)?
            };
            if (count / 2..=count.saturating_mul(2)).contains(&found) {
                return Ok(cut);
            }
            // The range grows with the cut if it is before the cut.
            if (found > count) == is_descending {
                least = middle;
            } else {
                greatest = middle;
            }
        }
        Ok(if is_descending { from } else { to }.to_vec())
    }
}

/// Returns the 16 bytes behind the first `skipped` ones as a number. Missing bytes are 0.
fn number_of(key: &[u8], skipped: usize) -> u128 {
    let mut bytes = [0; size_of::<u128>()];
    let rest = key.get(skipped..).unwrap_or_default();
    bytes
        .iter_mut()
        .zip(rest)
        .for_each(|(byte, found)| *byte = *found);
    u128::from_be_bytes(bytes)
}
