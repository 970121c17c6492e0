//! Counts the records of facets.
//!
//! There are two methods:
//!
//! - By the keys of the index: each value has a list of its records, and each record is looked up
//!   in the set of matching records. If all records match, no lookup is needed, and the counts of
//!   strings are known without reading records. The work is the number of entries of the fields.
//! - By documents, if few records match: the values are read from the documents.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use windrow_document::key::{self, KeyReader};
use windrow_document::{Document, Value, ValueRef};
use windrow_index::search::{SearchDefinition, VALUE, append_value_key, prefix};
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;
use windrow_search::{END, IdSet, Ids};

use super::{FacetBucket, FacetGroups, FacetRanges, SearchFacet};
use crate::Error;
use crate::bounds::interval::after;
use crate::operators::run_tasks;
use crate::row::Pace;
use crate::search::source::storage;
use crate::source::{RecordId, Source};

/// The records that match.
#[derive(Debug)]
pub enum MatchedRecords {
    All,
    Set(IdSet),
}

impl MatchedRecords {
    #[inline]
    fn contains(&self, id: RecordId) -> bool {
        match self {
            MatchedRecords::All => true,
            MatchedRecords::Set(set) => set.contains(id.0),
        }
    }
}

/// Counts the facets of a search.
pub struct FacetCounter<'c> {
    pub source: &'c dyn Source,
    pub index: usize,
    pub definition: &'c SearchDefinition,
    pub matched: MatchedRecords,
    /// How many records match.
    pub total: u64,
}

/// The cost of reading a document, in entries of strings. These are packed if the string is
/// frequent.
const ENTRIES_PER_DOCUMENT: u64 = 1_200;

/// The cost of an entry of a number or date, in entries of strings. Most such values have few
/// records.
const RANGE_ENTRY_COST: u64 = 4;

/// The largest size of the keys of strings in memory when counting by documents.
const KEY_BYTES_MAX: usize = 64 << 20;

/// The approximate number of tasks for one facet.
const TASKS_PER_FACET: usize = 8;

impl FacetCounter<'_> {
    /// Returns the buckets of each facet, in the order of the facets.
    pub fn count(
        &self,
        facets: &[SearchFacet],
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<Vec<FacetBucket>>, Error> {
        let plans: Result<Vec<FacetPlan<'_>>, Error> =
            facets.iter().map(|it| self.plan(it)).collect();
        let plans = plans?;
        let mut counts = None;
        if let MatchedRecords::Set(set) = &self.matched
            && self.prefers_documents(&plans)?
        {
            counts = self.by_documents(set, &plans, interrupt)?;
        }
        let counts = match counts {
            Some(counts) => counts,
            None => self.by_keys(&plans, interrupt)?,
        };
        let buckets = plans.iter().zip(counts);
        buckets
            .map(|(plan, count)| self.buckets(plan, count))
            .collect()
    }

    fn plan<'f>(&self, facet: &'f SearchFacet) -> Result<FacetPlan<'f>, Error> {
        facet.mapping(self.definition)?;
        let cuts = match &facet.groups {
            FacetGroups::Strings { .. } => {
                // The keys of all strings begin with the same byte.
                let mut first = Vec::new();
                append_value_key(&mut first, &facet.path, ValueRef::String(""));
                first.truncate(prefix(&facet.path, VALUE).len() + 1);
                let end = after(&first);
                vec![first, end]
            }
            FacetGroups::Ranges(ranges) => {
                let key_of = |value: &Value| {
                    let mut key = Vec::new();
                    append_value_key(&mut key, &facet.path, value.as_ref());
                    key
                };
                ranges.boundaries.iter().map(key_of).collect()
            }
        };
        Ok(FacetPlan { facet, cuts })
    }

    /// Returns `true` if it is cheaper to read the matching documents than the keys of all values.
    fn prefers_documents(&self, plans: &[FacetPlan<'_>]) -> Result<bool, Error> {
        let mut entries = 0;
        for plan in plans {
            let (from, to) = plan.range();
            let cost = match &plan.facet.groups {
                FacetGroups::Strings { .. } => 1,
                FacetGroups::Ranges(_) => RANGE_ENTRY_COST,
            };
            entries += cost * self.source.approximate_count(self.index, from, to)?;
        }
        Ok(self.total.saturating_mul(ENTRIES_PER_DOCUMENT) < entries)
    }

    /// Converts counts to buckets.
    fn buckets(&self, plan: &FacetPlan<'_>, count: FacetCount) -> Result<Vec<FacetBucket>, Error> {
        match (&plan.facet.groups, count) {
            (FacetGroups::Strings { count_max }, FacetCount::Strings(strings)) => {
                strings.into_buckets(*count_max, prefix(&plan.facet.path, VALUE).len())
            }
            (FacetGroups::Ranges(ranges), FacetCount::Ranges(count)) => {
                Ok(count.into_buckets(ranges, self.total))
            }
            _ => Err(Bug::new("the counts of a facet have another type").into()),
        }
    }
}

