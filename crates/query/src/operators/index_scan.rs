//! Reads the entries of an index, range by range. In a clustered collection the entries are the
//! documents.

use std::sync::Arc;

use windrow_document::{Document, key};
use windrow_index::Definition;
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;
use windrow_mql::filter::Filter;

use super::id_set::IdSet;
use super::key_document::KeyDocument;
use super::operator::{Counters, Operator, Part, counted};
use super::parallel::parts_max;
use crate::Error;
use crate::bounds::interval::after;
use crate::bounds::range::{ScanRanges, cut};
use crate::key_range::KeyRange;
use crate::plan::{IndexScan, KeyOutput};
use crate::row::{Content, Pace, Row};
use crate::source::{Direction, EntryCursor, KEYS_END, RecordId, Source, approximate_count_all};

/// The number of consecutive entries that fail a check before the scan seeks.
const MISSES_BEFORE_SEEK: u32 = 8;

pub(super) struct IndexScanOperator {
    spec: ScanSpecification,
    cursor: Box<dyn EntryCursor>,
    ranges: ScanRanges,
    /// The number of the current range, counted in the direction of the scan.
    current: usize,
    is_in_range: bool,
    /// `true` if the cursor returns all entries after its position, not only those of one key.
    is_exact: bool,
    absent: AbsentKeys,
    misses: u32,
    returned: ReturnedPrefix,
    document: Option<KeyDocument>,
    /// The number of bytes of the current key that its document was made of. `None` if they are
    /// damaged.
    key_bytes: Option<usize>,
    /// The records that were returned, if a record can have several keys.
    seen: Option<IdSet>,
    counters: Counters,
    pace: Pace,
}

/// What the scan reads and what it returns.
#[derive(Clone)]
struct ScanSpecification {
    source: Arc<dyn Source>,
    /// The number of the index.
    number: usize,
    definition: Arc<Definition>,
    direction: Direction,
    filter: Option<Filter>,
    output: KeyOutput,
    distinct_prefix: Option<usize>,
}

/// The values of the first fields of the last row, in a scan that returns one row for each.
#[derive(Default)]
struct ReturnedPrefix {
    /// The key bytes of the values. Empty before the first row.
    values: Vec<u8>,
    /// The number of entries with the same values that were stepped over.
    steps: u32,
    /// `true` if the scan had to seek past the previous values. The next values may have as many
    /// entries.
    has_many: bool,
}

/// The number of consecutive keys that are not in the index. Testing if a key exists costs less
/// than a seek to its position. But only a seek can skip ranges without testing each of them.
struct AbsentKeys {
    keys: u32,
    /// The number of tests before a seek. It doubles each time that a seek skips only few ranges.
    tests_max: u32,
}

impl Default for AbsentKeys {
    fn default() -> AbsentKeys {
        AbsentKeys {
            keys: 0,
            tests_max: ABSENT_BEFORE_SEEK,
        }
    }
}

const ABSENT_BEFORE_SEEK: u32 = 8;
const ABSENT_TESTS_MAX: u32 = 1024;
/// A seek is worth its cost if it skips at least this many ranges.
const RANGES_PASSED_MIN: usize = 8;

/// A seek costs about as much as stepping over this many entries.
const STEPS_BEFORE_SEEK: u32 = 4;

/// Parts with fewer entries are not worth a thread.
const PART_ENTRIES_MIN: u64 = 8 << 10;
/// The largest number of parts into which an index is divided, even if few of them are read.
const CUTS_MAX: u64 = 4096;

