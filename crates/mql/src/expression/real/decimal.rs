//! Functions of decimals with 34 digits.

use num_bigint::{BigInt, BigUint};
use windrow_document::Decimal128;
use windrow_document::decimal::DecimalParts;

use super::fixed::{Scale, to_decimal};
use super::magnitude::{BITS, is_finite, itself_if_tiny, magnitude_bits, one_if_tiny, scale_for};

/// For larger exponents e^x is out of the range of decimals.
const EXP_MAX: u64 = 14_300;

fn one() -> Decimal128 {
    Decimal128::from_i64(1)
}

fn infinite(negative: bool) -> Decimal128 {
    if negative {
        Decimal128::NEGATIVE_INFINITY
    } else {
        Decimal128::INFINITY
    }
}

pub(crate) fn exp(x: Decimal128) -> Decimal128 {
    if x.is_infinite() {
        return if x.is_negative() { Decimal128::ZERO } else { x };
    }
    if x.is_zero() {
        return one();
    }
    match exp_parts(x) {
        Some((mantissa, exponent)) => to_decimal(&mantissa, exponent),
        None if x.is_negative() => Decimal128::ZERO,
        None => Decimal128::INFINITY,
    }
}

/// Computes e^x as mantissa · 2^exponent. Returns `None` if the result is out of the range of
/// decimals.
fn exp_parts(x: Decimal128) -> Option<(BigInt, i64)> {
    let (whole, _) = x.to_i64_truncated()?;
    if whole.unsigned_abs() > EXP_MAX {
        return None;
    }
    let scale = Scale { bits: BITS };
    Some(exp_fixed(scale, &scale.to_fixed_point(x)))
}

fn exp_fixed(scale: Scale, x: &BigInt) -> (BigInt, i64) {
    let ln2 = scale.ln2();
    // Powers that are out of the range of decimals were refused before.
    let power = match i64::try_from(x / &ln2) {
        Ok(power) => power,
        Err(error) => unreachable!("e^x has no exponent of 64 bits: {error}"),
    };
    let rest = x - &ln2 * power;
    (scale.exp(&rest), power - i64::from(scale.bits))
}

pub(crate) fn ln(x: Decimal128) -> Decimal128 {
    if x.is_infinite() || x.is_nan() {
        return x;
    }
    if is_one(x) {
        return Decimal128::ZERO;
    }
    let scale = Scale { bits: BITS };
    to_decimal(&scale.ln_decimal(x), -i64::from(scale.bits))
}

fn is_one(x: Decimal128) -> bool {
    x.to_i64_exact() == Some(1)
}

/// Returns the logarithm to the base 10. It is exact for powers of ten.
pub(crate) fn log10(x: Decimal128) -> Decimal128 {
    if x.is_infinite() {
        return x;
    }
    if let Some(power) = power_of_ten(x) {
        return Decimal128::from_i64(power);
    }
    let scale = Scale { bits: BITS };
    let ten = scale.ln(&(scale.one() * 10));
    let result = scale.divide(&scale.ln_decimal(x), &ten);
    to_decimal(&result, -i64::from(scale.bits))
}

fn power_of_ten(x: Decimal128) -> Option<i64> {
    let DecimalParts::Finite {
        negative: false,
        coefficient,
        exponent,
    } = x.parts()
    else {
        return None;
    };
    let zeros = coefficient.checked_ilog10()?;
    let is_power = 10u128.pow(zeros) == coefficient;
    is_power.then(|| i64::from(zeros) + i64::from(exponent))
}

/// Returns the power. It is exact if the exponent is whole and the result has at most 34 digits.
pub(crate) fn pow(base: Decimal128, exponent: Decimal128) -> Decimal128 {
    if exponent.is_zero() || is_one(base) {
        return one();
    }
    if base.is_nan() || exponent.is_nan() {
        return Decimal128::NAN;
    }
    if !is_finite(base) || !is_finite(exponent) || base.is_zero() {
        return special_power(base, exponent);
    }
    if let Some(power) = exact_power(base, exponent) {
        return power;
    }
    let negative = base.is_negative();
    if negative && exponent.to_i64_truncated().is_some_and(|(_, exact)| !exact) {
        return Decimal128::NAN;
    }
    let is_odd = exponent.to_i64_exact().is_some_and(|whole| whole % 2 != 0);
    let size = positive_power(base.abs(), exponent);
    if negative && is_odd {
        size.negate()
    } else {
        size
    }
}

