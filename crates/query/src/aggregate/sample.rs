//! `$sample`: so many rows at random.

use windrow_document::ValueRef;
use windrow_mql::filter::Environment;

use super::stage::Kind;
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator, bytes_max, over_memory};
use crate::row::{Interrupt, Row};

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
            "size" => size = Some(super::stage::whole(value)),
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
    Ok(vec![Kind::Sample(size)])
}

/// Keeps a reservoir: every row is as likely as any other to be in it at the end.
pub(super) struct Sample {
    size: u64,
    bytes_max: usize,
    random: Random,
    input: BoxOperator,
    done: Option<std::vec::IntoIter<Row>>,
    counters: Counters,
}

impl Sample {
    pub fn new(size: u64, allow_disk_use: bool, input: BoxOperator) -> Sample {
        Sample {
            size,
            bytes_max: bytes_max(allow_disk_use),
            random: Random::new(),
            input,
            done: None,
            counters: Counters::default(),
        }
    }

    fn run(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<Row>, Error> {
        let (mut kept, mut bytes, mut seen): (Vec<Row>, usize, u64) = (Vec::new(), 0, 0);
        let length = |row: &Row| row.content.as_bytes().len() + size_of::<Row>();
        while let Some(row) = self.input.next(interrupt)? {
            seen += 1;
            if (kept.len() as u64) < self.size {
                bytes += length(&row);
                kept.push(row);
            } else if let Some(slot) = kept.get_mut(self.random.below(seen) as usize) {
                bytes = (bytes + length(&row)).saturating_sub(length(slot));
                *slot = row;
            }
            if bytes > self.bytes_max {
                return Err(over_memory("$sample"));
            }
        }
        for last in (1..kept.len()).rev() {
            kept.swap(last, self.random.below(last as u64 + 1) as usize);
        }
        Ok(kept)
    }
}

impl Operator for Sample {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.done.is_none() {
            self.done = Some(self.run(interrupt)?.into_iter());
        }
        let row = self.done.as_mut().and_then(Iterator::next);
        self.counters.note(&row);
        Ok(row)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled").
struct Random(u64);

impl Random {
    fn new() -> Random {
        Random(getrandom::u64().unwrap_or(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let product = u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) * u128::from(limit);
        (product >> 64) as u64
    }
}
