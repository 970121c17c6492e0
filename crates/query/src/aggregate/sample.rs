//! `$sample`: so many rows at random.

use windrow_document::ValueRef;
use windrow_mql::expression::Dependencies;
use windrow_mql::filter::Environment;

use super::operand;
use super::stage::{Kind, Setting, Transformation};
use crate::Error;
use crate::operators::{BoxOperator, Counters, Memory, Operator, Sorted, Sorter, counted};
use crate::row::{Interrupt, Row};

/// A parsed `$sample`.
#[derive(Clone, Copy, Debug)]
struct Sample {
    size: u64,
}

/// Parses `{size: number}`. Errors: 28745 for what is no document, 28746 and 28747 for a wrong size,
/// 28748 for other options, 28749 without a size.
pub(super) fn parse(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<Kind>, Error> {
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
    Ok(vec![Kind::of(Sample { size })])
}

impl Transformation for Sample {
    fn open(&self, input: BoxOperator, setting: &Setting) -> Result<BoxOperator, Error> {
        let operator = SampleOperator::new(self.size, setting.allow_disk_use, input);
        Ok(Box::new(operator))
    }

    fn shuffles(&self) -> bool {
        true
    }

    fn dependencies(&self) -> Dependencies {
        Dependencies::default()
    }
}

/// Gives every row a random number and keeps those with the least.
struct SampleOperator {
    sorter: Option<Sorter>,
    sorted: Sorted,
    random: Random,
    input: BoxOperator,
    counters: Counters,
}

impl SampleOperator {
    pub fn new(size: u64, allow_disk_use: bool, input: BoxOperator) -> SampleOperator {
        SampleOperator {
            sorter: Some(Sorter::new(Some(size), Memory::of(allow_disk_use))),
            sorted: Sorted::nothing(),
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
                let number = self.random.next();
                sorter.add_with(row, |_, key| {
                    key.extend_from_slice(&number.to_be_bytes());
                    Ok(())
                })?;
            }
            self.sorted = sorter.finish()?;
        }
        let row = self.sorted.next()?.map(|keyed| keyed.row);
        self.counters.note(&row);
        Ok(row)
    }

    counted!(counters, input);
}

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled").
struct Random(u64);

impl Random {
    fn new() -> Random {
        Random(getrandom::u64().unwrap_or(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}