/// Powers with an infinity and powers of zero, as in IEEE 754.
fn special_power(base: Decimal128, exponent: Decimal128) -> Decimal128 {
    let is_odd = exponent.to_i64_exact().is_some_and(|whole| whole % 2 != 0);
    let (size, to_negative) = (base.abs(), exponent.is_negative());
    let grows = if is_finite(exponent) {
        base.is_infinite()
    } else {
        let order = size.subtract(one());
        if order.is_zero() {
            return one();
        }
        !order.is_negative()
    };
    let result = if grows != to_negative {
        Decimal128::INFINITY
    } else {
        Decimal128::ZERO
    };
    if base.is_negative() && is_odd {
        result.negate()
    } else {
        result
    }
}

fn exact_power(base: Decimal128, exponent: Decimal128) -> Option<Decimal128> {
    let power = u32::try_from(exponent.to_i64_exact()?)
        .ok()
        .filter(|power| *power <= 6144)?;
    let DecimalParts::Finite {
        negative,
        coefficient,
        exponent,
    } = base.parts()
    else {
        return None;
    };
    let whole = coefficient
        .checked_pow(power)
        .filter(|whole| *whole < 10u128.pow(34))?;
    let negative = negative && power % 2 == 1;
    let exponent = exponent.checked_mul(i32::try_from(power).ok()?)?;
    Some(Decimal128::from_parts(
        negative,
        BigUint::from(whole),
        exponent,
        false,
    ))
}

/// Computes e^(y ln x) with enough bits for the magnitude of y.
fn positive_power(base: Decimal128, exponent: Decimal128) -> Decimal128 {
    let estimate = ln(base).multiply(exponent);
    let in_range = estimate
        .to_i64_truncated()
        .is_some_and(|(whole, _)| whole.unsigned_abs() <= EXP_MAX);
    if !in_range {
        return if estimate.is_negative() {
            Decimal128::ZERO
        } else {
            Decimal128::INFINITY
        };
    }
    let large = magnitude_bits(exponent).max(0) as u32;
    let scale = Scale { bits: BITS + large };
    let product = scale.multiply(&scale.ln_decimal(base), &scale.to_fixed_point(exponent));
    let (mantissa, exponent) = exp_fixed(scale, &product);
    to_decimal(&mantissa, exponent)
}

/// Reduces an angle to the quarter turn around 0. Returns the rest, and the number of quarter turns
/// modulo 4.
fn reduced(x: Decimal128) -> (Scale, BigInt, u8) {
    let large = magnitude_bits(x).max(0) as u32;
    let scale = Scale {
        bits: scale_for(x).bits + large,
    };
    let (fixed, quarter) = (scale.to_fixed_point(x), scale.pi() >> 1u32);
    let doubled = (&fixed << 1u32) + &quarter;
    let turns = floor_divide(&doubled, &(&quarter << 1u32));
    let rest = fixed - &turns * &quarter;
    let four = BigInt::from(4);
    let quadrant = ((&turns % &four) + &four) % &four;
    match u8::try_from(quadrant) {
        Ok(quadrant) => (scale, rest, quadrant),
        Err(error) => unreachable!("a remainder by 4: {error}"),
    }
}

fn floor_divide(one: &BigInt, other: &BigInt) -> BigInt {
    let quotient = one / other;
    if &quotient * other > *one {
        quotient - 1
    } else {
        quotient
    }
}

pub(crate) fn sin(x: Decimal128) -> Decimal128 {
    if let Some(itself) = itself_if_tiny(x) {
        return itself;
    }
    if x.is_zero() {
        return x;
    }
    let (scale, rest, quadrant) = reduced(x);
    to_decimal(&sin_in(scale, &rest, quadrant), -i64::from(scale.bits))
}

