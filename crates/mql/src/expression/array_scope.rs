//! `$map`, `$filter`, `$reduce`: expressions that are evaluated for each element of an array, which
//! is bound to a variable.

use windrow_document::{Array, ValueRef};
use windrow_invariant::Bug;

use super::array::{IntArgument, array};
use super::context::Frame;
use super::offset_cache::OffsetCache;
use super::parse::{NamedArguments, Parser, finish};
use super::tree::{ABSENT, Call, EvalResult, Operator, PreparedArguments};
use super::{Context, ExprValue, Expression, check_variable_definition};
use crate::Error;
use crate::interrupt::count_work;
use crate::memory::LimitedArrayBuilder;

static MAP: NamedArguments = NamedArguments {
    not_document: 16878,
    unknown: 16879,
    names: &[("input", Some(16880)), ("as", None), ("in", Some(16882))],
};

static FILTER: NamedArguments = NamedArguments {
    not_document: 28646,
    unknown: 28647,
    names: &[
        ("input", Some(28648)),
        ("as", None),
        ("cond", Some(28650)),
        ("limit", None),
    ],
};

static REDUCE: NamedArguments = NamedArguments {
    not_document: 40075,
    unknown: 40076,
    names: &[
        ("input", Some(40077)),
        ("initialValue", Some(40078)),
        ("in", Some(40079)),
    ],
};

/// Returns the variable name in `as`, by default `this`.
fn element_name(name: Option<ValueRef<'_>>) -> Result<&str, Error> {
    let name = match name {
        None => "this",
        Some(ValueRef::String(name)) => name,
        Some(other) => {
            let found = other.type_of().name();
            return Err(Error::new(
                16866,
                format!("'as' must be a string, found {found}"),
            ));
        }
    };
    check_variable_definition(name)?;
    Ok(name)
}

fn parse(value: Option<ValueRef<'_>>, parser: &Parser) -> Result<Expression, Error> {
    value.map_or(Ok(ABSENT.clone()), |value| parser.parse(value))
}

/// Parses `$map`. Arguments: the input, the body.
pub(crate) fn parse_map(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let values = MAP.values(operator.name, operand)?;
    let mut values = values.into_iter();
    let (input, name, body) = (values.next(), values.next(), values.next());
    let input = parse(input.flatten(), parser)?;
    let (inner, frame) = parser.define(element_name(name.flatten())?);
    let arguments = vec![input, parse(body.flatten(), &inner)?];
    finish(Call::new(operator, arguments).with_frames(vec![frame]))
}

pub(crate) fn map<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let input = call.value(0, context)?;
    if input.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let mut mapped = LimitedArrayBuilder::new(call.operator.name);
    let offset_cache = OffsetCache::new(call.frame(0), context.offset_cache);
    let context = context.with_offset_cache(&offset_cache);
    for element in array(&input, 16883, "input to $map")? {
        let frame = Frame {
            number: call.frame(0),
            value: Some(element),
            next: context.frames,
        };
        mapped.push(
            call.argument(1)
                .evaluate(&context.with_frame(&frame))?
                .or_null(),
        )?;
    }
    Ok(mapped.finish().into())
}

/// Parses `$filter`. Arguments: the input, the condition, the limit.
pub(crate) fn parse_filter(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let values = FILTER.values(operator.name, operand)?;
    let mut values = values.into_iter();
    let (input, name, condition) = (values.next(), values.next(), values.next());
    let input = parse(input.flatten(), parser)?;
    let (inner, frame) = parser.define(element_name(name.flatten())?);
    let condition = parse(condition.flatten(), &inner)?;
    let limit = parse(values.next().flatten(), parser)?;
    finish(Call::new(operator, vec![input, condition, limit]).with_frames(vec![frame]))
}

pub(crate) fn filter<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let input = call.value(0, context)?;
    if input.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let elements = array(&input, 28651, "input to $filter")?;
    let limit = filter_limit(&call.value(2, context)?)?;
    let mut result = LimitedArrayBuilder::new(call.operator.name);
    let offset_cache = OffsetCache::new(call.frame(0), context.offset_cache);
    let context = context.with_offset_cache(&offset_cache);
    for element in elements {
        let frame = Frame {
            number: call.frame(0),
            value: Some(element),
            next: context.frames,
        };
        let condition = call.argument(1).evaluate(&context.with_frame(&frame))?;
        if condition.is_truthy() {
            result.push(element)?
        } else {
            count_work(1)?
        }
        if result.count() == limit {
            break;
        }
    }
    Ok(result.finish().into())
}

