//! Sorts rows: in memory or, if they are too many, as sorted runs in files that are merged at the
//! end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use windrow_mql::interrupt::sort_by;
use windrow_mql::sort::Sort as Order;

use super::keyed_row::KeyedRow;
use super::spill::{Run, RunWriter};
use crate::Error;
use crate::row::Row;

/// The memory limit of one blocking operator.
pub(crate) const SORT_BYTES_MAX: usize = 100 * 1024 * 1024;
/// The largest number of runs in files. If there are more, they are merged into one.
const RUNS_MAX: usize = 64;
/// The memory limit of operators that never use files, if the command allows the use of files.
const BYTES_MAX_ALLOWED: usize = 1024 * 1024 * 1024;
/// MongoDB's code QueryExceededMemoryLimitNoDiskUseAllowed.
const OVER_MEMORY: i32 = 292;

/// The memory limit of an operator, and whether it may use files beyond it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryLimit {
    pub bytes_max: usize,
    pub may_spill: bool,
}

impl MemoryLimit {
    /// The same limit, without files.
    pub fn in_memory(self) -> MemoryLimit {
        MemoryLimit {
            may_spill: false,
            ..self
        }
    }

    /// The limit of each of `sharers` operators that share the memory.
    pub fn shared_by(self, sharers: usize) -> MemoryLimit {
        MemoryLimit {
            bytes_max: self.bytes_max / sharers.max(1),
            ..self
        }
    }

    /// The limit of every blocking operator.
    pub fn new(allow_disk_use: bool) -> MemoryLimit {
        MemoryLimit {
            bytes_max: SORT_BYTES_MAX,
            may_spill: allow_disk_use,
        }
    }
}

/// The memory limit of an operator that never uses files.
pub(crate) fn bytes_max(allow_disk_use: bool) -> usize {
    if allow_disk_use {
        BYTES_MAX_ALLOWED
    } else {
        SORT_BYTES_MAX
    }
}

/// Sorts rows. With a limit it holds no more rows than the limit.
pub(crate) struct Sorter {
    limit: Option<usize>,
    rows: Vec<KeyedRow>,
    /// With a limit: the best rows so far, the last of them at the top.
    best: BinaryHeap<KeyedRow>,
    runs: Vec<Run>,
    number: u64,
    bytes: usize,
    memory: MemoryLimit,
    scratch: Vec<u8>,
}

impl Sorter {
    pub fn new(limit: Option<u64>, memory: MemoryLimit) -> Sorter {
        Sorter {
            limit: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            rows: Vec::new(),
            best: BinaryHeap::new(),
            runs: Vec::new(),
            number: 0,
            bytes: 0,
            memory,
            scratch: Vec::new(),
        }
    }

    /// Adds a row. Fails with 292 if the rows exceed the memory limit.
    pub fn add(&mut self, order: &Order, row: Row) -> Result<(), Error> {
        self.add_with(row, |row, key| {
            Ok(order.key(row.document(), &row.meta, key)?)
        })
    }