pub(crate) fn cos(x: Decimal128) -> Decimal128 {
    if let Some(one) = one_if_tiny(x) {
        return one;
    }
    if x.is_zero() {
        return one();
    }
    let (scale, rest, quadrant) = reduced(x);
    to_decimal(&sin_in(scale, &rest, quadrant + 1), -i64::from(scale.bits))
}

pub(crate) fn tan(x: Decimal128) -> Decimal128 {
    if let Some(itself) = itself_if_tiny(x) {
        return itself;
    }
    if x.is_zero() {
        return x;
    }
    let (scale, rest, quadrant) = reduced(x);
    let (sin, cos) = (
        sin_in(scale, &rest, quadrant),
        sin_in(scale, &rest, quadrant + 1),
    );
    to_decimal(&scale.divide(&sin, &cos), -i64::from(scale.bits))
}

/// Returns the sine of x plus a number of quarter turns.
fn sin_in(scale: Scale, x: &BigInt, quarters: u8) -> BigInt {
    match quarters % 4 {
        0 => scale.sin(x),
        1 => scale.cos(x),
        2 => -scale.sin(x),
        _ => -scale.cos(x),
    }
}

pub(crate) fn atan(x: Decimal128) -> Decimal128 {
    if let Some(itself) = itself_if_tiny(x) {
        return itself;
    }
    if x.is_zero() || x.is_nan() {
        return x;
    }
    let scale = scale_for(x);
    let result = if x.is_infinite() {
        let quarter = scale.pi() >> 1u32;
        if x.is_negative() { -quarter } else { quarter }
    } else {
        scale.atan(&scale.to_fixed_point(x))
    };
    to_decimal(&result, -i64::from(scale.bits))
}

/// Returns the angle of the point (x, y).
pub(crate) fn atan2(y: Decimal128, x: Decimal128) -> Decimal128 {
    if y.is_nan() || x.is_nan() {
        return Decimal128::NAN;
    }
    let scale = Scale { bits: BITS };
    let pi = |eighths: i32| {
        let angle = (scale.pi() * eighths) >> 3u32;
        let size = to_decimal(&angle, -i64::from(scale.bits));
        if y.is_negative() { size.negate() } else { size }
    };
    match (y.is_infinite(), x.is_infinite(), x.is_negative()) {
        (true, true, false) => pi(2),
        (true, true, true) => pi(6),
        (true, false, _) => pi(4),
        (false, true, false) => y.divide(Decimal128::INFINITY),
        (_, _, true) if y.is_zero() || x.is_infinite() => pi(8),
        _ if y.is_zero() => y,
        _ if x.is_zero() => pi(4),
        (_, _, false) => atan(y.divide(x)),
        (_, _, true) => {
            let scale = scale_for(y.divide(x));
            let angle =
                scale.atan(&scale.divide(&scale.to_fixed_point(y), &scale.to_fixed_point(x)));
            let turned = if y.is_negative() {
                angle - scale.pi()
            } else {
                angle + scale.pi()
            };
            to_decimal(&turned, -i64::from(scale.bits))
        }
    }
}

pub(crate) fn asin(x: Decimal128) -> Decimal128 {
    if let Some(itself) = itself_if_tiny(x) {
        return itself;
    }
    if x.is_zero() || x.is_nan() {
        return x;
    }
    let scale = scale_for(x);
    to_decimal(
        &asin_fixed(scale, &scale.to_fixed_point(x)),
        -i64::from(scale.bits),
    )
}

fn asin_fixed(scale: Scale, x: &BigInt) -> BigInt {
    let rest = scale.one() - scale.multiply(x, x);
    if rest <= BigInt::ZERO {
        let quarter = scale.pi() >> 1u32;
        return if *x < BigInt::ZERO { -quarter } else { quarter };
    }
    scale.atan(&scale.divide(x, &scale.square_root(&rest)))
}

/// Computes 2 asin √((1 - x) / 2), which is accurate near 1.
pub(crate) fn acos(x: Decimal128) -> Decimal128 {
    if x.is_nan() {
        return x;
    }
    if is_one(x) {
        return Decimal128::ZERO;
    }
    let scale = Scale { bits: 2 * BITS };
    let half = (scale.one() - scale.to_fixed_point(x)) >> 1u32;
    let result = asin_fixed(scale, &scale.square_root(&half)) << 1u32;
    to_decimal(&result, -i64::from(scale.bits))
}

