//! `$convert` and its short forms, such as `$toInt`: the conversions between types.

mod binary;
mod target;
mod text;

use windrow_document::hash::hash64;
use windrow_document::{Decimal128, ObjectId, Type, Value, ValueRef};

use super::date;
use super::number::Number;
use super::parse::{NamedArguments, Parser, finish};
use super::tree::{ABSENT, Call, EvalResult, Operator};
use super::{Context, ExprValue, Expression};
use crate::Error;
use target::{BinaryFormat, ConversionTarget};

pub(crate) static CONVERT: NamedArguments = NamedArguments {
    not_document: 9,
    unknown: 9,
    names: &[
        ("input", Some(9)),
        ("to", Some(9)),
        ("onError", None),
        ("onNull", None),
        ("format", None),
        ("byteOrder", None),
    ],
};

/// Parses a short form, such as `$toInt`. The arguments are those of `$convert`.
pub(crate) fn parse_to(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let mut arguments = parser.list(operator.name, operand, 1..=1, 50723)?;
    let target = match operator.name {
        "$toBool" => "bool",
        "$toDate" => "date",
        "$toDecimal" => "decimal",
        "$toDouble" => "double",
        "$toInt" => "int",
        "$toLong" => "long",
        "$toObjectId" => "objectId",
        "$toUUID" => "binData",
        _ => "string",
    };
    arguments.push(Expression::from_constant(Value::from(target)));
    let format = match operator.name {
        "$toUUID" => Some("uuid"),
        "$toString" => Some("auto"),
        _ => None,
    };
    if let Some(format) = format {
        arguments.extend([ABSENT.clone(), ABSENT.clone()]);
        arguments.push(Expression::from_constant(Value::from(format)));
    }
    finish(Call::new(operator, arguments))
}

/// Error 241, ConversionFailure.
fn failure(message: impl Into<String>) -> Error {
    Error::new(241, message)
}

pub(crate) fn convert<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (input, to) = (call.value(0, context)?, call.value(1, context)?);
    let target = if to.is_nullish() {
        None
    } else {
        Some(ConversionTarget::parse(&to, call.operator.name)?)
    };
    if input.is_nullish() {
        return if call.argument(3).is_absent() {
            Ok(ExprValue::NULL)
        } else {
            call.value(3, context)
        };
    }
    let Some(mut target) = target else {
        return Ok(ExprValue::NULL);
    };
    target.take_subtype(&to)?;
    target.format = BinaryFormat::parse(&call.value(4, context)?)?;
    target.is_big_endian = target::is_big_endian(&call.value(5, context)?)?;
    match converted(input, &target) {
        Err(error) if error.code == 241 && !call.argument(2).is_absent() => call.value(2, context),
        result => result,
    }
}

fn converted<'a>(value: ExprValue<'a>, target: &ConversionTarget) -> EvalResult<'a> {
    let source = value.or_null();
    if source.type_of() == target.kind && !matches!(target.kind, Type::Binary) {
        return Ok(value);
    }
    Ok(match target.kind {
        Type::Bool => to_bool(source)?.into(),
        Type::Int32 => to_int(source, target)?.into(),
        Type::Int64 => to_long(source, target)?.into(),
        Type::Double => to_double(source, target)?.into(),
        Type::Decimal128 => to_decimal(source)?.into(),
        Type::String => text::to_string(source, target)?.into(),
        Type::DateTime => ValueRef::DateTime(to_date(source)?).into(),
        Type::ObjectId => to_object_id(source)?.into(),
        Type::Binary => binary::to_binary(source, target)?.into(),
        other => return Err(unsupported(source, other)),
    })
}

fn unsupported(source: ValueRef<'_>, target: Type) -> Error {
    let (from, to) = (source.type_of().name(), target.name());
    failure(format!(
        "Unsupported conversion from {from} to {to} in $convert with no onError value"
    ))
}

/// Everything is true except false and zero.
fn to_bool(source: ValueRef<'_>) -> Result<bool, Error> {
    Ok(source.is_truthy())
}