impl IndexScanOperator {
    pub fn new(source: &Arc<dyn Source>, scan: &IndexScan) -> Result<IndexScanOperator, Error> {
        let mut ranges = ScanRanges::new(&scan.index.definition, &scan.bounds);
        if let Some(range) = &scan.range {
            ranges.ranges = vec![range.clone()];
            ranges.are_keys = false;
            ranges.checks.iter_mut().for_each(|check| *check = None);
        }
        let mut spec = ScanSpecification {
            source: source.clone(),
            number: scan.index.number,
            definition: scan.index.definition.clone(),
            direction: scan.direction,
            filter: scan.filter.clone(),
            output: scan.output,
            distinct_prefix: scan.distinct_prefix,
        };
        let one_key =
            ranges.is_plain() && scan.bounds.is_one_key() && scan.distinct_prefix.is_none();
        let cursor = match ranges.ranges.first() {
            Some(range) if one_key => {
                spec.direction = Direction::Forward;
                source.postings(scan.index.number, &range.from)?
            }
            _ => source.entries(scan.index.number, scan.direction)?,
        };
        let mut scanner = IndexScanOperator::with_cursor(spec, cursor, ranges);
        scanner.is_in_range = one_key;
        scanner.seen = (scan.may_repeat() && !one_key).then(IdSet::default);
        Ok(scanner)
    }

    fn with_cursor(
        spec: ScanSpecification,
        cursor: Box<dyn EntryCursor>,
        ranges: ScanRanges,
    ) -> IndexScanOperator {
        let needs_document = match spec.output {
            KeyOutput::Nothing | KeyOutput::Counted => spec.filter.is_some(),
            KeyOutput::Document | KeyOutput::Field(_) | KeyOutput::Flat => true,
            KeyOutput::Stored => false,
        };
        let document = needs_document.then(|| KeyDocument::new(&spec.definition, spec.output));
        IndexScanOperator {
            spec,
            cursor,
            ranges,
            current: 0,
            is_in_range: false,
            is_exact: false,
            absent: AbsentKeys::default(),
            misses: 0,
            returned: ReturnedPrefix::default(),
            document,
            key_bytes: None,
            seen: None,
            counters: Counters::default(),
            pace: Pace::default(),
        }
    }

    /// Returns keys that divide the scan into parts of similar size, each worth a thread.
    fn cuts(&self) -> Result<Vec<Vec<u8>>, Error> {
        let (source, number) = (&self.spec.source, self.spec.number);
        let read = approximate_count_all(&**source, number, &self.ranges.ranges)? as u64;
        let count = parts_max().min(read / PART_ENTRIES_MIN);
        if count < 2 {
            return Ok(Vec::new());
        }
        let all = source.approximate_count(number, &[], KEYS_END)?.max(read);
        source.entry_split_keys(number, (count * all / read).min(CUTS_MAX))
    }

    /// The same scan, of some of the ranges.
    fn part(&self, ranges: Vec<KeyRange>) -> Part {
        let spec = self.spec.clone();
        let ranges = ScanRanges {
            ranges,
            ..self.ranges.clone()
        };
        Box::new(move || {
            let cursor = spec.source.entries(spec.number, spec.direction)?;
            let part = IndexScanOperator::with_cursor(spec.clone(), cursor, ranges.clone());
            Ok(Box::new(part))
        })
    }

    fn range(&self) -> Option<&KeyRange> {
        match self.spec.direction {
            Direction::Forward => self.ranges.ranges.get(self.current),
            Direction::Backward => {
                let last = self.ranges.ranges.len().checked_sub(1 + self.current)?;
                self.ranges.ranges.get(last)
            }
        }
    }

    /// Returns how many ranges end before the entry of the cursor, in the direction of the scan.
    fn ranges_ended(&self) -> usize {
        let (ranges, key) = (&self.ranges.ranges, self.cursor.key());
        match self.spec.direction {
            Direction::Forward => ranges.partition_point(|range| !range.ends_after(key)),
            Direction::Backward => {
                ranges.len() - ranges.partition_point(|range| range.starts_by(key))
            }
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<(), Error> {
        self.counters.seeks += 1;
        self.is_exact = true;
        self.cursor.seek(key, RecordId(0))
    }

    /// Seeks to the start of a range.
    fn seek_range(&mut self, start: &[u8]) -> Result<(), Error> {
        let is_key = self.ranges.are_keys && self.spec.direction == Direction::Forward;
        if is_key && self.absent.keys < self.absent.tests_max {
            self.counters.seeks += 1;
            self.is_exact = false;
            return self.cursor.seek_key(start);
        }
        self.seek(start)
    }

    /// Advances to the next entry within a range. Returns `false` after the last one.
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            if !self.is_in_range {
                let Some(range) = self.range() else {
                    return Ok(false);
                };
                let start = match self.spec.direction {
                    Direction::Forward => range.from.clone(),
                    Direction::Backward => range.to.clone(),
                };
                self.seek_range(&start)?;
                self.is_in_range = true;
            }
            let has_entry = self.cursor.next()?;
            if has_entry && self.is_before_end() {
                if !self.is_exact {
                    self.absent.keys = 0;
                }
                return Ok(true);
            }
            if self.leave_range(has_entry) {
                return Ok(true);
            }
        }
    }