    /// Adds a row whose sort key is appended by `make_key`.
    pub fn add_with(
        &mut self,
        row: Row,
        make_key: impl FnOnce(&Row, &mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.scratch.clear();
        make_key(&row, &mut self.scratch)?;
        self.number += 1;
        if self.limit.is_some_and(|limit| self.best.len() >= limit) && !self.make_room() {
            return Ok(());
        }
        let keyed = KeyedRow {
            key: self.scratch.as_slice().into(),
            number: self.number,
            row,
        };
        self.bytes += bytes_of(&keyed);
        match self.limit {
            Some(_) => self.best.push(keyed),
            None => self.rows.push(keyed),
        }
        if self.bytes <= self.memory.bytes_max {
            return Ok(());
        }
        if self.memory.may_spill {
            self.spill()
        } else {
            Err(over_memory("Sort"))
        }
    }

    /// Drops the last of the best rows if the new key is less. Returns `false` otherwise.
    fn make_room(&mut self) -> bool {
        match self.best.peek() {
            Some(last) if self.scratch.as_slice() < &*last.key => {}
            _ => return false,
        }
        if let Some(dropped) = self.best.pop() {
            self.bytes -= bytes_of(&dropped);
        }
        true
    }

    /// Takes the rows in memory, sorted.
    fn take_sorted(&mut self) -> Result<Vec<KeyedRow>, Error> {
        self.bytes = 0;
        match self.limit {
            Some(_) => Ok(std::mem::take(&mut self.best).into_sorted_vec()),
            None => {
                let mut rows = std::mem::take(&mut self.rows);
                sort_by(&mut rows, KeyedRow::cmp)?;
                Ok(rows)
            }
        }
    }

    /// Writes the rows in memory to a run.
    fn spill(&mut self) -> Result<(), Error> {
        let mut writer = RunWriter::begin()?;
        for keyed in self.take_sorted()? {
            writer.push(&keyed)?;
        }
        self.runs.push(writer.finish()?);
        if self.runs.len() >= RUNS_MAX {
            let mut merge = RunMerge::new(std::mem::take(&mut self.runs), Vec::new())?;
            let mut writer = RunWriter::begin()?;
            while let Some(keyed) = merge.next()? {
                writer.push(&keyed)?;
            }
            self.runs.push(writer.finish()?);
        }
        Ok(())
    }

    /// Places the rows of this sorter after those of all sorters with a smaller number, if the keys
    /// are equal.
    pub fn after_sorter(mut self, number: usize) -> Sorter {
        self.number = (number as u64) << ROWS_BITS;
        self
    }

    /// Sorts the rows in memory, or spills them if there are runs already.
    pub fn sort_or_spill(&mut self) -> Result<(), Error> {
        if self.runs.is_empty() {
            sort_by(&mut self.rows, KeyedRow::cmp)?
        } else {
            self.spill()?
        }
        Ok(())
    }

    /// Returns the sorted rows.
    pub fn finish(self) -> Result<SortedRows, Error> {
        Sorter::finish_all(vec![self])
    }

    /// Merges the rows of several sorters with the same limit.
    pub fn finish_all(sorters: Vec<Sorter>) -> Result<SortedRows, Error> {
        let limit = sorters.first().and_then(|sorter| sorter.limit);
        let (mut runs, mut in_memory) = (Vec::new(), Vec::new());
        for mut sorter in sorters {
            in_memory.push(sorter.take_sorted()?.into_iter());
            runs.append(&mut sorter.runs);
        }
        match (in_memory.pop(), runs.is_empty() && in_memory.is_empty()) {
            (Some(rows), true) => Ok(SortedRows::InMemory(rows)),
            (last, _) => {
                in_memory.extend(last);
                Ok(SortedRows::Merged {
                    merge: RunMerge::new(runs, in_memory)?,
                    remaining: limit.unwrap_or(usize::MAX),
                })
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A sorter holds up to 2^40 rows.
const ROWS_BITS: u32 = 40;

fn bytes_of(keyed: &KeyedRow) -> usize {
    size_of::<KeyedRow>() + keyed.key.len() + keyed.row.bytes()
}

/// The sorted rows of a [`Sorter`].
pub(crate) enum SortedRows {
    /// No rows were spilled.
    InMemory(std::vec::IntoIter<KeyedRow>),
    /// A merge of several sorters or of runs in files, of which `remaining` rows are returned.
    Merged { merge: RunMerge, remaining: usize },
}

impl SortedRows {
    /// No rows.
    pub fn empty() -> SortedRows {
        SortedRows::InMemory(Vec::new().into_iter())
    }

    /// Returns the next row with its key, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<KeyedRow>, Error> {
        match self {
            SortedRows::InMemory(rows) => Ok(rows.next()),
            SortedRows::Merged { remaining: 0, .. } => Ok(None),
            SortedRows::Merged { merge, remaining } => {
                *remaining -= 1;
                merge.next()
            }
        }
    }
}

/// A merge of sorted runs.
pub(crate) struct RunMerge {
    runs: Vec<Run>,
    in_memory: Vec<std::vec::IntoIter<KeyedRow>>,
    /// The next row of each source, with the number of the source. The runs come first, then the
    /// rows in memory.
    heads: BinaryHeap<Reverse<(KeyedRow, usize)>>,
}

impl RunMerge {
    fn new(
        runs: Vec<Run>,
        in_memory: Vec<std::vec::IntoIter<KeyedRow>>,
    ) -> Result<RunMerge, Error> {
        let sources = runs.len() + in_memory.len();
        let mut merge = RunMerge {
            heads: BinaryHeap::with_capacity(sources),
            in_memory,
            runs,
        };
        (0..sources).try_for_each(|source| merge.advance(source))?;
        Ok(merge)
    }

    fn advance(&mut self, source: usize) -> Result<(), Error> {
        let in_memory = source.checked_sub(self.runs.len());
        let next = match in_memory.and_then(|source| self.in_memory.get_mut(source)) {
            Some(rows) => rows.next(),
            None => match self.runs.get_mut(source) {
                Some(run) => run.next()?,
                None => None,
            },
        };
        self.heads.extend(next.map(|next| Reverse((next, source))));
        Ok(())
    }

    fn next(&mut self) -> Result<Option<KeyedRow>, Error> {
        let Some(Reverse((keyed, source))) = self.heads.pop() else {
            return Ok(None);
        };
        self.advance(source)?;
        Ok(Some(keyed))
    }
}

/// Returns `true` for the error of [`over_memory`].
pub(crate) fn is_over_memory(error: &Error) -> bool {
    error.code() == Some(OVER_MEMORY)
}

/// The error 292: an operator exceeds its memory limit.
pub(crate) fn over_memory(step: &str) -> Error {
    Error::new(
        OVER_MEMORY,
        format!(
            "{step} exceeded its memory limit of {SORT_BYTES_MAX} bytes, but did not opt in to \
             external sorting. Pass allowDiskUse:true to opt in."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordId;
    use windrow_document::{ValueRef, doc};

    #[test]
    fn rows_on_the_disk_come_in_order() {
        let check = |count: u64, limit: Option<u64>, bytes_max: usize| {
            let memory = MemoryLimit {
                bytes_max,
                may_spill: true,
            };
            let order = Order::parse(doc! { "n": 1 }.as_document()).unwrap();
            let mut sorter = Sorter::new(limit, memory);
            for number in 0..count {
                let n = (number * 7919 % count) as i64 / 2;
                let row = Row::from_record(RecordId(number), doc! { "n": n });
                sorter.add(&order, row).unwrap();
            }
            let mut sorted = sorter.finish().unwrap();
            let mut found: Vec<(i64, u64)> = Vec::new();
            while let Some(keyed) = sorted.next().unwrap() {
                let n = keyed.row.document().get("n").and_then(ValueRef::as_whole);
                found.push((n.unwrap(), keyed.row.id.0));
            }
            assert!(found.is_sorted(), "{count} {limit:?} {bytes_max}");
            assert_eq!(found.len() as u64, limit.unwrap_or(count).min(count));
        };
        check(1000, None, 1 << 30);
        check(1000, None, 10_000);
        check(3000, None, 4_000);
        check(1000, Some(400), 10_000);
        check(1000, Some(5), 10_000);
    }

    #[test]
    fn without_the_disk_there_is_a_limit() {
        let memory = MemoryLimit {
            bytes_max: 1000,
            may_spill: false,
        };
        let order = Order::parse(doc! { "n": 1 }.as_document()).unwrap();
        let mut sorter = Sorter::new(None, memory);
        let mut added = (0..100).map(|n| sorter.add(&order, Row::new(doc! { "n": n })));
        let error = added.find_map(Result::err);
        assert_eq!(error.and_then(|error| error.code()), Some(292));
    }
}
