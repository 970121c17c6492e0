//! `$abs`, `$ceil`, `$floor`, `$round`, `$trunc`.

use windrow_document::Decimal128;
use windrow_document::decimal::{DecimalParts, Rounding};

use super::number::{Number, exact_decimal};
use super::tree::{Call, EvalResult};
use super::{Context, ExprValue};
use crate::Error;

/// Returns the only argument as a number, or `None` if it is null. Fails with 28765 for other
/// types.
pub(crate) fn numeric<'a>(call: &'a Call, context: &Context<'a>) -> Result<Option<Number>, Error> {
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(None);
    }
    value
        .as_ref()
        .and_then(Number::from_value)
        .map(Some)
        .ok_or_else(|| {
            let (name, found) = (call.operator.name, value.type_name());
            Error::new(
                28765,
                format!("{name} only supports numeric types, not {found}"),
            )
        })
}

pub(crate) fn abs<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    Ok(match numeric(call, context)? {
        None => ExprValue::NULL,
        Some(Number::Int(number)) => Number::int_or_long(i64::from(number).abs()).into(),
        Some(Number::Long(number)) => match number.checked_abs() {
            Some(number) => number.into(),
            None => return Err(Error::new(28680, "can't take $abs of long long min")),
        },
        Some(Number::Double(number)) => number.abs().into(),
        Some(Number::Decimal(number)) => number.abs().into(),
    })
}

fn to_whole<'a>(number: Option<Number>, double: fn(f64) -> f64, toward: Rounding) -> ExprValue<'a> {
    match number {
        None => ExprValue::NULL,
        Some(Number::Double(number)) => double(number).into(),
        Some(Number::Decimal(number)) => quantized(number, 0, toward).into(),
        Some(whole) => whole.into(),
    }
}

pub(crate) fn ceil<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    Ok(to_whole(
        numeric(call, context)?,
        f64::ceil,
        Rounding::Ceiling,
    ))
}

pub(crate) fn floor<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    Ok(to_whole(
        numeric(call, context)?,
        f64::floor,
        Rounding::Floor,
    ))
}

pub(crate) fn round<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    to_places(call, context, Rounding::HalfEven)
}

pub(crate) fn trunc<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    to_places(call, context, Rounding::Truncate)
}

fn to_places<'a>(call: &'a Call, context: &Context<'a>, toward: Rounding) -> EvalResult<'a> {
    let name = call.operator.name;
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let Some(number) = value.as_ref().and_then(Number::from_value) else {
        let message = format!(
            "{name} only supports numeric types, not {}",
            value.type_name()
        );
        return Err(Error::new(51081, message));
    };
    let places = call.value(1, context)?;
    if places.is_nullish() {
        return if call.argument(1).is_absent() {
            Ok(rounded(number, 0, toward)?.into())
        } else {
            Ok(ExprValue::NULL)
        };
    }
    Ok(rounded(number, parse_places(name, &places)?, toward)?.into())
}

/// Parses the number of decimal places.
///
/// # Errors
///
/// - 16004: not a number.
/// - 31109: a double that does not fit in a long.
/// - 51082: not a whole number.
/// - 51083: out of range.
fn parse_places(name: &str, places: &ExprValue<'_>) -> Result<i32, Error> {
    let Some(number) = places.as_ref().and_then(Number::from_value) else {
        let found = places.type_name();
        let message = format!("can't convert from BSON type {found} to long");
        return Err(Error::new(16004, message));
    };
    number.coerced_to_i64()?;
    let Some(places) = places.as_ref().and_then(|places| places.as_whole()) else {
        let message = format!("precision argument to {name} must be an integral value");
        return Err(Error::new(51082, message));
    };
    if !(-20..=100).contains(&places) {
        let message = format!(
            "cannot apply {name} with precision value {places} value must be in [-20, 100]"
        );
        return Err(Error::new(51083, message));
    }
    Ok(places as i32)
}

fn rounded(number: Number, places: i32, toward: Rounding) -> Result<Number, Error> {
    Ok(match number {
        Number::Decimal(number) => Number::Decimal(quantized(number, places, toward)),
        Number::Double(number) if !number.is_finite() || number == 0.0 => Number::Double(number),
        Number::Double(number) => {
            Number::Double(exact_decimal(number).to_places(places, toward).to_f64())
        }
        whole if places >= 0 => whole,
        whole => {
            let Some((long, _)) = whole
                .to_decimal()
                .to_places(places, toward)
                .to_i64_truncated()
            else {
                return Err(Error::new(
                    51080,
                    "invalid conversion from Decimal128 result: overflow",
                ));
            };
            match whole {
                Number::Int(_) => Number::int_or_long(long),
                _ => Number::Long(long),
            }
        }
    })
}

/// Rounds to exactly this many decimal places. Zeros are appended if there are fewer places, up to
/// 34 digits.
fn quantized(number: Decimal128, places: i32, toward: Rounding) -> Decimal128 {
    match number.parts() {
        DecimalParts::Finite {
            negative,
            coefficient: 0,
            ..
        } => Decimal128::from_parts(negative, 0u8.into(), -places, false),
        DecimalParts::Finite {
            negative,
            coefficient,
            exponent,
        } if exponent > -places => {
            let zeros = (exponent + places).unsigned_abs();
            let padded = 10u128
                .checked_pow(zeros)
                .and_then(|unit| coefficient.checked_mul(unit));
            match padded {
                Some(padded) if padded < 10u128.pow(34) => {
                    Decimal128::from_parts(negative, padded.into(), -places, false)
                }
                _ => number.to_full_precision(),
            }
        }
        _ => number.to_places(places, toward),
    }
}
