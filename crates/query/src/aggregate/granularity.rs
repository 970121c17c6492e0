//! Preferred numbers, to which `$bucketAuto` can round its boundaries.

mod rounding;

use windrow_document::{Decimal128, Value, ValueRef};
use windrow_invariant::Bug;

use crate::Error;

/// A series of numbers that repeats with each power of ten, or the powers of two.
#[derive(Clone, Copy, Debug)]
pub enum Granularity {
    Series(&'static [f64]),
    PowersOfTwo,
}

// The series of preferred numbers, scaled by 10 or 100: ISO 3 (R series) and IEC 60063 (E series).
const R5: &[f64] = &[10.0, 16.0, 25.0, 40.0, 63.0];
const R10: &[f64] = &[
    100.0, 125.0, 160.0, 200.0, 250.0, 315.0, 400.0, 500.0, 630.0, 800.0,
];
const R20: &[f64] = &[
    100.0, 112.0, 125.0, 140.0, 160.0, 180.0, 200.0, 224.0, 250.0, 280.0, 315.0, 355.0, 400.0,
    450.0, 500.0, 560.0, 630.0, 710.0, 800.0, 900.0,
];
const R40: &[f64] = &[
    100.0, 106.0, 112.0, 118.0, 125.0, 132.0, 140.0, 150.0, 160.0, 170.0, 180.0, 190.0, 200.0,
    212.0, 224.0, 236.0, 250.0, 265.0, 280.0, 300.0, 315.0, 355.0, 375.0, 400.0, 425.0, 450.0,
    475.0, 500.0, 530.0, 560.0, 600.0, 630.0, 670.0, 710.0, 750.0, 800.0, 850.0, 900.0, 950.0,
];
const R80: &[f64] = &[
    103.0, 109.0, 115.0, 122.0, 128.0, 136.0, 145.0, 155.0, 165.0, 175.0, 185.0, 195.0, 206.0,
    218.0, 230.0, 243.0, 258.0, 272.0, 290.0, 307.0, 325.0, 345.0, 365.0, 387.0, 412.0, 437.0,
    462.0, 487.0, 515.0, 545.0, 575.0, 615.0, 650.0, 690.0, 730.0, 775.0, 825.0, 875.0, 925.0,
    975.0,
];
const ONE_TWO_FIVE: &[f64] = &[10.0, 20.0, 50.0];
const E6: &[f64] = &[10.0, 15.0, 22.0, 33.0, 47.0, 68.0];
const E12: &[f64] = &[
    10.0, 12.0, 15.0, 18.0, 22.0, 27.0, 33.0, 39.0, 47.0, 56.0, 68.0, 82.0,
];
const E24: &[f64] = &[
    10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 18.0, 20.0, 22.0, 24.0, 27.0, 30.0, 33.0, 36.0, 39.0, 43.0,
    47.0, 51.0, 56.0, 62.0, 68.0, 75.0, 82.0, 91.0,
];
const E48: &[f64] = &[
    100.0, 105.0, 110.0, 115.0, 121.0, 127.0, 133.0, 140.0, 147.0, 154.0, 162.0, 169.0, 178.0,
    187.0, 196.0, 205.0, 215.0, 226.0, 237.0, 249.0, 261.0, 274.0, 287.0, 301.0, 316.0, 332.0,
    348.0, 365.0, 383.0, 402.0, 422.0, 442.0, 464.0, 487.0, 511.0, 536.0, 562.0, 590.0, 619.0,
    649.0, 681.0, 715.0, 750.0, 787.0, 825.0, 866.0, 909.0, 953.0,
];
const E96: &[f64] = &[
    100.0, 102.0, 105.0, 107.0, 110.0, 113.0, 115.0, 118.0, 121.0, 124.0, 127.0, 130.0, 133.0,
    137.0, 140.0, 143.0, 147.0, 150.0, 154.0, 158.0, 162.0, 165.0, 169.0, 174.0, 178.0, 182.0,
    187.0, 191.0, 196.0, 200.0, 205.0, 210.0, 215.0, 221.0, 226.0, 232.0, 237.0, 243.0, 249.0,
    255.0, 261.0, 267.0, 274.0, 280.0, 287.0, 294.0, 301.0, 309.0, 316.0, 324.0, 332.0, 340.0,
    348.0, 357.0, 365.0, 374.0, 383.0, 392.0, 402.0, 412.0, 422.0, 432.0, 442.0, 453.0, 464.0,
    475.0, 487.0, 499.0, 511.0, 523.0, 536.0, 549.0, 562.0, 576.0, 590.0, 604.0, 619.0, 634.0,
    649.0, 665.0, 681.0, 698.0, 715.0, 732.0, 750.0, 768.0, 787.0, 806.0, 825.0, 845.0, 866.0,
    887.0, 909.0, 931.0, 953.0, 976.0,
];
const E192: &[f64] = &[
    100.0, 101.0, 102.0, 104.0, 105.0, 106.0, 107.0, 109.0, 110.0, 111.0, 113.0, 114.0, 115.0,
    117.0, 118.0, 120.0, 121.0, 123.0, 124.0, 126.0, 127.0, 129.0, 130.0, 132.0, 133.0, 135.0,
    137.0, 138.0, 140.0, 142.0, 143.0, 145.0, 147.0, 149.0, 150.0, 152.0, 154.0, 156.0, 158.0,
    160.0, 162.0, 164.0, 165.0, 167.0, 169.0, 172.0, 174.0, 176.0, 178.0, 180.0, 182.0, 184.0,
    187.0, 189.0, 191.0, 193.0, 196.0, 198.0, 200.0, 203.0, 205.0, 208.0, 210.0, 213.0, 215.0,
    218.0, 221.0, 223.0, 226.0, 229.0, 232.0, 234.0, 237.0, 240.0, 243.0, 246.0, 249.0, 252.0,
    255.0, 258.0, 261.0, 264.0, 267.0, 271.0, 274.0, 277.0, 280.0, 284.0, 287.0, 291.0, 294.0,
    298.0, 301.0, 305.0, 309.0, 312.0, 316.0, 320.0, 324.0, 328.0, 332.0, 336.0, 340.0, 344.0,
    348.0, 352.0, 357.0, 361.0, 365.0, 370.0, 374.0, 379.0, 383.0, 388.0, 392.0, 397.0, 402.0,
    407.0, 412.0, 417.0, 422.0, 427.0, 432.0, 437.0, 442.0, 448.0, 453.0, 459.0, 464.0, 470.0,
    475.0, 481.0, 487.0, 493.0, 499.0, 505.0, 511.0, 517.0, 523.0, 530.0, 536.0, 542.0, 549.0,
    556.0, 562.0, 569.0, 576.0, 583.0, 590.0, 597.0, 604.0, 612.0, 619.0, 626.0, 634.0, 642.0,
    649.0, 657.0, 665.0, 673.0, 681.0, 690.0, 698.0, 706.0, 715.0, 723.0, 732.0, 741.0, 750.0,
    759.0, 768.0, 777.0, 787.0, 796.0, 806.0, 816.0, 825.0, 835.0, 845.0, 856.0, 866.0, 876.0,
    887.0, 898.0, 909.0, 920.0, 931.0, 942.0, 953.0, 965.0, 976.0, 988.0,
];

impl Granularity {
    /// Parses the name. Fails with 40261 if the value is not a string, and with 40257 if the name
    /// is unknown.
    pub fn parse(value: ValueRef<'_>) -> Result<Granularity, Error> {
        let ValueRef::String(name) = value else {
            return Err(Error::new(
                40261,
                "The $bucketAuto 'granularity' field must be a string",
            ));
        };
        Ok(Granularity::Series(match name {
            "POWERSOF2" => return Ok(Granularity::PowersOfTwo),
            "1-2-5" => ONE_TWO_FIVE,
            "R5" => R5,
            "R10" => R10,
            "R20" => R20,
            "R40" => R40,
            "R80" => R80,
            "E6" => E6,
            "E12" => E12,
            "E24" => E24,
            "E48" => E48,
            "E96" => E96,
            "E192" => E192,
            _ => {
                return Err(Error::new(
                    40257,
                    format!("Unknown rounding granularity '{name}'"),
                ));
            }
        }))
    }