    /// Moves on to the next range that can have entries. Returns `true` if the cursor's entry is
    /// within it.
    fn leave_range(&mut self, has_entry: bool) -> bool {
        self.is_in_range = false;
        self.current += 1;
        if !self.is_exact {
            self.absent.keys = self.absent.keys.saturating_add(1);
            return false;
        }
        let ended = if has_entry {
            self.ranges_ended()
        } else {
            self.ranges.ranges.len()
        };
        let passed = ended.saturating_sub(self.current);
        self.current += passed;
        self.is_in_range = has_entry && self.is_after_start() && self.is_before_end();
        if passed < RANGES_PASSED_MIN && self.absent.keys > 0 {
            self.absent.keys = 0;
            self.absent.tests_max = (2 * self.absent.tests_max).min(ABSENT_TESTS_MAX);
        }
        self.is_in_range
    }

    fn is_after_start(&self) -> bool {
        let key = self.cursor.key();
        self.range().is_some_and(|range| match self.spec.direction {
            Direction::Forward => range.starts_by(key),
            Direction::Backward => range.ends_after(key),
        })
    }

    fn is_before_end(&self) -> bool {
        let key = self.cursor.key();
        self.range().is_some_and(|range| match self.spec.direction {
            Direction::Forward => range.ends_after(key),
            Direction::Backward => range.starts_by(key),
        })
    }

    /// Returns `true` if the later values of the entry are within the bounds. After several entries
    /// that are not, seeks to the next key that can be.
    fn passes_checks(&mut self) -> Result<bool, Error> {
        if self.ranges.is_plain() {
            return Ok(true);
        }
        let checked = check_ranges(&self.ranges, self.cursor.key(), self.spec.direction);
        let place = match checked.ok_or_else(|| self.damaged_key())? {
            RangeCheck::Within => {
                self.misses = 0;
                return Ok(true);
            }
            RangeCheck::Outside { next } => next,
        };
        self.misses += 1;
        if self.misses >= MISSES_BEFORE_SEEK {
            self.misses = 0;
            self.seek(&place)?;
        }
        Ok(false)
    }

    /// Returns `true` if a row with the same values has already been returned and no other is
    /// needed. Seeks past these values if many entries have them.
    fn skips_prefix(&mut self) -> Result<bool, Error> {
        if self.spec.distinct_prefix.is_none() || self.returned.values.is_empty() {
            return Ok(false);
        }
        if !self.cursor.key().starts_with(&self.returned.values) {
            self.returned.has_many &= self.returned.steps > 0;
            self.returned.values.clear();
            return Ok(false);
        }
        self.returned.steps += 1;
        if self.returned.steps == STEPS_BEFORE_SEEK || self.returned.has_many {
            self.returned.has_many = true;
            let place = match self.spec.direction {
                Direction::Forward => after(&self.returned.values),
                Direction::Backward => self.returned.values.clone(),
            };
            self.seek(&place)?;
        }
        Ok(true)
    }

    fn damaged_key(&self) -> Error {
        let indexes = self.spec.source.indexes();
        let index = indexes.get(self.spec.number);
        let name = index.map_or("?", |index| index.name.as_str());
        Error::damaged_entry(name, "its key does not have the values of all fields")
    }

