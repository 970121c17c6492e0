//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`.

use windrow_document::ValueRef;

use crate::Error;

/// The condition on the bits at the tested positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitTest {
    /// All are 1.
    AllSet,
    /// All are 0.
    AllClear,
    /// At least one is 1.
    AnySet,
    /// At least one is 0.
    AnyClear,
}

impl BitTest {
    /// Returns the name of the operator, such as `$bitsAllSet`.
    pub fn name(self) -> &'static str {
        match self {
            BitTest::AllSet => "$bitsAllSet",
            BitTest::AllClear => "$bitsAllClear",
            BitTest::AnySet => "$bitsAnySet",
            BitTest::AnyClear => "$bitsAnyClear",
        }
    }
}

/// A test of the bits at some positions. Position 0 is the lowest bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The condition on these bits.
    pub test: BitTest,
    /// The tested positions.
    pub positions: Vec<u32>,
    /// The positions as a mask of an i64. Positions from 63 on all test the sign bit.
    mask: u64,
}

impl Bits {
    /// Parses the operand: a mask as a number or as binary data, or a list of positions.
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

    /// Tests whole numbers that fit in 64 bits, as two's complement with an infinite sign
    /// extension, and binary data, with infinite zeros behind it. Other values have no bits and do
    /// not match.
    pub(super) fn test(&self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Binary { bytes, .. } => {
                let set = self
                    .positions
                    .iter()
                    .filter(|position| is_set(bytes, **position));
                self.is_fulfilled(set.count(), self.positions.len())
            }
            _ => match whole(value) {
                Some(number) => {
                    let set = (number as u64 & self.mask).count_ones();
                    self.is_fulfilled(set as usize, self.mask.count_ones() as usize)
                }
                None => false,
            },
        }
    }

    fn is_fulfilled(&self, set: usize, tested: usize) -> bool {
        match self.test {
            BitTest::AllSet => set == tested,
            BitTest::AllClear => set == 0,
            BitTest::AnySet => set > 0,
            BitTest::AnyClear => set < tested,
        }
    }
}

/// Returns the number whose bits are tested. A double must be whole. A decimal is rounded half to
/// even, as in MongoDB.
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
