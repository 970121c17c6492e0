//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`.

use windrow_document::ValueRef;

use crate::Error;

/// What is asked of the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitTest {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

impl BitTest {
    /// `$bitsAllSet`, …
    pub fn name(self) -> &'static str {
        match self {
            BitTest::AllSet => "$bitsAllSet",
            BitTest::AllClear => "$bitsAllClear",
            BitTest::AnySet => "$bitsAnySet",
            BitTest::AnyClear => "$bitsAnyClear",
        }
    }
}

/// A test of the bits at some positions, 0 being the lowest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    pub test: BitTest,
    pub positions: Vec<u32>,
    /// The positions below 63 as a mask; from 63 on they all ask for the sign.
    mask: u64,
}

impl Bits {
    /// The operand is a mask as a number or as binary, or a list of positions.
    pub(super) fn parse(test: BitTest, operand: ValueRef<'_>) -> Result<Bits, Error> {
        let positions = match operand {
            ValueRef::Array(list) => list
                .iter()
                .map(|value| position(test, value))
                .collect::<Result<Vec<u32>, Error>>()?,
            ValueRef::Binary { bytes, .. } => binary_positions(bytes),
            number if number.is_number() => number_positions(test, number)?,
            _ => {
                let message = format!(
                    "{} takes an Array, a number, or a BinData but received: {operand}",
                    test.name()
                );
                return Err(Error::bad_value(message));
            }
        };
        let mask = positions
            .iter()
            .fold(0u64, |mask, position| mask | 1 << (*position).min(63));
        Ok(Bits {
            test,
            positions,
            mask,
        })
    }

    /// Whole numbers that fit 64 bits, as two's complement with the sign going on for ever, and
    /// binaries, with zeros going on. Nothing else has bits.
    pub(super) fn test(&self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Binary { bytes, .. } => {
                let set = self
                    .positions
                    .iter()
                    .filter(|position| is_set(bytes, **position));
                self.verdict(set.count(), self.positions.len())
            }
            _ => match whole(value) {
                Some(number) => {
                    let set = (number as u64 & self.mask).count_ones();
                    self.verdict(set as usize, self.mask.count_ones() as usize)
                }
                None => false,
            },
        }
    }

    fn verdict(&self, set: usize, asked: usize) -> bool {
        match self.test {
            BitTest::AllSet => set == asked,
            BitTest::AllClear => set == 0,
            BitTest::AnySet => set > 0,
            BitTest::AnyClear => set < asked,
        }
    }
}

/// The number whose bits are tested. A double must be whole; a decimal is rounded to even, as the
/// server does.
fn whole(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Decimal128(number) => {
            let rounded = number.to_places(0, windrow_document::decimal::Rounding::HalfEven);
            rounded.to_i64_exact()
        }
        other => other.as_whole(),
    }
}

fn is_set(bytes: &[u8], position: u32) -> bool {
    let byte = bytes
        .get(position as usize / 8)
        .copied()
        .unwrap_or_default();
    byte >> (position % 8) & 1 == 1
}

fn binary_positions(bytes: &[u8]) -> Vec<u32> {
    let bits = u32::try_from(bytes.len() * 8).unwrap_or(u32::MAX);
    (0..bits)
        .filter(|position| is_set(bytes, *position))
        .collect()
}

fn number_positions(test: BitTest, operand: ValueRef<'_>) -> Result<Vec<u32>, Error> {
    let mask = operand
        .as_whole()
        .filter(|mask| *mask >= 0)
        .ok_or_else(|| {
            Error::failed_to_parse(format!(
                "Failed to parse bit position. Expected a non-negative number in: {}: {operand}",
                test.name()
            ))
        })?;
    Ok((0..63)
        .filter(|position| mask >> position & 1 == 1)
        .collect())
}

fn position(test: BitTest, value: ValueRef<'_>) -> Result<u32, Error> {
    let whole = value.as_whole().filter(|_| value.is_number());
    whole
        .filter(|position| i32::try_from(*position).is_ok())
        .and_then(|position| u32::try_from(position).ok())
        .ok_or_else(|| {
            Error::bad_value(format!(
                "Failed to parse bit position. Expected a non-negative integer in: {}: {value}",
                test.name()
            ))
        })
}
