//! 128-bit decimal floating point (IEEE 754-2008, binary integer decimal encoding): 34 digits,
//! exponents from -6176 to 6111.
//!
//! ```text
//! 127      126..113             112..0
//! sign     exponent + 6176      coefficient        (bits 126 and 125 are not both 1)
//! sign     11110…  infinity     11111…  NaN        (other values with 11: non-canonical zeros)
//! ```
//!
//! See
//! <https://github.com/mongodb/specifications/blob/master/source/bson-decimal128/decimal128.md>.

mod arithmetic;
mod text;

use std::fmt;

use num_bigint::BigUint;

/// A BSON decimal. `==` compares bits, so 1.0 and 1.00 differ; [`ValueRef::compare`] compares
/// values.
///
/// ```
/// use windrow_document::Decimal128;
///
/// let sum = Decimal128::parse("0.1").unwrap().add(Decimal128::parse("0.2").unwrap());
/// assert_eq!(sum.to_string(), "0.3");
/// ```
///
/// [`ValueRef::compare`]: crate::ValueRef::compare
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128(u128);

/// The components of a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalParts {
    /// The number (-1)^negative · coefficient · 10^exponent.
    Finite {
        /// The sign.
        negative: bool,
        /// The digits as an integer.
        coefficient: u128,
        /// The power of ten.
        exponent: i32,
    },
    /// An infinity.
    Infinite {
        /// The sign.
        negative: bool,
    },
    /// NaN.
    NotANumber,
}

const DIGITS: u32 = 34;
const COEFFICIENT_MAX: u128 = 10u128.pow(DIGITS) - 1;
const EXPONENT_MIN: i32 = -6176;
const EXPONENT_MAX: i32 = 6111;
const COEFFICIENT_BITS: u32 = 113;
const SIGN: u128 = 1 << 127;

impl Decimal128 {
    /// Zero with exponent 0.
    pub const ZERO: Decimal128 = Decimal128(0x3040 << 112);
    /// NaN.
    pub const NAN: Decimal128 = Decimal128(0x7C00 << 112);
    /// Positive infinity.
    pub const INFINITY: Decimal128 = Decimal128(0x7800 << 112);
    /// Negative infinity.
    pub const NEGATIVE_INFINITY: Decimal128 = Decimal128(0xF800 << 112);

    /// Creates a decimal from its encoding.
    pub fn from_bits(bits: u128) -> Decimal128 {
        Decimal128(bits)
    }

    /// The encoding.
    pub fn bits(self) -> u128 {
        self.0
    }

    /// Returns the components. Non-canonical encodings are zeros.
    pub fn parts(self) -> DecimalParts {
        let negative = self.0 & SIGN != 0;
        match (self.0 >> 122) & 0x1F {
            0x1F => DecimalParts::NotANumber,
            0x1E => DecimalParts::Infinite { negative },
            combination => {
                let large = combination >> 3 == 3;
                let shift = if large {
                    COEFFICIENT_BITS - 2
                } else {
                    COEFFICIENT_BITS
                };
                let exponent = ((self.0 >> shift) & 0x3FFF) as i32 + EXPONENT_MIN;
                let coefficient = self.0 & ((1 << COEFFICIENT_BITS) - 1);
                let canonical = !large && coefficient <= COEFFICIENT_MAX;
                let coefficient = if canonical { coefficient } else { 0 };
                DecimalParts::Finite {
                    negative,
                    coefficient,
                    exponent,
                }
            }
        }
    }

    /// Encodes components that are in range.
    fn pack(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
        let biased = (exponent - EXPONENT_MIN) as u128;
        let sign = if negative { SIGN } else { 0 };
        Decimal128(sign | biased << COEFFICIENT_BITS | coefficient)
    }