/// Computes e^x and e^-x with one scale. Returns `None` if they are out of the range of decimals.
fn exp_pair(x: Decimal128) -> Option<(Scale, BigInt, BigInt)> {
    let (whole, _) = x.to_i64_truncated()?;
    if whole.unsigned_abs() > EXP_MAX {
        return None;
    }
    // The scale has enough bits for the digits of e^-x next to e^x.
    let large = (whole.unsigned_abs() * 3 / 2) as u32;
    let scale = Scale {
        bits: scale_for(x).bits + large,
    };
    let (mantissa, exponent) = exp_fixed(scale, &scale.to_fixed_point(x));
    let shift = exponent + i64::from(scale.bits);
    let grown = if shift >= 0 {
        mantissa << shift.unsigned_abs()
    } else {
        mantissa >> shift.unsigned_abs()
    };
    let inverse = scale.divide(&scale.one(), &grown);
    Some((scale, grown, inverse))
}

pub(crate) fn sinh(x: Decimal128) -> Decimal128 {
    if let Some(itself) = itself_if_tiny(x) {
        return itself;
    }
    if x.is_zero() || x.is_infinite() {
        return x;
    }
    match exp_pair(x) {
        Some((scale, up, down)) => to_decimal(&(up - down), -i64::from(scale.bits) - 1),
        None => infinite(x.is_negative()),
    }
}

pub(crate) fn cosh(x: Decimal128) -> Decimal128 {
    if let Some(one) = one_if_tiny(x) {
        return one;
    }
    if x.is_zero() {
        return one();
    }
    match exp_pair(x) {
        Some((scale, up, down)) => to_decimal(&(up + down), -i64::from(scale.bits) - 1),
        None => Decimal128::INFINITY,
    }
}

pub(crate) fn tanh(x: Decimal128) -> Decimal128 {
    if let Some(itself) = itself_if_tiny(x) {
        return itself;
    }
    if x.is_zero() {
        return x;
    }
    let limit = if x.is_negative() {
        one().negate()
    } else {
        one()
    };
    match exp_pair(x) {
        Some((scale, up, down)) => {
            let result = scale.divide(&(&up - &down), &(&up + &down));
            to_decimal(&result, -i64::from(scale.bits))
        }
        None => limit,
    }
}

/// Computes ln(x + √(x² + 1)) of |x|, with the sign of x.
pub(crate) fn asinh(x: Decimal128) -> Decimal128 {
    if let Some(itself) = itself_if_tiny(x) {
        return itself;
    }
    if x.is_zero() || x.is_infinite() {
        return x;
    }
    let scale = scale_for(x);
    let fixed = scale.to_fixed_point(x.abs());
    let root = scale.square_root(&(scale.multiply(&fixed, &fixed) + scale.one()));
    let size = to_decimal(&scale.ln(&(fixed + root)), -i64::from(scale.bits));
    if x.is_negative() { size.negate() } else { size }
}

pub(crate) fn acosh(x: Decimal128) -> Decimal128 {
    if x.is_infinite() {
        return x;
    }
    if is_one(x) {
        return Decimal128::ZERO;
    }
    let scale = Scale { bits: 2 * BITS };
    let fixed = scale.to_fixed_point(x);
    let root = scale.square_root(&(scale.multiply(&fixed, &fixed) - scale.one()));
    to_decimal(&scale.ln(&(fixed + root)), -i64::from(scale.bits))
}

/// Computes ln((1 + x) / (1 - x)) / 2.
pub(crate) fn atanh(x: Decimal128) -> Decimal128 {
    if let Some(itself) = itself_if_tiny(x) {
        return itself;
    }
    if x.is_zero() {
        return x;
    }
    if is_one(x.abs()) {
        return infinite(x.is_negative());
    }
    let scale = scale_for(x);
    let fixed = scale.to_fixed_point(x);
    let ratio = scale.divide(&(scale.one() + &fixed), &(scale.one() - &fixed));
    to_decimal(&scale.ln(&ratio), -i64::from(scale.bits) - 1)
}