    /// Records that a row with the current values was returned.
    fn record_returned(&mut self) -> Result<(), Error> {
        let Some(last) = self.spec.distinct_prefix else {
            return Ok(());
        };
        let key = self.cursor.key();
        let is_read = |maker: &KeyDocument| maker.fields_read() == last + 1;
        let is_known = self.document.as_ref().is_some_and(is_read);
        let values = match self.ranges.descending.get(..=last) {
            _ if is_known => self.key_bytes.and_then(|bytes| key.get(..bytes)),
            // The values of all fields are the complete key.
            Some(fields) if fields.len() == self.ranges.descending.len() => Some(key),
            Some(fields) => first_values(key, fields),
            None => {
                let fields = self.ranges.descending.len();
                return Err(Bug::new(format!("field {last} is not one of {fields}")).into());
            }
        };
        let values = values.ok_or_else(|| self.damaged_key())?;
        self.returned.values.clear();
        self.returned.values.extend_from_slice(values);
        self.returned.steps = 0;
        Ok(())
    }

    /// Returns the row of the current entry, which contains the document, if the document matches.
    fn stored_row(&mut self) -> Result<Option<Row>, Error> {
        self.counters.documents_examined += 1;
        if let Some(filter) = &self.spec.filter
            && !filter.matches(Document::from_validated(self.cursor.payload()))?
        {
            return Ok(None);
        }
        let document = self.cursor.payload_bytes();
        Ok(Some(Row::from_record(self.cursor.id(), document)))
    }

    /// Returns the row of the current entry if it matches.
    fn row(&mut self) -> Result<Option<Row>, Error> {
        if self.spec.output == KeyOutput::Stored {
            return self.stored_row();
        }
        let id = self.cursor.id();
        self.counters.keys_examined += 1;
        let document = self.document.as_ref().map(|maker| {
            let key_document = maker.make(self.cursor.key(), self.cursor.payload());
            self.key_bytes = key_document.key_bytes;
            key_document.document
        });
        if let (Some(filter), Some(document)) = (&self.spec.filter, &document)
            && !filter.matches(document.as_document())?
        {
            return Ok(None);
        }
        if let Some(seen) = &mut self.seen {
            self.counters.duplicates_tested += 1;
            if !seen.insert(id) {
                self.counters.duplicates_dropped += 1;
                return Ok(None);
            }
        }
        let mut row = Row::from_record(id, Content::EMPTY);
        match (self.spec.output, document) {
            (KeyOutput::Document | KeyOutput::Field(_), Some(document)) => {
                row.content = Content::Owned(document)
            }
            (KeyOutput::Flat, Some(document)) => row.key = Some(Box::new(document)),
            _ => {}
        }
        Ok(Some(row))
    }
}

impl Operator for IndexScanOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.counters.at_end {
            return Ok(None);
        }
        while self.advance()? {
            self.pace.step(interrupt)?;
            self.counters.works += 1;
            if self.skips_prefix()? || !self.passes_checks()? {
                self.counters.keys_examined += 1;
                continue;
            }
            if let Some(row) = self.row()? {
                self.record_returned()?;
                self.counters.returned += 1;
                return Ok(Some(row));
            }
        }
        self.counters.works += 1;
        self.counters.at_end = true;
        Ok(None)
    }

    fn parts(&self) -> Result<Vec<Part>, Error> {
        // Some scans are not divided: the postings of one key, backward scans, and scans that
        // return one row for each value. For the last row of each value, the caller must not get
        // two rows, because they come in reverse order.
        let is_whole =
            self.is_in_range || self.seen.is_some() || self.spec.distinct_prefix.is_some();
        if is_whole || self.spec.direction == Direction::Backward {
            return Ok(Vec::new());
        }
        let cuts = self.cuts()?;
        let parts = cut(&self.ranges.ranges, cuts);
        Ok(parts.into_iter().map(|ranges| self.part(ranges)).collect())
    }

    fn absorb(&mut self, counts: &[Counters]) {
        self.counters.absorb(counts);
    }

    /// If each entry is a row, the number follows from fences.
    fn count_known(&mut self, _: &dyn Interrupt) -> Result<Option<u64>, Error> {
        let is_row = matches!(self.spec.output, KeyOutput::Nothing | KeyOutput::Counted);
        let has_rows = is_row && self.spec.filter.is_none();
        if !has_rows
            || self.spec.distinct_prefix.is_some()
            || self.seen.is_some()
            || !self.ranges.is_plain()
        {
            return Ok(None);
        }
        let mut count = 0;
        for KeyRange { from, to } in &self.ranges.ranges {
            match self.spec.source.count_entries(self.spec.number, from, to)? {
                Some(entries) => count += entries,
                None => return Ok(None),
            }
        }
        self.counters.record_count(Some(count));
        Ok(Some(count))
    }

    counted!(counters);
}