    /// Returns the decimal nearest to (-1)^negative · coefficient · 10^exponent, rounded half to
    /// even. `inexact` means that the exact coefficient is greater by a fraction below its last
    /// digit.
    pub fn from_parts(
        negative: bool,
        coefficient: BigUint,
        exponent: i32,
        inexact: bool,
    ) -> Decimal128 {
        let digits = decimal_digits(&coefficient);
        let excess = digits as i32 - DIGITS as i32;
        let drop = excess.max(EXPONENT_MIN.saturating_sub(exponent)).max(0) as u32;
        let exponent = exponent.saturating_add(drop as i32);
        let rounded = divide_half_even(coefficient, drop, inexact);
        let rounded = match u128::try_from(rounded) {
            Ok(rounded) => rounded,
            Err(error) => unreachable!("a coefficient of {digits} digits is too long: {error}"),
        };
        if rounded > COEFFICIENT_MAX {
            return Decimal128::from_clamped(negative, rounded / 10, exponent + 1);
        }
        Decimal128::from_clamped(negative, rounded, exponent)
    }

    /// Brings the exponent into range by appending zeros to the coefficient. Returns an infinity if
    /// there is no room for them.
    fn from_clamped(negative: bool, mut coefficient: u128, mut exponent: i32) -> Decimal128 {
        if coefficient == 0 {
            return Decimal128::pack(negative, 0, exponent.clamp(EXPONENT_MIN, EXPONENT_MAX));
        }
        while exponent > EXPONENT_MAX {
            if coefficient > COEFFICIENT_MAX / 10 {
                return Decimal128::infinite(negative);
            }
            coefficient *= 10;
            exponent -= 1;
        }
        Decimal128::pack(negative, coefficient, exponent)
    }

    fn infinite(negative: bool) -> Decimal128 {
        if negative {
            Decimal128::NEGATIVE_INFINITY
        } else {
            Decimal128::INFINITY
        }
    }

    /// Returns the decimal of an integer.
    pub fn from_i64(number: i64) -> Decimal128 {
        Decimal128::pack(number < 0, u128::from(number.unsigned_abs()), 0)
    }

    /// Returns the double rounded to 15 significant digits, as MongoDB converts doubles. Zero has
    /// the exponent 0.
    pub fn from_f64(number: f64) -> Decimal128 {
        if number.is_nan() {
            return Decimal128::NAN;
        }
        if number.is_infinite() {
            return Decimal128::infinite(number < 0.0);
        }
        if number == 0.0 {
            return Decimal128::pack(number.is_sign_negative(), 0, 0);
        }
        let text = format!("{number:.14e}");
        match Decimal128::parse(&text) {
            Some(decimal) => decimal,
            None => unreachable!("{text} is a finite number"),
        }
    }

    /// Returns the nearest double.
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            DecimalParts::NotANumber => f64::NAN,
            DecimalParts::Infinite { negative: false } => f64::INFINITY,
            DecimalParts::Infinite { negative: true } => f64::NEG_INFINITY,
            DecimalParts::Finite {
                negative,
                coefficient,
                exponent,
            } => {
                let sign = if negative { "-" } else { "" };
                let text = format!("{sign}{coefficient}e{exponent}");
                match text.parse() {
                    Ok(double) => double,
                    Err(error) => unreachable!("{text} is a number: {error}"),
                }
            }
        }
    }

    /// Returns the number as an integer, or `None` if it has a fraction or does not fit.
    pub fn to_i64_exact(self) -> Option<i64> {
        let (number, exact) = self.to_i64_truncated()?;
        exact.then_some(number)
    }

    /// Returns the number without its fraction, and whether the fraction was zero. Returns `None`
    /// if the number does not fit.
    pub fn to_i64_truncated(self) -> Option<(i64, bool)> {
        let DecimalParts::Finite {
            negative,
            coefficient,
            exponent,
        } = self.parts()
        else {
            return None;
        };
        let (whole, exact) = if exponent < 0 {
            match 10u128.checked_pow(exponent.unsigned_abs()) {
                Some(unit) => (coefficient / unit, coefficient % unit == 0),
                None => (0, coefficient == 0),
            }
        } else if coefficient == 0 {
            (0, true)
        } else {
            (
                10u128
                    .checked_pow(exponent as u32)?
                    .checked_mul(coefficient)?,
                true,
            )
        };
        let whole = i128::try_from(whole).ok()?;
        let signed = if negative { -whole } else { whole };
        Some((i64::try_from(signed).ok()?, exact))
    }

    /// Returns `true` for zeros of either sign and any exponent.
    pub fn is_zero(self) -> bool {
        matches!(self.parts(), DecimalParts::Finite { coefficient: 0, .. })
    }

    /// Returns `true` for NaN.
    pub fn is_nan(self) -> bool {
        self.parts() == DecimalParts::NotANumber
    }

    /// Returns `true` for infinities.
    pub fn is_infinite(self) -> bool {
        matches!(self.parts(), DecimalParts::Infinite { .. })
    }

    /// Returns `true` if the sign is negative and the number is not NaN.
    pub fn is_negative(self) -> bool {
        !self.is_nan() && self.0 & SIGN != 0
    }
}