    /// Fails if the value cannot be rounded: with 40258 if it is not a number, with 40259 if it is
    /// NaN, with 40260 if it is negative, and with 11785400 if it is infinite and would be rounded
    /// to a power of two.
    pub fn check(&self, value: ValueRef<'_>) -> Result<(), Error> {
        let Some(number) = value.as_f64() else {
            return Err(Error::new(
                40258,
                "$bucketAuto can specify a 'granularity' with numeric boundaries only",
            ));
        };
        if number.is_nan() {
            return Err(Error::new(
                40259,
                "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found NaN",
            ));
        }
        if number < 0.0 {
            return Err(Error::new(
                40260,
                "$bucketAuto can specify a 'granularity' with non-negative numbers only",
            ));
        }
        if number.is_infinite() && matches!(self, Granularity::PowersOfTwo) {
            return Err(Error::new(
                11785400,
                "A granularity rounder can only round finite numbers",
            ));
        }
        Ok(())
    }

    /// Returns the next number of the series above a value that [`Granularity::check`] accepts.
    /// Zero and infinity are returned unchanged. Decimals are rounded to decimals, other numbers to
    /// doubles and integers.
    pub fn above(&self, value: ValueRef<'_>) -> Result<Value, Error> {
        if stays(value) {
            return Ok(value.to_value());
        }
        match (self, value) {
            (Granularity::PowersOfTwo, _) => {
                let exponents = surrounding_exponents(value)?;
                Ok(power_of_two(value, exponents.above))
            }
            (Granularity::Series(series), ValueRef::Decimal128(number)) => {
                Ok(Value::Decimal128(rounding::above(series, number)?))
            }
            (Granularity::Series(series), _) => {
                Ok(Value::Double(rounding::above(series, double(value)?)?))
            }
        }
    }