/// π/180 and 180/π with 34 digits.
const DEGREE: &str = "0.01745329251994329576923690768488613";
const RADIAN: &str = "57.29577951308232087679815481410517";

fn times(x: Decimal128, factor: &str) -> Decimal128 {
    Decimal128::parse(factor).map_or(Decimal128::NAN, |factor| x.multiply(factor))
}

pub(crate) fn to_radians(x: Decimal128) -> Decimal128 {
    times(x, DEGREE)
}

pub(crate) fn to_degrees(x: Decimal128) -> Decimal128 {
    times(x, RADIAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::ValueRef;

    #[test]
    fn functions_are_accurate_to_34_digits() {
        type Case = (fn(Decimal128) -> Decimal128, &'static str, &'static str);
        let cases: [Case; 18] = [
            (exp, "12.75", "344551.8961378237009414187790437289"),
            (exp, "1", "2.718281828459045235360287471352662"),
            (ln, "1E-6176", "-14220.76553433122614449511522413063"),
            (
                ln,
                "1.000000000000000000000000000000001",
                "9.999999999999999999999999999999995E-34",
            ),
            (ln, "10", "2.302585092994045684017991454684364"),
            (log10, "12.75", "1.105510184769973975407720008134466"),
            (log10, "100", "2"),
            (cos, "1.5", "0.07073720166770291008818985143426871"),
            (sin, "1E-40", "1.000000000000000000000000000000000E-40"),
            (asin, "0.5", "0.5235987755982988730771072305465838"),
            (acos, "0.5", "1.047197551196597746154214461093168"),
            (atan, "1", "0.7853981633974483096156608458198757"),
            (sinh, "1.5", "2.129279455094817496834387494677632"),
            (cosh, "1.5", "2.352409615243247325767667965441644"),
            (tanh, "100", "1.000000000000000000000000000000000"),
            (acosh, "1.5", "0.9624236501192068949955178268487368"),
            (atanh, "0.5", "0.5493061443340548456976226184612629"),
            (asinh, "1E-30", "1.000000000000000000000000000000000E-30"),
        ];
        for (function, x, expected) in cases {
            let x = Decimal128::parse(x).unwrap();
            assert_eq!(function(x).to_string(), expected, "{x}");
        }
    }

    #[test]
    fn the_sine_of_a_tiny_number_is_the_number() {
        let odd = [sin, tan, atan, asin, sinh, tanh, asinh, atanh];
        for function in odd {
            for text in ["1E-30", "-1E-30", "3E-6000", "1E-6176"] {
                let x = Decimal128::parse(text).unwrap();
                let found = function(x);
                let same = ValueRef::Decimal128(found).equals(ValueRef::Decimal128(x));
                assert!(same, "{text}: {found}");
            }
        }
        let itself_if_tiny = Decimal128::parse("1E-6000").unwrap();
        for function in [cos, cosh] {
            let found = ValueRef::Decimal128(function(itself_if_tiny));
            assert!(found.equals(ValueRef::Int32(1)), "{found}");
        }
    }

    #[test]
    fn large_angles_are_reduced_exactly() {
        let x = Decimal128::parse("1E+22").unwrap();
        assert_eq!(sin(x).to_string(), "-0.8522008497671888017727058937530294");
    }

    #[test]
    fn powers_with_special_operands() {
        let cases = [
            ("2", "3", "8"),
            ("1.5", "2", "2.25"),
            ("2", "0.5", "1.414213562373095048801688724209698"),
            ("2", "-1", "0.5000000000000000000000000000000000"),
            ("-2", "3", "-8"),
            ("-2", "0.5", "NaN"),
            ("10", "7000", "Infinity"),
            ("0", "2", "0"),
            ("1.000000000000000000000000000000001", "1E+6000", "Infinity"),
            (
                "1E-6000",
                "0.5",
                "1.000000000000000000000000000000000E-3000",
            ),
            ("3", "1E-6000", "1.000000000000000000000000000000000"),
        ];
        for (base, exponent, expected) in cases {
            let parse = |text| Decimal128::parse(text).unwrap();
            let found = pow(parse(base), parse(exponent));
            assert_eq!(found.to_string(), expected, "{base} {exponent}");
        }
    }
}
