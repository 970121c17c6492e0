//! `$sample`: a random sample of the rows.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use windrow_document::ValueRef;
use windrow_interrupt::Interrupt;
use windrow_mql::expression::Dependencies;
use windrow_mql::filter::Environment;

use super::operand;
use super::stage::{PipelineContext, StageKind, Transformation};
use crate::Error;
use crate::operators::{BoxOperator, Counters, MemoryLimit, Operator, SortedRows, Sorter, counted};
use crate::row::{Pace, Row};
use crate::source::{Direction, RecordId, Source};

/// A parsed `$sample`.
#[derive(Clone, Copy, Debug)]
struct Sample {
    size: u64,
}

/// Parses `{size: number}`. Fails with 28745 if the operand is not a document, with 28746 or 28747
/// for an invalid size, with 28748 for unknown options, with 28749 without a size.
pub(super) fn parse(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::new(
            28745,
            "the $sample stage specification must be an object",
        ));
    };
    let mut size = None;
    for (name, value) in document {
        match name {
            "size" if !value.is_number() => {
                return Err(Error::new(
                    28746,
                    "size argument to $sample must be a number",
                ));
            }
            "size" => size = Some(operand::nearest(value)),
            other => {
                return Err(Error::new(
                    28748,
                    format!("unrecognized option to $sample: {other}"),
                ));
            }
        }
    }
    let Some(size) = size else {
        return Err(Error::new(28749, "$sample stage must specify a size"));
    };
    let size = u64::try_from(size)
        .map_err(|_| Error::new(28747, "size argument to $sample must not be negative"))?;
    Ok(vec![StageKind::from_transformation(Sample { size })])
}

impl Transformation for Sample {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        let operator = SampleOperator::new(self.size, context.allow_disk_use, input);
        Ok(Box::new(operator))
    }

    fn over_source(
        &self,
        source: &Arc<dyn Source>,
        context: &PipelineContext,
    ) -> Option<Result<BoxOperator, Error>> {
        let few =
            RandomRecords::open_if_few(source, self.size, context.allow_disk_use).transpose()?;
        Some(few.map(|drawn| Box::new(drawn) as BoxOperator))
    }

    fn shuffles(&self) -> bool {
        true
    }

    fn dependencies(&self) -> Dependencies {
        Dependencies::default()
    }
}

/// Draws records by random ids. The number of records can be lower than the count says, for example
/// in a transaction that has deleted most of them, or in a snapshot from before they were stored.
/// In this case the remaining records are read completely.
struct RandomRecords {
    source: Arc<dyn Source>,
    ids: RangeInclusive<u64>,
    drawn_ids: HashSet<RecordId>,
    remaining: u64,
    /// How many draws may still fail, because an id has no record or was drawn before.
    misses_left: u64,
    rest: Option<SortedRows>,
    allow_disk_use: bool,
    random: Random,
    counters: Counters,
    pace: Pace,
}

/// Smaller collections are read completely in the same time.
const COUNT_MIN: u64 = 100;
/// At most one of this many documents is drawn by id, as in MongoDB.
const SAMPLE_DIVISOR: u64 = 20;
/// If there are more ids per document than this, drawing takes too long.
const IDS_PER_DOCUMENT_MAX: u64 = 8;
/// The number of failed draws per record after which the count is assumed to be wrong. It is twice
/// the number expected in the sparsest collections that are drawn from.
const MISSES_PER_RECORD: u64 = 2 * IDS_PER_DOCUMENT_MAX;
/// The number of failed draws that are added to it, for small samples.
const MISSES_MIN: u64 = 128;

impl RandomRecords {
    /// Opens a sample by ids. Returns `None` if it is better to read the whole collection.
    fn open_if_few(
        source: &Arc<dyn Source>,
        size: u64,
        allow_disk_use: bool,
    ) -> Result<Option<RandomRecords>, Error> {
        let count = source.count();
        let is_few = count >= COUNT_MIN && size < count / SAMPLE_DIVISOR;
        if !is_few || source.view().is_some() || source.is_clustered() {
            return Ok(None);
        }
        let end = |direction| {
            let mut records = source.records(direction)?;
            Ok::<_, Error>(records.next()?.then(|| records.id().0))
        };
        let (Some(first), Some(last)) = (end(Direction::Forward)?, end(Direction::Backward)?)
        else {
            return Ok(None);
        };
        let is_dense = last.saturating_sub(first) / IDS_PER_DOCUMENT_MAX < count;
        Ok(is_dense.then(|| RandomRecords {
            source: source.clone(),
            ids: first..=last,
            drawn_ids: HashSet::new(),
            remaining: size,
            misses_left: MISSES_MIN + MISSES_PER_RECORD * size,
            rest: None,
            allow_disk_use,
            random: Random::new(),
            counters: Counters::default(),
            pace: Pace::default(),
        }))
    }