/// Returns the limit of `$filter`. There is none if the value is null or missing.
fn filter_limit(limit: &ExprValue<'_>) -> Result<usize, Error> {
    if limit.is_nullish() {
        return Ok(usize::MAX);
    }
    let argument = IntArgument {
        name: "$filter: limit",
        not_number: 327391,
        not_int: 327391,
    };
    let limit = argument.read(limit)?;
    match usize::try_from(limit) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(Error::new(327392, "$filter: limit must be greater than 0")),
    }
}

/// Parses `$reduce`. Arguments: the input, the initial value, the body.
pub(crate) fn parse_reduce(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let values = REDUCE.values(operator.name, operand)?;
    let mut values = values.into_iter();
    let input = parse(values.next().flatten(), parser)?;
    let initial = parse(values.next().flatten(), parser)?;
    let (inner, this) = parser.define("this");
    let (inner, value) = inner.define("value");
    let body = parse(values.next().flatten(), &inner)?;
    let appends = is_appending(&body, value);
    let mut call = Call::new(operator, vec![input, initial, body]).with_frames(vec![this, value]);
    call.prepared = match call.prepared {
        PreparedArguments::Frames(frames) if appends => PreparedArguments::AppendingFrames(frames),
        prepared => prepared,
    };
    finish(call)
}

/// Returns `true` if the body is a `$concatArrays` of the accumulated value and of arguments that
/// do not read it.
fn is_appending(body: &Expression, value: u32) -> bool {
    match body.as_call() {
        Some(("$concatArrays", [first, appended @ ..])) => {
            first.is_local(value) && !appended.iter().any(|one| one.reads_local(value))
        }
        _ => false,
    }
}

pub(crate) fn reduce<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let input = call.value(0, context)?;
    if input.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let elements = array(&input, 40080, "input to $reduce")?;
    if let (PreparedArguments::AppendingFrames(_), true) = (&call.prepared, !elements.is_empty()) {
        return append(call, elements, context);
    }
    let mut value = call.value(1, context)?.into_owned();
    let offset_cache = OffsetCache::new(call.frame(0), context.offset_cache);
    let context = context.with_offset_cache(&offset_cache);
    for element in elements {
        count_work(1)?;
        let this = Frame {
            number: call.frame(0),
            value: Some(element),
            next: context.frames,
        };
        let accumulated = Frame {
            number: call.frame(1),
            value: value.as_ref(),
            next: Some(&this),
        };
        value = call
            .argument(2)
            .evaluate(&context.with_frame(&accumulated))?
            .into_owned();
        check_depth(&value)?;
    }
    Ok(value)
}

/// Evaluates a `$reduce` that only appends, without copying the accumulated array for each element.
fn append<'a>(call: &'a Call, elements: Array<'_>, context: &Context<'a>) -> EvalResult<'a> {
    let Some((name, [_, appended @ ..])) = call.argument(2).as_call() else {
        return Err(Bug::new("a $reduce that appends does not call an operator").into());
    };
    let mut all = LimitedArrayBuilder::new(name);
    let initial = call.value(1, context)?;
    if initial.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    all.extend(array(&initial, 28664, "$concatArrays' argument")?)?;
    let offset_cache = OffsetCache::new(call.frame(0), context.offset_cache);
    let context = context.with_offset_cache(&offset_cache);
    for element in elements {
        let this = Frame {
            number: call.frame(0),
            value: Some(element),
            next: context.frames,
        };
        for argument in appended {
            let value = argument.evaluate(&context.with_frame(&this))?;
            if value.is_nullish() {
                return Ok(ExprValue::NULL);
            }
            check_depth(&value)?;
            all.extend(array(&value, 28664, "$concatArrays' argument")?)?;
        }
        count_work(1)?;
    }
    Ok(all.finish().into())
}

/// Maximum nesting depth of a value, as for stored documents.
const DEPTH_MAX: usize = 200;

/// Fails if a value nests too deeply. Each iteration of a `$reduce` can add a level.
fn check_depth(value: &ExprValue<'_>) -> Result<(), Error> {
    if value.as_ref().is_none_or(|value| fits(value, DEPTH_MAX)) {
        return Ok(());
    }
    let message = format!("$reduce created a value with more than {DEPTH_MAX} levels");
    Err(Error::new(15, message))
}

fn fits(value: ValueRef<'_>, levels: usize) -> bool {
    let inner = match value {
        ValueRef::Document(document) => document,
        ValueRef::Array(array) => array.as_document(),
        _ => return true,
    };
    levels > 0 && inner.iter().all(|(_, value)| fits(value, levels - 1))
}