    /// Returns the next number of the series below a value, as [`Granularity::above`] does.
    pub fn below(&self, value: ValueRef<'_>) -> Result<Value, Error> {
        if stays(value) {
            return Ok(value.to_value());
        }
        match (self, value) {
            (Granularity::PowersOfTwo, _) => {
                let exponents = surrounding_exponents(value)?;
                Ok(power_of_two(value, exponents.below))
            }
            (Granularity::Series(series), ValueRef::Decimal128(number)) => {
                Ok(Value::Decimal128(rounding::below(series, number)?))
            }
            (Granularity::Series(series), _) => {
                Ok(Value::Double(rounding::below(series, double(value)?)?))
            }
        }
    }
}

/// Returns `true` for zero, for decimals that are zero as doubles, and for infinity. They are not
/// rounded.
fn stays(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Decimal128(number) => number.is_infinite() || number.to_f64() == 0.0,
        other => other
            .as_f64()
            .is_some_and(|number| number == 0.0 || number.is_infinite()),
    }
}

fn double(value: ValueRef<'_>) -> Result<f64, Bug> {
    let number = value.as_f64();
    number.ok_or_else(|| Bug::new(format!("rounding a {}", value.type_of().name())))
}

/// The exponents of the next powers of two below and above a number.
struct SurroundingExponents {
    below: i32,
    above: i32,
}

