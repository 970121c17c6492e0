//! Operators on strings. Positions count bytes (`…Bytes`) or code points (`…CP`). Only ASCII
//! letters change case.

use std::cmp::Ordering;

use windrow_document::ValueRef;

use super::array::{IntArgument, bounds};
use super::number::{Number, double_text};
use super::parse::NamedArguments;
use super::tree::{Call, EvalResult, check_length};
use super::{Context, ExprValue};
use crate::Error;
use crate::expression::date;
use crate::memory::LimitedArrayBuilder;

/// Returns the value as a string. Fails with `code` if it is not a string. `what` names the
/// argument in the message.
fn text<'v>(
    call: &Call,
    value: &'v ExprValue<'_>,
    code: i32,
    what: &str,
) -> Result<&'v str, Error> {
    value.as_str().ok_or_else(|| {
        let (name, found) = (call.operator.name, value.type_name());
        Error::new(
            code,
            format!("{name} requires {what} to be a string, found: {found}"),
        )
    })
}

pub(crate) fn concat<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let mut whole = String::new();
    for argument in &call.arguments {
        let value = argument.evaluate(context)?;
        if value.is_nullish() {
            return Ok(ExprValue::NULL);
        }
        let Some(text) = value.as_str() else {
            let message = format!("$concat only supports strings, not {}", value.type_name());
            return Err(Error::new(16702, message));
        };
        check_length(whole.len() + text.len())?;
        whole.push_str(text);
    }
    Ok(whole.into())
}

/// Converts a value to a string as most string operators do: numbers and dates as text, null as "".
/// Fails with 16007 for other types.
pub(crate) fn coerce(value: &ExprValue<'_>) -> Result<String, Error> {
    Ok(match value.or_null() {
        ValueRef::Null | ValueRef::Undefined => String::new(),
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::JavaScript(text) => {
            text.to_owned()
        }
        ValueRef::Int32(number) => number.to_string(),
        ValueRef::Int64(number) => number.to_string(),
        ValueRef::Double(number) if number.is_nan() => "nan".to_owned(),
        ValueRef::Double(number) if number.is_infinite() => number.to_string(),
        ValueRef::Double(number) => double_text(number),
        ValueRef::Decimal128(number) => number.to_string(),
        ValueRef::DateTime(millis) => date::to_iso_text(millis)?,
        ValueRef::Timestamp(timestamp) => date::timestamp_text(timestamp),
        other => {
            let found = other.type_of().name();
            return Err(Error::new(
                16007,
                format!("can't convert from BSON type {found} to String"),
            ));
        }
    })
}

pub(crate) fn to_lower<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    Ok(coerce(&call.value(0, context)?)?
        .to_ascii_lowercase()
        .into())
}

pub(crate) fn to_upper<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    Ok(coerce(&call.value(0, context)?)?
        .to_ascii_uppercase()
        .into())
}

pub(crate) fn compare_ignoring_case<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let one = coerce(&call.value(0, context)?)?.to_ascii_uppercase();
    let other = coerce(&call.value(1, context)?)?.to_ascii_uppercase();
    Ok((match one.cmp(&other) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
    .into())
}

pub(crate) fn length_in_bytes<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    Ok((text(call, &value, 34473, "its argument")?.len() as i32).into())
}

pub(crate) fn length_in_points<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    Ok((text(call, &value, 34471, "its argument")?.chars().count() as i32).into())
}

pub(crate) fn index_of_bytes<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (value, searched) = (call.value(0, context)?, call.value(1, context)?);
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let value = text(call, &value, 40091, "its first argument")?;
    let searched = text(call, &searched, 40092, "its second argument")?;
    let (start, end) = bounds(call, context, value.len())?;
    let within = value.as_bytes().get(start..end);
    let found = within.and_then(|within| find_bytes(within, searched.as_bytes()));
    Ok(found.map_or(-1, |index| (start + index) as i32).into())
}

fn find_bytes(text: &[u8], searched: &[u8]) -> Option<usize> {
    if searched.is_empty() {
        return Some(0);
    }
    text.windows(searched.len())
        .position(|window| window == searched)
}

pub(crate) fn index_of_points<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (value, searched) = (call.value(0, context)?, call.value(1, context)?);
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let value = text(call, &value, 40093, "its first argument")?;
    let searched = text(call, &searched, 40094, "its second argument")?;
    let (start, end) = bounds(call, context, value.chars().count())?;
    // As in MongoDB, nothing is found at the position after the last code point, not even "".
    let indexes = value.char_indices().enumerate().take(end).skip(start);
    // The match must start before the end, but may reach beyond it, unlike in `$indexOfBytes`.
    let found = indexes.into_iter().find(|(_, (byte, _))| {
        let rest = value.get(*byte..);
        rest.is_some_and(|rest| rest.starts_with(searched))
    });
    let empty = value.is_empty() && searched.is_empty() && start == 0;
    Ok(found
        .map_or(if empty { 0 } else { -1 }, |(index, _)| index as i32)
        .into())
}

pub(crate) fn split<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (value, separator) = (call.value(0, context)?, call.value(1, context)?);
    if value.is_nullish() || separator.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let value = text(call, &value, 40085, "its first argument")?;
    let separator = text(call, &separator, 40086, "its second argument")?;
    if separator.is_empty() {
        return Err(Error::new(40087, "$split requires a non-empty separator"));
    }
    let mut parts = LimitedArrayBuilder::new(call.operator.name);
    parts.extend(value.split(separator).map(ValueRef::String))?;
    Ok(parts.finish().into())
}