/// A facet with the keys of its values.
struct FacetPlan<'f> {
    facet: &'f SearchFacet,
    /// The key of each boundary. For strings: the range of all keys.
    cuts: Vec<Vec<u8>>,
}

impl FacetPlan<'_> {
    /// Returns the range of the keys of all values that count.
    fn range(&self) -> (&[u8], &[u8]) {
        match self.cuts.as_slice() {
            [first, .., last] => (first, last),
            _ => (&[], &[]),
        }
    }
}

/// The counts of a facet.
enum FacetCount {
    Strings(TopStrings),
    Ranges(RangeCounts),
}

/// The strings with the largest counts.
#[derive(Default)]
struct TopStrings {
    /// The string to be removed next is at the top: the last one of those with the smallest count.
    heap: BinaryHeap<(Reverse<u64>, Vec<u8>)>,
}

impl TopStrings {
    fn add(&mut self, key: &[u8], count: u64, count_max: usize) {
        if count == 0 {
            return;
        }
        if self.heap.len() >= count_max {
            let is_better = self.heap.peek().is_some_and(|(Reverse(least), worst)| {
                count > *least || count == *least && key < worst.as_slice()
            });
            if !is_better {
                return;
            }
            self.heap.pop();
        }
        self.heap.push((Reverse(count), key.to_vec()));
    }

    fn join(&mut self, other: TopStrings, count_max: usize) {
        for (Reverse(count), key) in other.heap {
            self.add(&key, count, count_max);
        }
    }

    /// Returns the buckets, sorted by descending count, then by string.
    fn into_buckets(self, count_max: usize, prefix: usize) -> Result<Vec<FacetBucket>, Error> {
        let sorted = self.heap.into_sorted_vec().into_iter().take(count_max);
        let bucket = |(Reverse(count), key): (Reverse<u64>, Vec<u8>)| {
            let value = key
                .get(prefix..)
                .and_then(|it| KeyReader::new(it, &[]).value(false));
            let id = value.ok_or_else(|| Bug::new("a key of a string cannot be read"))?;
            Ok(FacetBucket { id, count })
        };
        sorted.map(bucket).collect()
    }
}

/// The counts of consecutive ranges.
#[derive(Default)]
struct RangeCounts {
    counts: Vec<u64>,
    /// The records in any of the ranges, if the count of the other records is requested.
    found: IdSet,
    /// The number of records in any of the ranges, if their ids are not collected.
    found_count: u64,
}

impl RangeCounts {
    fn into_buckets(self, ranges: &FacetRanges, total: u64) -> Vec<FacetBucket> {
        let counts = ranges.boundaries.iter().zip(self.counts);
        let mut buckets: Vec<FacetBucket> = counts
            .map(|(boundary, count)| FacetBucket {
                id: boundary.clone(),
                count,
            })
            .collect();
        if let Some(default) = &ranges.default {
            buckets.push(FacetBucket {
                id: Value::from(default.as_str()),
                count: total.saturating_sub(self.found_count + self.found.len()),
            });
        }
        buckets
    }
}

/// A part of a facet's keys that is counted by one thread.
struct Task<'p> {
    plan: &'p FacetPlan<'p>,
    number: usize,
    /// The keys at which ranges begin, and the end of the last range.
    cuts: &'p [Vec<u8>],
}

