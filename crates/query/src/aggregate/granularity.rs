//! Preferred numbers: the rounded ends of `$bucketAuto`.

use windrow_document::{Value, ValueRef};

use crate::Error;

/// A series of numbers that repeats with every power of ten; or the powers of two.
#[derive(Clone, Copy, Debug)]
pub enum Granularity {
    Series(&'static [f64]),
    PowersOfTwo,
}

// The series of preferred numbers, from 1 up to 10: ISO 3 (Renard) and IEC 60063 (E).
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
    887.0, 898.0, 909.0, 919.0, 931.0, 942.0, 953.0, 965.0, 976.0, 988.0,
];

impl Granularity {
    /// Errors: 40261 for what is no string, 40257 for an unknown name.
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

    /// Refuses what cannot be rounded: 40258 no number, 40259 NaN, 40260 a negative one.
    pub fn check(&self, value: ValueRef<'_>) -> Result<(), Error> {
        match value.as_f64() {
            None => Err(Error::new(
                40258,
                "$bucketAuto can specify a 'granularity' with numeric boundaries only",
            )),
            Some(number) if number.is_nan() => Err(Error::new(
                40259,
                "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found NaN",
            )),
            Some(number) if number < 0.0 => Err(Error::new(
                40260,
                "$bucketAuto can specify a 'granularity' with non-negative numbers only",
            )),
            Some(_) => Ok(()),
        }
    }

    /// The next number of the series above the value. Zero stays.
    pub fn above(&self, value: ValueRef<'_>) -> Value {
        let number = value.as_f64().unwrap_or_default();
        if number == 0.0 || number.is_infinite() {
            return value.to_value();
        }
        match self {
            Granularity::PowersOfTwo => power_of_two(value, 2f64.powf(number.log2().floor() + 1.0)),
            Granularity::Series(series) => Value::Double(above(series, number)),
        }
    }

    /// The next number of the series below the value. Zero stays.
    pub fn below(&self, value: ValueRef<'_>) -> Value {
        let number = value.as_f64().unwrap_or_default();
        if number == 0.0 || number.is_infinite() {
            return value.to_value();
        }
        match self {
            Granularity::PowersOfTwo => power_of_two(value, 2f64.powf(number.log2().ceil() - 1.0)),
            Granularity::Series(series) => Value::Double(below(series, number)),
        }
    }
}

/// Whole numbers stay whole where the power is.
fn power_of_two(value: ValueRef<'_>, power: f64) -> Value {
    let whole = ValueRef::Double(power).as_whole();
    match (value, whole) {
        (ValueRef::Int32(_), Some(whole)) => Value::whole(whole),
        (ValueRef::Int64(_), Some(whole)) => Value::Int64(whole),
        _ => Value::Double(power),
    }
}

/// The least number of the series, over all powers of ten, that is above the number. The powers are
/// multiplied up step by step, so that the digits come out as MongoDB's.
fn above(series: &[f64], number: f64) -> f64 {
    let (Some(first), Some(last)) = (series.first(), series.last()) else {
        return number;
    };
    let mut scale = 1.0;
    while number >= last * scale {
        scale *= 10.0;
    }
    while number < first * scale {
        let least = first * scale;
        scale /= 10.0;
        if number >= last * scale {
            return least;
        }
    }
    series
        .iter()
        .map(|one| one * scale)
        .find(|one| *one > number)
        .unwrap_or(number)
}

/// The greatest number of the series, over all powers of ten, that is below the number; zero below the least
/// that there are.
fn below(series: &[f64], number: f64) -> f64 {
    let (Some(first), Some(last)) = (series.first(), series.last()) else {
        return number;
    };
    let mut scale = 1.0;
    while number <= first * scale {
        scale /= 10.0;
    }
    if scale == 0.0 {
        return 0.0;
    }
    while number > last * scale {
        let greatest = last * scale;
        scale *= 10.0;
        if number <= first * scale {
            return greatest;
        }
    }
    series
        .iter()
        .rev()
        .map(|one| one * scale)
        .find(|one| *one < number)
        .unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_series() {
        let check = |name: &str, number: f64, down: f64, up: f64| {
            let series = Granularity::parse(ValueRef::String(name)).unwrap();
            let number = ValueRef::Double(number);
            let found = (series.below(number), series.above(number));
            assert_eq!(
                found,
                (Value::Double(down), Value::Double(up)),
                "{number} in {name}"
            );
        };
        check("R5", 1.0, 0.63, 1.6);
        check("R5", 120.0, 100.0, 160.0);
        check("E12", 1.0, 0.8200000000000001, 1.2000000000000002);
        check("1-2-5", 7.0, 5.0, 10.0);
        check("POWERSOF2", 8.0, 4.0, 16.0);
        check("POWERSOF2", 0.0, 0.0, 0.0);
        check("R80", 5e-324, 0.0, 1.02e-321);
    }

    #[test]
    fn the_least_and_the_greatest_numbers_have_ends() {
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
        let least = (1..3000).map(f64::from_bits);
        let greatest = (0..3000).map(|below| f64::from_bits(f64::MAX.to_bits() - below));
        for number in least.chain(greatest) {
            for name in all {
                let series = Granularity::parse(ValueRef::String(name)).unwrap();
                let ends = (
                    series.below(ValueRef::Double(number)),
                    series.above(ValueRef::Double(number)),
                );
                let (below, above) = (ends.0.as_ref().as_f64(), ends.1.as_ref().as_f64());
                assert!(
                    below <= Some(number) && above >= Some(number),
                    "{name} {number:e}"
                );
            }
        }
    }
}