/// Returns the key bytes of each field of a key. A key has fewer fields if a wildcard index has no
/// value. `None` if the key is damaged.
fn split_key<'k>(key: &'k [u8], descending: &[bool]) -> Option<Vec<&'k [u8]>> {
    let mut reader = key::KeyReader::new(key, &[]);
    let mut parts = Vec::with_capacity(descending.len());
    let mut rest = key;
    for descending in descending {
        if rest.is_empty() {
            break;
        }
        reader.value(*descending)?;
        let taken = rest.len() - reader.rest().len();
        parts.push(rest.split_at(taken).0);
        rest = reader.rest();
    }
    Some(parts)
}

/// Returns the key bytes of the values of all these fields. They are empty if the key has fewer
/// fields. `None` if the key is damaged.
fn first_values<'k>(key: &'k [u8], descending: &[bool]) -> Option<&'k [u8]> {
    let mut reader = key::KeyReader::new(key, &[]);
    for descending in descending {
        if reader.rest().is_empty() {
            return Some(&[]);
        }
        reader.value(*descending)?;
    }
    Some(key.split_at(key.len() - reader.rest().len()).0)
}

/// The result of comparing the values of a key with the ranges of their fields.
enum RangeCheck {
    Within,
    /// A value is outside of its ranges. `next` is the first key behind it that can be within.
    Outside {
        next: Vec<u8>,
    },
}

/// Compares the values of a key with the ranges of their fields. `None` if the key is damaged.
fn check_ranges(ranges: &ScanRanges, key: &[u8], direction: Direction) -> Option<RangeCheck> {
    let parts = split_key(key, &ranges.descending)?;
    let mut prefix_bytes = 0;
    for (part, check) in parts.iter().zip(&ranges.checks) {
        let (prefix, _) = key.split_at(prefix_bytes);
        if let Some(allowed) = check
            && !is_within(allowed, part)
        {
            let next = next_in_ranges(prefix, part, allowed, direction);
            return Some(RangeCheck::Outside { next });
        }
        prefix_bytes += part.len();
    }
    Some(RangeCheck::Within)
}

/// Returns how many of the sorted ranges begin at this value or before. The list may be very long.
fn started(allowed: &[KeyRange], part: &[u8]) -> usize {
    allowed.partition_point(|range| range.starts_by(part))
}

fn is_within(allowed: &[KeyRange], part: &[u8]) -> bool {
    let last = started(allowed, part).checked_sub(1);
    last.and_then(|last| allowed.get(last))
        .is_some_and(|range| range.ends_after(part))
}

/// Returns the key of the next value within the ranges, or the end of the keys with the prefix.
fn next_in_ranges(
    prefix: &[u8],
    part: &[u8],
    allowed: &[KeyRange],
    direction: Direction,
) -> Vec<u8> {
    match direction {
        Direction::Forward => match allowed.get(started(allowed, part)) {
            Some(range) => [prefix, &range.from].concat(),
            None => after(prefix),
        },
        Direction::Backward => {
            let ended = allowed.partition_point(|range| !range.ends_after(part));
            match ended.checked_sub(1).and_then(|last| allowed.get(last)) {
                Some(range) => [prefix, &range.to].concat(),
                None => prefix.to_vec(),
            }
        }
    }
}