impl FacetCounter<'_> {
    fn by_keys(
        &self,
        plans: &[FacetPlan<'_>],
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<FacetCount>, Error> {
        let parts = self.parts(plans)?;
        let mut tasks = Vec::new();
        for ((number, plan), cuts) in plans.iter().enumerate().zip(&parts) {
            let ranges = cuts.len().saturating_sub(1);
            let together = match &plan.facet.groups {
                FacetGroups::Strings { .. } => 1,
                FacetGroups::Ranges(_) => ranges.div_ceil(TASKS_PER_FACET).max(1),
            };
            for first in (0..ranges).step_by(together) {
                let last = (first + together).min(ranges);
                let cuts = cuts.get(first..=last).unwrap_or_default();
                tasks.push(Task { plan, number, cuts });
            }
        }
        let counts = run_tasks(
            tasks.len(),
            interrupt,
            &|task, interrupt| match tasks.get(task) {
                Some(task) => self.count_task(task, interrupt),
                None => Err(Bug::new(format!("the facets do not have a task {task}")).into()),
            },
        )?;
        let mut joined: Vec<FacetCount> = plans.iter().map(FacetPlan::zero_count).collect();
        for (task, count) in tasks.iter().zip(counts) {
            let all = joined.get_mut(task.number);
            match (all, count, &task.plan.facet.groups) {
                (
                    Some(FacetCount::Strings(all)),
                    FacetCount::Strings(count),
                    FacetGroups::Strings { count_max },
                ) => {
                    all.join(count, *count_max);
                }
                (Some(FacetCount::Ranges(all)), FacetCount::Ranges(count), _) => {
                    all.counts.extend(count.counts);
                    all.found.extend_from(&count.found);
                }
                _ => return Err(Bug::new("the counts of a task have another type").into()),
            }
        }
        Ok(joined)
    }

    /// Returns the keys that divide each facet into parts. For ranges they are the boundaries.
    fn parts(&self, plans: &[FacetPlan<'_>]) -> Result<Vec<Vec<Vec<u8>>>, Error> {
        let mut known = None;
        let mut parts = Vec::new();
        for plan in plans {
            let mut cuts = plan.cuts.clone();
            if matches!(plan.facet.groups, FacetGroups::Strings { .. }) {
                let (from, to) = plan.range();
                let all = match known.take() {
                    Some(known) => known,
                    None => self.source.entry_split_keys(self.index, CUTS)?,
                };
                let within = all
                    .iter()
                    .filter(|cut| from < cut.as_slice() && cut.as_slice() < to);
                let within: Vec<&Vec<u8>> = within.collect();
                let step = within.len().div_ceil(TASKS_PER_FACET).max(1);
                let within = within.iter().step_by(step).map(|cut| (*cut).clone());
                cuts.splice(1..1, within);
                known = Some(all);
            }
            parts.push(cuts);
        }
        Ok(parts)
    }

    fn count_task(&self, task: &Task<'_>, interrupt: &dyn Interrupt) -> Result<FacetCount, Error> {
        match &task.plan.facet.groups {
            FacetGroups::Strings { count_max } => {
                let strings = self.count_strings(task, *count_max, interrupt)?;
                Ok(FacetCount::Strings(strings))
            }
            FacetGroups::Ranges(ranges) => {
                let counts = self.count_ranges(task.cuts, ranges, interrupt)?;
                Ok(FacetCount::Ranges(counts))
            }
        }
    }

    fn count_strings(
        &self,
        task: &Task<'_>,
        count_max: usize,
        interrupt: &dyn Interrupt,
    ) -> Result<TopStrings, Error> {
        let (Some(from), Some(to)) = (task.cuts.first(), task.cuts.last()) else {
            return Ok(TopStrings::default());
        };
        let mut empty = Vec::new();
        append_value_key(&mut empty, &task.plan.facet.path, ValueRef::String(""));
        let (mut top, mut pace) = (TopStrings::default(), Pace::default());
        let mut lists = self.source.key_lists(self.index, from, to)?;
        while lists.next().map_err(storage)? {
            pace.step(interrupt)?;
            // MongoDB returns no bucket for the empty string.
            if lists.key() == empty {
                continue;
            }
            let count = match &self.matched {
                MatchedRecords::All => lists.count().map_err(storage)?,
                MatchedRecords::Set(set) => {
                    let (mut count, mut stopped) = (0, Ok(()));
                    let take = &mut |ids: &[u64]| {
                        let found = ids.iter().filter(|id| set.contains(**id));
                        count += found.count() as u64;
                        if stopped.is_ok() {
                            stopped = pace.step(interrupt);
                        }
                    };
                    lists.read(take).map_err(storage)?;
                    stopped?;
                    count
                }
            };
            top.add(lists.key(), count, count_max);
        }
        Ok(top)
    }

    /// Counts the records with a value in each of the ranges between `cuts`.
    fn count_ranges(
        &self,
        cuts: &[Vec<u8>],
        ranges: &FacetRanges,
        interrupt: &dyn Interrupt,
    ) -> Result<RangeCounts, Error> {
        let (mut counted, mut pace) = (RangeCounts::default(), Pace::default());
        for (from, to) in cuts.iter().zip(cuts.iter().skip(1)) {
            // A record with several values in the range counts once.
            let (mut seen, mut count) = (IdSet::default(), 0);
            let mut lists = self.source.key_lists(self.index, from, to)?;
            while lists.next().map_err(storage)? {
                let mut stopped = pace.step(interrupt);
                let take = &mut |ids: &[u64]| {
                    for id in ids {
                        count +=
                            u64::from(self.matched.contains(RecordId(*id)) && seen.insert(*id));
                    }
                    if stopped.is_ok() && ids.len() > 1 {
                        stopped = pace.step(interrupt);
                    }
                };
                lists.read(take).map_err(storage)?;
                stopped?;
            }
            counted.counts.push(count);
            if ranges.default.is_some() {
                counted.found.extend_from(&seen);
            }
        }
        Ok(counted)
    }
}

/// The number of keys of the index that are considered for dividing facets into parts.
const CUTS: u64 = 256;

impl FacetPlan<'_> {
    fn zero_count(&self) -> FacetCount {
        match &self.facet.groups {
            FacetGroups::Strings { .. } => FacetCount::Strings(TopStrings::default()),
            FacetGroups::Ranges(_) => FacetCount::Ranges(RangeCounts::default()),
        }
    }
}

/// The counts of a facet when counting by documents.
enum DocumentCounts {
    /// The number of records with each string, by key.
    Strings(HashMap<Vec<u8>, u64>),
    Ranges {
        /// The number of records in each range.
        counts: Vec<u64>,
        /// The number of records in any of the ranges.
        found: u64,
    },
}

impl FacetCounter<'_> {
    /// Counts by the matching documents. Returns `None` if they contain too many strings.
    fn by_documents(
        &self,
        matched: &IdSet,
        plans: &[FacetPlan<'_>],
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Vec<FacetCount>>, Error> {
        let mut all_counts: Vec<DocumentCounts> =
            plans.iter().map(FacetPlan::zero_document_counts).collect();
        let (mut bytes, mut pace) = (0, Pace::default());
        let mut ids = matched.clone().into_ids();
        while ids.id() != END {
            if let Some(document) = self.source.get(RecordId(ids.id()))? {
                pace.step_over(document.len(), interrupt)?;
                let document = Document::from_validated(&document);
                for (plan, counts) in plans.iter().zip(&mut all_counts) {
                    bytes += self.add_document(plan, document, counts);
                }
            }
            if bytes > KEY_BYTES_MAX {
                return Ok(None);
            }
            ids.next();
        }
        let counted = plans.iter().zip(all_counts);
        let counted = counted.map(|(plan, counts)| counts.into_count(plan));
        Ok(Some(counted.collect()))
    }

    /// Adds a document to the counts. Returns the size of the new strings in bytes.
    fn add_document(
        &self,
        plan: &FacetPlan<'_>,
        document: Document<'_>,
        counts: &mut DocumentCounts,
    ) -> usize {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        self.definition
            .values_at(document, &plan.facet.path, &mut |value| {
                let mut key = prefix(&plan.facet.path, VALUE).into_bytes();
                key::append(&mut key, value);
                keys.push(key);
            });
        let (from, to) = plan.range();
        keys.retain(|key| from <= key.as_slice() && key.as_slice() < to);
        keys.sort_unstable();
        keys.dedup();
        let mut bytes = 0;
        match counts {
            DocumentCounts::Strings(strings) => {
                for key in keys {
                    let length = key.len();
                    *strings.entry(key).or_insert_with(|| {
                        bytes += length;
                        0
                    }) += 1;
                }
            }
            DocumentCounts::Ranges { counts, found } => {
                *found += u64::from(!keys.is_empty());
                let range = |key: &Vec<u8>| plan.cuts.partition_point(|cut| cut <= key);
                let mut ranges: Vec<usize> = keys.iter().map(range).collect();
                ranges.dedup();
                for number in ranges {
                    let count = number.checked_sub(1).and_then(|at| counts.get_mut(at));
                    count.into_iter().for_each(|count| *count += 1);
                }
            }
        }
        bytes
    }
}

impl FacetPlan<'_> {
    fn zero_document_counts(&self) -> DocumentCounts {
        match &self.facet.groups {
            FacetGroups::Strings { .. } => DocumentCounts::Strings(HashMap::new()),
            FacetGroups::Ranges(ranges) => DocumentCounts::Ranges {
                counts: vec![0; ranges.boundaries.len() - 1],
                found: 0,
            },
        }
    }
}

impl DocumentCounts {
    fn into_count(self, plan: &FacetPlan<'_>) -> FacetCount {
        match (self, &plan.facet.groups) {
            (DocumentCounts::Strings(strings), FacetGroups::Strings { count_max }) => {
                let mut empty = Vec::new();
                append_value_key(&mut empty, &plan.facet.path, ValueRef::String(""));
                let mut top = TopStrings::default();
                for (key, count) in strings.iter().filter(|(key, _)| **key != empty) {
                    top.add(key, *count, *count_max);
                }
                FacetCount::Strings(top)
            }
            (DocumentCounts::Strings(_), FacetGroups::Ranges(_)) => plan.zero_count(),
            (DocumentCounts::Ranges { counts, found }, _) => FacetCount::Ranges(RangeCounts {
                counts,
                found: IdSet::default(),
                found_count: found,
            }),
        }
    }
}