/// Returns the number truncated to a whole number, if it fits in 64 bits.
fn whole(number: Number) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match number {
        Number::Int(number) => Some(i64::from(number)),
        Number::Long(number) => Some(number),
        Number::Double(number) => (-LIMIT..LIMIT).contains(&number).then_some(number as i64),
        Number::Decimal(number) => number.to_i64_truncated().map(|(whole, _)| whole),
    }
}

fn out_of_range(number: ValueRef<'_>) -> Error {
    failure(format!(
        "Conversion would overflow target type in $convert with no onError value: {number}"
    ))
}

fn to_int(source: ValueRef<'_>, target: &ConversionTarget) -> Result<i32, Error> {
    if let ValueRef::DateTime(_) = source {
        return Err(unsupported(source, Type::Int32));
    }
    let long = to_long(source, target)?;
    i32::try_from(long).map_err(|_| out_of_range(source))
}

fn to_long(source: ValueRef<'_>, target: &ConversionTarget) -> Result<i64, Error> {
    if let Some(number) = Number::from_value(source) {
        return whole(number).ok_or_else(|| out_of_range(source));
    }
    match source {
        ValueRef::Bool(flag) => Ok(i64::from(flag)),
        ValueRef::DateTime(millis) => Ok(millis),
        ValueRef::String(text) => text::to_whole(text),
        ValueRef::Binary { bytes, .. } => binary::to_whole(bytes, target),
        _ => Err(unsupported(source, Type::Int64)),
    }
}

fn to_double(source: ValueRef<'_>, target: &ConversionTarget) -> Result<f64, Error> {
    match source {
        ValueRef::Int32(number) => Ok(f64::from(number)),
        ValueRef::Int64(number) => Ok(number as f64),
        ValueRef::Decimal128(number) => {
            let double = number.to_f64();
            let lost = double.is_infinite() && !number.is_infinite()
                || !number.is_zero() && double.abs() < f64::MIN_POSITIVE;
            if lost {
                Err(out_of_range(source))
            } else {
                Ok(double)
            }
        }
        ValueRef::Bool(flag) => Ok(f64::from(u8::from(flag))),
        ValueRef::DateTime(millis) => Ok(millis as f64),
        ValueRef::String(text) => text::to_double(text),
        ValueRef::Binary { bytes, .. } => binary::to_double(bytes, target),
        _ => Err(unsupported(source, Type::Double)),
    }
}

fn to_decimal(source: ValueRef<'_>) -> Result<Decimal128, Error> {
    if let Some(number) = Number::from_value(source) {
        return Ok(number.to_decimal());
    }
    match source {
        ValueRef::Bool(flag) => Ok(Decimal128::from_i64(i64::from(flag))),
        ValueRef::DateTime(millis) => Ok(Decimal128::from_i64(millis)),
        ValueRef::String(text) => text::to_decimal(text),
        _ => Err(unsupported(source, Type::Decimal128)),
    }
}

fn to_date(source: ValueRef<'_>) -> Result<i64, Error> {
    match source {
        ValueRef::Int64(_) | ValueRef::Double(_) | ValueRef::Decimal128(_) => {
            Number::from_value(source)
                .and_then(whole)
                .ok_or_else(|| out_of_range(source))
        }
        ValueRef::ObjectId(_) | ValueRef::Timestamp(_) => date::millis(&source.into()),
        ValueRef::String(text) => date::from_text::to_date(text),
        _ => Err(unsupported(source, Type::DateTime)),
    }
}

fn to_object_id(source: ValueRef<'_>) -> Result<ObjectId, Error> {
    match source {
        ValueRef::String(text) => ObjectId::parse(text).ok_or_else(|| {
            failure(format!(
                "Failed to parse objectId '{text}' in $convert with no onError value"
            ))
        }),
        _ => Err(unsupported(source, Type::ObjectId)),
    }
}

/// `$toHashedIndexKey`: the hash that a hashed index stores for the value. A missing value has the
/// hash of null.
pub(crate) fn to_hashed_index_key<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    Ok(hash64(call.value(0, context)?.or_null()).into())
}