/// Returns an operand that is a position or a length: any number that can be converted to a long.
fn position(value: &ExprValue<'_>, code: i32, what: &str) -> Result<i64, Error> {
    let Some(number) = value.as_ref().and_then(Number::from_value) else {
        let found = value.type_name();
        let message = format!("$substrBytes: {what} must be a numeric type (is BSON type {found})");
        return Err(Error::new(code, message));
    };
    number.coerced_to_i64()
}

/// `$substrBytes`. A negative length means the rest of the string.
pub(crate) fn substring_by_bytes<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    let (start, length) = (call.value(1, context)?, call.value(2, context)?);
    let value = coerce(&value)?;
    let start = position(&start, 16034, "starting index")?;
    let length = position(&length, 16035, "length")?;
    let Ok(start) = usize::try_from(start) else {
        let message = "$substrBytes: starting index must be non-negative";
        return Err(Error::new(50752, message));
    };
    let start = start.min(value.len());
    let rest = value.len() - start;
    let end = start + usize::try_from(length).unwrap_or(rest).min(rest);
    if !value.is_char_boundary(start) {
        let message = "$substrBytes: Invalid range, starting index is a UTF-8 continuation byte.";
        return Err(Error::new(28656, message));
    }
    match value.get(start..end) {
        Some(part) => Ok(part.to_owned().into()),
        None => {
            let message =
                "$substrBytes: Invalid range, ending index is in the middle of a UTF-8 character.";
            Err(Error::new(28657, message))
        }
    }
}

pub(crate) fn substring_by_points<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    const START: IntArgument<'_> = IntArgument {
        name: "$substrCP: starting index",
        not_number: 34450,
        not_int: 34451,
    };
    const LENGTH: IntArgument<'_> = IntArgument {
        name: "$substrCP: length",
        not_number: 34452,
        not_int: 34453,
    };
    let value = call.value(0, context)?;
    let (start, length) = (call.value(1, context)?, call.value(2, context)?);
    let value = coerce(&value)?;
    let (start, length) = (START.read(&start)?, LENGTH.read(&length)?);
    let Ok(length) = usize::try_from(length) else {
        return Err(Error::new(
            34454,
            "$substrCP: length must be a nonnegative integer.",
        ));
    };
    let Ok(start) = usize::try_from(start) else {
        return Err(Error::new(
            34455,
            "$substrCP: the starting index must be nonnegative integer.",
        ));
    };
    Ok(value
        .chars()
        .skip(start)
        .take(length)
        .collect::<String>()
        .into())
}

pub(crate) static TRIM: NamedArguments = NamedArguments {
    not_document: 50696,
    unknown: 50694,
    names: &[("input", Some(50695)), ("chars", None)],
};

/// Returns `true` for whitespace that is trimmed by default. Source: MongoDB's manual, `$trim`.
fn is_space(character: char) -> bool {
    matches!(
        character,
        '\0' | ' ' | '\t'..='\r' | '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}'
    )
}

type Trim = for<'t> fn(&'t str, &dyn Fn(char) -> bool) -> &'t str;

fn trim_with<'a>(call: &'a Call, context: &Context<'a>, trim: Trim) -> EvalResult<'a> {
    let input = call.value(0, context)?;
    if input.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let input = text(call, &input, 50699, "its input")?;
    if call.argument(1).is_absent() {
        return Ok(trim(input, &is_space).to_owned().into());
    }
    let characters = call.value(1, context)?;
    if characters.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let characters = text(call, &characters, 50700, "'chars'")?;
    Ok(trim(input, &|one| characters.contains(one))
        .to_owned()
        .into())
}

pub(crate) fn trim<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    trim_with(call, context, |text, is_trimmed| {
        text.trim_matches(is_trimmed)
    })
}

pub(crate) fn trim_start<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    trim_with(call, context, |text, is_trimmed| {
        text.trim_start_matches(is_trimmed)
    })
}

pub(crate) fn trim_end<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    trim_with(call, context, |text, is_trimmed| {
        text.trim_end_matches(is_trimmed)
    })
}

pub(crate) static REPLACE: NamedArguments = NamedArguments {
    not_document: 51751,
    unknown: 51750,
    names: &[
        ("input", Some(51749)),
        ("find", Some(51748)),
        ("replacement", Some(51747)),
    ],
};

fn replace<'a>(call: &'a Call, context: &Context<'a>, count: usize) -> EvalResult<'a> {
    let input = call.value(0, context)?;
    let find = call.value(1, context)?;
    let replacement = call.value(2, context)?;
    let check = |value: &ExprValue<'_>, code: i32, what: &str| {
        if value.is_nullish() || value.as_str().is_some() {
            return Ok(());
        }
        text(call, value, code, what).map(|_| ())
    };
    check(&input, 51746, "'input'")?;
    check(&find, 51745, "'find'")?;
    check(&replacement, 51744, "'replacement'")?;
    match (input.as_str(), find.as_str(), replacement.as_str()) {
        (Some(input), Some(find), Some(replacement)) => {
            let mut whole = String::new();
            for (index, part) in input.splitn(count.saturating_add(1), find).enumerate() {
                if index > 0 {
                    check_length(whole.len() + replacement.len() + part.len())?;
                    whole.push_str(replacement);
                }
                whole.push_str(part);
            }
            Ok(whole.into())
        }
        _ => Ok(ExprValue::NULL),
    }
}

pub(crate) fn replace_one<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    replace(call, context, 1)
}

pub(crate) fn replace_all<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    replace(call, context, usize::MAX)
}