/// Returns the exponents of the next powers of two below and above a positive number. As in
/// MongoDB, the exponents for doubles and decimals are computed from the logarithm as a double,
/// those for integers from their bits.
fn surrounding_exponents(value: ValueRef<'_>) -> Result<SurroundingExponents, Bug> {
    let logarithm = match value {
        ValueRef::Int32(number) => return Ok(exponents_of_integer(i64::from(number))),
        ValueRef::Int64(number) => return Ok(exponents_of_integer(number)),
        ValueRef::Decimal128(number) => log2(number),
        other => double(other)?.log2(),
    };
    Ok(SurroundingExponents {
        below: logarithm.ceil() as i32 - 1,
        above: logarithm.floor() as i32 + 1,
    })
}

fn exponents_of_integer(number: i64) -> SurroundingExponents {
    let floor = 63 - number.leading_zeros() as i32;
    let is_power = number.count_ones() == 1;
    SurroundingExponents {
        below: if is_power { floor - 1 } else { floor },
        above: floor + 1,
    }
}

/// Returns the double nearest to the logarithm. It is a whole number for powers of two only.
fn log2(number: Decimal128) -> f64 {
    let logarithm = number.to_f64().log2();
    let nearest = logarithm.round();
    let power = Decimal128::power_of_two(nearest as i32);
    let excess = number.subtract(power).divide(power).to_f64();
    // log2(2^n · (1 + x)) = n + x/ln(2) up to x²
    if excess.abs() < 1e-9 {
        nearest + excess / std::f64::consts::LN_2
    } else {
        logarithm
    }
}

