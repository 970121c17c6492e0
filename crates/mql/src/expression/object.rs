//! `$getField`, `$setField`, `$unsetField`, and operators on types and sizes: `$type`, `$isNumber`,
//! `$bsonSize`, `$binarySize`.

use windrow_document::{Value, ValueRef};
use windrow_invariant::Bug;

use super::parse::{NamedArguments, Parser, finish};
use super::tree::{ABSENT, Call, EvalResult, Operator};
use super::{Context, ExprValue, Expression};
use crate::Error;
use crate::memory::LimitedDocumentBuilder;

pub(crate) fn type_name<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let name = call.value(0, context)?.type_name();
    Ok(ValueRef::String(name).into())
}

pub(crate) fn is_number<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    Ok(value.as_ref().is_some_and(ValueRef::is_number).into())
}

/// `$bsonSize`: the size of a document in bytes.
pub(crate) fn bson_size<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    match value.as_document() {
        Some(document) => Ok((document.as_bytes().len() as i32).into()),
        None => {
            let message = format!(
                "$bsonSize requires a document input, found: {}",
                value.type_name()
            );
            Err(Error::new(31393, message))
        }
    }
}

/// `$binarySize`: the size of a string or of binary data in bytes.
pub(crate) fn binary_size<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    match value.or_null() {
        ValueRef::Null | ValueRef::Undefined => Ok(ExprValue::NULL),
        ValueRef::String(text) => Ok((text.len() as i32).into()),
        ValueRef::Binary { bytes, .. } => Ok((bytes.len() as i32).into()),
        _ => {
            let message = format!(
                "$binarySize requires a string or BinData argument, found: {}",
                value.type_name()
            );
            Err(Error::new(51276, message))
        }
    }
}

static GET_FIELD: NamedArguments = NamedArguments {
    not_document: 3041701,
    unknown: 3041701,
    names: &[("field", Some(3041702)), ("input", Some(3041703))],
};

/// Parses the field name of `$setField` and `$unsetField`: a string, or `$literal` of a string for
/// a name that starts with a dollar sign.
///
/// # Errors
///
/// - 4161108: a field path.
/// - 4161106: another expression.
/// - 4161107: a constant of another type.
/// - 9534700: the name contains a null byte.
fn parse_name(operator: &str, value: ValueRef<'_>, parser: &Parser) -> Result<Expression, Error> {
    let error = |code: i32, found: &str| {
        let message =
            format!("{operator} requires 'field' to be a constant String, but got {found}");
        Err(Error::new(code, message))
    };
    match value {
        ValueRef::String(name) if name.starts_with('$') => {
            parser.parse(value)?;
            error(4161108, "a field path")
        }
        ValueRef::String(name) if name.contains('\0') => error(9534700, "one with a NUL"),
        ValueRef::String(name) => Ok(Expression::from_constant(Value::from(name))),
        ValueRef::Document(document) if document.is_empty() => error(4161107, "object"),
        ValueRef::Document(document) => {
            let name = document.first().map(|(name, _)| name);
            let parsed = parser.parse(value)?;
            if !matches!(name, Some("$literal" | "$const")) {
                return error(4161106, "an expression");
            }
            match parsed.constant() {
                Some(Value::String(name)) if name.contains('\0') => {
                    error(9534700, "one with a NUL")
                }
                Some(Value::String(_)) => Ok(parsed),
                constant => error(
                    4161107,
                    constant.map_or("missing", |it| it.type_of().name()),
                ),
            }
        }
        ValueRef::Array(_) => {
            parser.parse(value)?;
            error(4161106, "an array")
        }
        other => error(4161107, other.type_of().name()),
    }
}