    fn draw(&mut self) -> RecordId {
        let span = self.ids.end() - self.ids.start() + 1;
        // Takes the high half of the product. The ids have equal probabilities, up to a factor of
        // the span over 2^64.
        let drawn = (u128::from(self.random.next()) * u128::from(span)) >> 64;
        RecordId(self.ids.start() + drawn as u64)
    }

    /// Returns a record that was not drawn before. `None` if too many draws have failed.
    fn draw_row(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        while self.misses_left > 0 {
            self.pace.step(interrupt)?;
            let id = self.draw();
            if self.drawn_ids.insert(id)
                && let Some(document) = self.source.get(id)?
            {
                self.counters.documents_examined += 1;
                return Ok(Some(Row::from_record(id, document)));
            }
            self.misses_left -= 1;
        }
        Ok(None)
    }

    /// Returns a random sample of the records that were not drawn.
    fn read_rest(&mut self, interrupt: &dyn Interrupt) -> Result<SortedRows, Error> {
        let mut sorter = Sorter::new(Some(self.remaining), MemoryLimit::new(self.allow_disk_use));
        let mut records = self.source.records(Direction::Forward)?;
        while records.next()? {
            self.pace.step(interrupt)?;
            self.counters.documents_examined += 1;
            if !self.drawn_ids.contains(&records.id()) {
                let row = Row::from_record(records.id(), records.document_bytes());
                self.random.add_row(&mut sorter, row)?;
            }
        }
        sorter.finish()
    }
}

impl Operator for RandomRecords {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.remaining == 0 {
            return Ok(None);
        }
        let drawn = match self.draw_row(interrupt)? {
            Some(row) => Some(row),
            None => {
                let rest = match self.rest.take() {
                    Some(rest) => rest,
                    None => self.read_rest(interrupt)?,
                };
                let next = self.rest.insert(rest).next()?;
                next.map(|keyed| keyed.row)
            }
        };
        match &drawn {
            Some(_) => {
                (self.remaining, self.counters.returned) =
                    (self.remaining - 1, self.counters.returned + 1)
            }
            None => self.remaining = 0,
        }
        Ok(drawn)
    }

    counted!(counters);
}

/// Assigns a random number to each row, and keeps the rows with the smallest numbers.
struct SampleOperator {
    sorter: Option<Sorter>,
    sorted: SortedRows,
    random: Random,
    input: BoxOperator,
    counters: Counters,
}

impl SampleOperator {
    pub fn new(size: u64, allow_disk_use: bool, input: BoxOperator) -> SampleOperator {
        SampleOperator {
            sorter: Some(Sorter::new(Some(size), MemoryLimit::new(allow_disk_use))),
            sorted: SortedRows::empty(),
            random: Random::new(),
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for SampleOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if let Some(mut sorter) = self.sorter.take() {
            while let Some(row) = self.input.next(interrupt)? {
                self.random.add_row(&mut sorter, row)?;
            }
            self.sorted = sorter.finish()?;
        }
        let row = self.sorted.next()?.map(|keyed| keyed.row);
        self.counters.record(&row);
        Ok(row)
    }

    counted!(counters, input);
}

/// The generator xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
/// generators, scrambled").
struct Random(u64);

impl Random {
    fn new() -> Random {
        Random(getrandom::u64().unwrap_or(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Adds a row with a random key.
    fn add_row(&mut self, sorter: &mut Sorter, row: Row) -> Result<(), Error> {
        let number = self.next();
        sorter.add_with(row, |_, key| {
            key.extend_from_slice(&number.to_be_bytes());
            Ok(())
        })
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}