/// The power as `$pow` returns it: a decimal for a decimal, otherwise an integer if it fits in one.
fn power_of_two(value: ValueRef<'_>, exponent: i32) -> Value {
    if let ValueRef::Decimal128(_) = value {
        let power = Decimal128::power_of_two(exponent);
        return Value::Decimal128(power.to_full_precision());
    }
    let shift = u32::try_from(exponent).ok().filter(|shift| *shift < 63);
    match shift {
        Some(shift) => Value::whole(1 << shift),
        None => Value::Double(2f64.powf(f64::from(exponent))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granularity(name: &str) -> Granularity {
        Granularity::parse(ValueRef::String(name)).unwrap()
    }

    #[test]
    fn numbers_are_rounded_to_the_series() {
        let check = |name: &str, number: f64, down: f64, up: f64| {
            let series = granularity(name);
            let value = ValueRef::Double(number);
            let found = (series.below(value).unwrap(), series.above(value).unwrap());
            let found = (found.0.as_ref().as_f64(), found.1.as_ref().as_f64());
            assert_eq!(found, (Some(down), Some(up)), "{number} in {name}");
        };
        check("R5", 1.0, 0.63, 1.6);
        check("R5", 120.0, 100.0, 160.0);
        check("E12", 1.0, 0.8200000000000001, 1.2000000000000002);
        check("1-2-5", 7.0, 5.0, 10.0);
        check("E192", 915.0, 909.0, 920.0);
        check("POWERSOF2", 8.0, 4.0, 16.0);
        check("POWERSOF2", 0.0, 0.0, 0.0);
        check("POWERSOF2", 0.3, 0.25, 0.5);
        check("R80", 5e-324, 0.0, 1.02e-321);
    }

    /// Decimals were rounded as doubles: the boundaries lost their type and their exact digits.
    #[test]
    fn decimals_are_rounded_to_decimals() {
        let check = |name: &str, number: &str, down: &str, up: &str| {
            let series = granularity(name);
            let value = ValueRef::Decimal128(Decimal128::parse(number).unwrap());
            let text = |found: Value| match found {
                Value::Decimal128(found) => found.to_string(),
                other => panic!("{other:?} is not a decimal"),
            };
            let found = (
                text(series.below(value).unwrap()),
                text(series.above(value).unwrap()),
            );
            let found = (found.0.as_str(), found.1.as_str());
            assert_eq!(found, (down, up), "{number} in {name}");
        };
        check("R5", "1", "0.630000000000000", "1.60000000000000");
        check("E12", "0.1", "0.0820000000000000", "0.120000000000000");
        check("E6", "0.8", "0.680000000000000", "1.00000000000000");
        check(
            "1-2-5",
            "100000000000000000000.1",
            "100000000000000000000.0000000000000",
            "200000000000000000000.0000000000000",
        );
        check(
            "R5",
            "1E-300",
            "6.30000000000000E-301",
            "1.60000000000000E-300",
        );
        check(
            "E6",
            "9.999E+6000",
            "6.800000000000000000000000000000000E+6000",
            "1.000000000000000000000000000000000E+6001",
        );
        check("R5", "1E-6170", "1E-6170", "1E-6170");
        check("R5", "0", "0", "0");
        check("R5", "0E+3", "0E+3", "0E+3");
        check("R5", "Infinity", "Infinity", "Infinity");
        check(
            "POWERSOF2",
            "8",
            "4.000000000000000000000000000000000",
            "16.00000000000000000000000000000000",
        );
        check(
            "POWERSOF2",
            "0.3",
            "0.2500000000000000000000000000000000",
            "0.5000000000000000000000000000000000",
        );
        // Its logarithm is 53 as a double.
        check(
            "POWERSOF2",
            "9007199254740993",
            "4503599627370496.000000000000000000",
            "18014398509481984.00000000000000000",
        );
        check(
            "POWERSOF2",
            "1.00000000000000000001",
            "1.000000000000000000000000000000000",
            "2.000000000000000000000000000000000",
        );
    }

    /// A power of two of doubles was a double, and one of longs a long, where `$pow` of two
    /// integers returns the smallest integer type.
    #[test]
    fn powers_of_two_are_integers_if_they_fit() {
        let check = |value: ValueRef<'_>, down: Value, up: Value| {
            let powers = granularity("POWERSOF2");
            let found = (powers.below(value).unwrap(), powers.above(value).unwrap());
            assert_eq!(found, (down, up));
        };
        check(ValueRef::Double(3.5), Value::Int32(2), Value::Int32(4));
        check(ValueRef::Int64(8), Value::Int32(4), Value::Int32(16));
        check(ValueRef::Int32(1), Value::Double(0.5), Value::Int32(2));
        check(
            ValueRef::Int64(i64::MAX),
            Value::Int64(1 << 62),
            Value::Double(9_223_372_036_854_775_808.0),
        );
    }

    #[test]
    fn infinity_has_no_power_of_two() {
        let infinities = [
            ValueRef::Double(f64::INFINITY),
            ValueRef::Decimal128(Decimal128::INFINITY),
        ];
        for infinity in infinities {
            let refused = granularity("POWERSOF2").check(infinity).unwrap_err();
            assert_eq!(refused.code(), Some(11785400));
            assert!(granularity("R5").check(infinity).is_ok());
        }
    }

    #[test]
    fn the_smallest_and_the_largest_numbers_are_rounded() {
        let all = [
            "1-2-5",
            "R5",
            "R10",
            "R20",
            "R40",
            "R80",
            "E6",
            "E12",
            "E24",
            "E48",
            "E96",
            "E192",
            "POWERSOF2",
        ];
        let smallest = (1..3000).map(f64::from_bits);
        let largest = (0..3000).map(|below| f64::from_bits(f64::MAX.to_bits() - below));
        let doubles = smallest.chain(largest).map(ValueRef::Double);
        let decimals = ["9.999E+6144", "1E+6144", "7.5E+6143", "1E+308", "1E-300"]
            .map(|text| ValueRef::Decimal128(Decimal128::parse(text).unwrap()));
        for value in doubles.chain(decimals) {
            for name in all {
                let series = granularity(name);
                if series.check(value).is_err() {
                    continue;
                }
                let (below, above) = (series.below(value).unwrap(), series.above(value).unwrap());
                assert!(
                    below.as_ref().compare(value).is_le() && above.as_ref().compare(value).is_ge(),
                    "{value:?} in {name}: {below:?} to {above:?}"
                );
            }
        }
    }
}