/// Parses `$getField`: `{field: name, input: document}`, or only the name, which is read from
/// `$$CURRENT`. Arguments: name, input.
pub(crate) fn parse_get_field(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let is_long = match operand {
        ValueRef::Document(document) => document
            .first()
            .is_none_or(|(name, _)| !name.starts_with('$')),
        _ => false,
    };
    let (name, input) = if is_long {
        let values = GET_FIELD.values(operator.name, operand)?;
        (
            values.first().copied().flatten(),
            values.get(1).copied().flatten(),
        )
    } else {
        (Some(operand), None)
    };
    let name = match name {
        Some(ValueRef::String(text)) if !text.starts_with('$') => {
            Expression::from_constant(Value::from(text))
        }
        Some(value) => parser.parse(value)?,
        None => ABSENT.clone(),
    };
    let input = input.unwrap_or(ValueRef::String("$$CURRENT"));
    finish(Call::new(operator, vec![name, parser.parse(input)?]))
}

pub(crate) fn get_field<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (name, input) = (call.value(0, context)?, call.value(1, context)?);
    let Some(name) = name.as_str() else {
        let found = name.type_name();
        let message =
            format!("$getField requires 'field' to evaluate to type String, but got {found}");
        return Err(Error::new(3041704, message));
    };
    Ok(match input {
        ExprValue::Borrowed(ValueRef::Document(document)) => document.get(name).into(),
        other if other.is_missing() => ExprValue::Missing,
        other if other.is_nullish() => ExprValue::NULL,
        other => match other.as_document().and_then(|document| document.get(name)) {
            Some(value) => ExprValue::from(value.to_value()),
            None => ExprValue::Missing,
        },
    })
}

static SET_FIELD: NamedArguments = NamedArguments {
    not_document: 4161100,
    unknown: 4161101,
    names: &[
        ("field", Some(4161102)),
        ("value", Some(4161103)),
        ("input", Some(4161109)),
    ],
};

static UNSET_FIELD: NamedArguments = NamedArguments {
    not_document: 4161100,
    unknown: 4161101,
    names: &[("field", Some(4161102)), ("input", Some(4161109))],
};

/// Parses `$setField` or `$unsetField`. `$unsetField` has the value `$$REMOVE`.
fn parse_change(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
    named: &NamedArguments,
) -> Result<Expression, Error> {
    let values = named.values(operator.name, operand)?;
    let (name, value, input) = match *values.as_slice() {
        [Some(name), Some(value), Some(input)] => (name, value, input),
        [Some(name), Some(input)] => (name, ValueRef::String("$$REMOVE"), input),
        _ => return Err(Error::new(4161102, "the field's name is missing")),
    };
    let name = parse_name(operator.name, name, parser)?;
    let arguments = vec![name, parser.parse(input)?, parser.parse(value)?];
    finish(Call::new(operator, arguments))
}

/// Parses `$setField`. Arguments: name, input, value.
pub(crate) fn parse_set_field(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    parse_change(operator, operand, parser, &SET_FIELD)
}

/// Parses `$unsetField`. Arguments as of `$setField`, with the value `$$REMOVE`.
pub(crate) fn parse_unset_field(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    parse_change(operator, operand, parser, &UNSET_FIELD)
}

/// `$setField`: the input with the field set. An existing field keeps its position. A missing value
/// removes the field.
pub(crate) fn set_field<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (name, input) = (call.value(0, context)?, call.value(1, context)?);
    if input.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let Some(document) = input.as_document() else {
        let message = format!(
            "{} requires 'input' to evaluate to type Object",
            call.operator.name
        );
        return Err(Error::new(4161105, message));
    };
    let Some(name) = name.as_str() else {
        let message = format!("the name of a field is a {}", name.type_name());
        return Err(Bug::new(message).into());
    };
    let new = call.value(2, context)?;
    let mut changed = LimitedDocumentBuilder::new(call.operator.name);
    let mut was_there = false;
    for (known, old) in document {
        let is_it = known == name;
        was_there |= is_it;
        let value = if is_it { new.as_ref() } else { Some(old) };
        if let Some(value) = value {
            changed.append(known, value)?;
        }
    }
    if let (false, Some(value)) = (was_there, new.as_ref()) {
        changed.append(name, value)?;
    }
    Ok(changed.finish().into())
}