/// The rounding mode of [`Decimal128::to_places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, ties to the even digit.
    HalfEven,
    /// Towards zero.
    Truncate,
    /// Towards negative infinity.
    Floor,
    /// Towards positive infinity.
    Ceiling,
}

/// Returns the number of decimal digits; 0 for 0.
fn decimal_digits(number: &BigUint) -> u32 {
    if number.bits() == 0 {
        0
    } else {
        number.to_string().len() as u32
    }
}

/// Divides by 10^drop, rounding half to even. `inexact` means that the exact number is greater by a
/// fraction.
fn divide_half_even(number: BigUint, drop: u32, inexact: bool) -> BigUint {
    if drop == 0 {
        return number;
    }
    if drop > decimal_digits(&number) + 1 {
        return BigUint::ZERO;
    }
    let unit = BigUint::from(10u32).pow(drop);
    let rest = &number % &unit;
    let whole = number / &unit;
    let half = unit >> 1u32;
    let odd = whole.bit(0);
    let up = rest > half || rest == half && (inexact || odd);
    if up { whole + 1u32 } else { whole }
}

impl fmt::Debug for Decimal128 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Decimal128({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Decimal128 {
        Decimal128::parse(text).unwrap()
    }

    #[test]
    fn text_is_parsed_and_formatted() {
        let cases = [
            ("0", "0"),
            ("-0", "-0"),
            ("0E+3", "0E+3"),
            ("1.50", "1.50"),
            ("-1.5E3", "-1.5E+3"),
            ("1E-6176", "1E-6176"),
            ("1E6111", "1E+6111"),
            ("1E6112", "1.0E+6112"),
            ("1E6145", "Infinity"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1E-7"),
            (
                "12345678901234567890123456789012345",
                "1.234567890123456789012345678901234E+34",
            ),
            (
                "9999999999999999999999999999999999.5",
                "1.000000000000000000000000000000000E+34",
            ),
            ("NaN", "NaN"),
            ("-inf", "-Infinity"),
            (".5", "0.5"),
            ("5.", "5"),
        ];
        cases
            .into_iter()
            .for_each(|(text, expected)| assert_eq!(parse(text).to_string(), expected));
        for wrong in ["", "-", "1e", "1.2.3", "e5", "0x1", "1 "] {
            assert_eq!(Decimal128::parse(wrong), None, "{wrong}");
        }
    }

    /// `$toDecimal` rounded strings of more than 34 digits half to even, where MongoDB cuts digits
    /// off, and lost digits below the smallest number, where MongoDB refuses the string.
    #[test]
    fn text_is_truncated() {
        let nines = "9".repeat(34);
        let check = |text: &str, expected: Option<&str>| {
            let found = Decimal128::parse_truncated(text).map(|number| number.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check(&format!("{nines}.5"), Some(&nines));
        check(
            &format!("-{nines}9"),
            Some("-9.999999999999999999999999999999999E+34"),
        );
        check(
            "1.00000000000000000000000000000000059",
            Some("1.000000000000000000000000000000000"),
        );
        check(
            &format!("0.000{}", "6".repeat(100)),
            Some(&format!("0.000{}", "6".repeat(34))),
        );
        check(
            &format!("{}E-300", "1".repeat(301)),
            Some(&format!("1.{}", "1".repeat(33))),
        );
        check("1.50", Some("1.50"));
        check("-inf", Some("-Infinity"));
        check("1E6144", Some("1.000000000000000000000000000000000E+6144"));
        check("1E6145", None);
        check("1E-6176", Some("1E-6176"));
        check("10E-6177", Some("1E-6176"));
        check("15E-6177", None);
        check("1E-9000", None);
        check("0E-9000", Some("0E-6176"));
        check(&format!("1{}1E-6250", "0".repeat(90)), None);
        check("", None);
        check("1e", None);
    }

    #[test]
    fn arithmetic_is_exact_and_rounds_once() {
        let check = |found: Decimal128, expected: &str| assert_eq!(found.to_string(), expected);
        check(parse("0.1").add(parse("0.2")), "0.3");
        check(
            parse("1E+40").add(parse("1")),
            "1.000000000000000000000000000000000E+40",
        );
        check(
            parse("1E+200").subtract(parse("1")),
            "1.000000000000000000000000000000000E+200",
        );
        check(parse("1").subtract(parse("1.0")), "0.0");
        check(parse("1.20").multiply(parse("3")), "3.60");
        check(
            parse("1").divide(parse("3")),
            "0.3333333333333333333333333333333333",
        );
        check(parse("6").divide(parse("3")), "2");
        check(parse("1").divide(parse("8")), "0.125");
        check(parse("1").divide(parse("0")), "Infinity");
        check(parse("7.5").remainder(parse("2")), "1.5");
        check(parse("-7").remainder(parse("3")), "-1");
        check(parse("Infinity").subtract(parse("Infinity")), "NaN");
        for (one, other) in [("-NaN", "1"), ("-NaN", "NaN"), ("2", "-NaN")] {
            let (one, other) = (parse(one), parse(other));
            assert_eq!(one.add(other).bits(), parse("-NaN").bits());
            assert_eq!(one.divide(other).bits(), parse("-NaN").bits());
        }
        check(
            parse("2").square_root(),
            "1.414213562373095048801688724209698",
        );
        check(parse("16").square_root(), "4");
        check(parse("2.5").to_places(0, Rounding::HalfEven), "2");
        check(parse("-2.5").to_places(0, Rounding::Floor), "-3");
        check(parse("1234.567").to_places(1, Rounding::Truncate), "1234.5");
        check(parse("1250").to_places(-2, Rounding::HalfEven), "1.2E+3");
    }

    #[test]
    fn powers_of_ten_and_two() {
        let mut repeated = (parse("1"), parse("1"));
        for exponent in 0..=6144 {
            assert_eq!(Decimal128::power_of_ten(exponent), repeated.0);
            assert_eq!(Decimal128::power_of_ten(-exponent), repeated.1);
            assert_eq!(repeated.0.magnitude(), Some(exponent));
            assert_eq!(repeated.1.magnitude(), Some(-exponent));
            let ten = parse("10");
            repeated = (repeated.0.multiply(ten), repeated.1.divide(ten));
        }
        let check = |exponent, expected: &str| {
            assert_eq!(Decimal128::power_of_two(exponent).to_string(), expected);
        };
        check(0, "1");
        check(10, "1024");
        check(-2, "0.25");
        check(200, "1.606938044258990275541962092341163E+60");
        assert_eq!(parse("0").magnitude(), None);
        assert_eq!(parse("Infinity").magnitude(), None);
    }

    #[test]
    fn conversions_are_exact_or_fail() {
        assert_eq!(parse("1.5").to_f64(), 1.5);
        assert_eq!(parse("-1E+400").to_f64(), f64::NEG_INFINITY);
        assert_eq!(parse("9223372036854775807").to_i64_exact(), Some(i64::MAX));
        assert_eq!(parse("9223372036854775808").to_i64_exact(), None);
        assert_eq!(parse("1.5").to_i64_truncated(), Some((1, false)));
        assert_eq!(parse("1E+3").to_i64_exact(), Some(1000));
        assert_eq!(Decimal128::from_f64(0.1).to_string(), "0.100000000000000");
        assert_eq!(Decimal128::from_i64(-5).to_string(), "-5");
    }
}
