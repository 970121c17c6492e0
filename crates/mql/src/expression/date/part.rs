//! `$year`, `$month`, `$dayOfMonth`, `$hour` and the other operators that return one part of a
//! date.

use windrow_document::ValueRef;

use super::argument::{prepare, zone_argument_or};
use super::calendar::{Local, iso_weekday, weekday};
use super::millis;
use crate::Error;
use crate::expression::parse::{NamedArguments, Parser, finish};
use crate::expression::tree::{Call, EvalResult, Operator};
use crate::expression::{Context, ExprValue, Expression};

static PART: NamedArguments = NamedArguments {
    not_document: 40535,
    unknown: 40535,
    names: &[("date", Some(40539)), ("timezone", None)],
};

/// Parses a date, `[date]` or `{date: …, timezone: …}`. Arguments: the date, the time zone.
pub(crate) fn parse(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let by_name = operand.as_document().is_some_and(|document| {
        document
            .first()
            .is_none_or(|(name, _)| !name.starts_with('$'))
    });
    let arguments = if by_name {
        PART.parse(operator.name, operand, parser)?
    } else {
        parser.list(operator.name, operand, 1..=1, 40536)?
    };
    let mut call = Call::new(operator, arguments);
    prepare(&mut call)?;
    finish(call)
}

/// Returns the local time of the date in its time zone, or `None` if one of them is null.
fn local<'a>(call: &'a Call, context: &Context<'a>) -> Result<Option<Local>, Error> {
    let date = call.value(0, context)?;
    if date.is_nullish() {
        return Ok(None);
    }
    let moment = millis(&date)?;
    let zone = zone_argument_or(call, 1, context, 40533)?;
    Ok(zone.map(|zone| zone.local(moment)))
}

fn part<'a>(call: &'a Call, context: &Context<'a>, get: fn(&Local) -> i64) -> EvalResult<'a> {
    let local = local(call, context)?;
    Ok(local.map_or(ExprValue::NULL, |local| (get(&local) as i32).into()))
}

pub(crate) fn year<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, |local| local.date().year)
}

pub(crate) fn month<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, |local| local.date().month)
}

pub(crate) fn day_of_month<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, |local| local.date().day)
}

pub(crate) fn day_of_year<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, |local| local.date().day_of_year())
}

pub(crate) fn day_of_week<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, |local| weekday(local.days()) + 1)
}

pub(crate) fn hour<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, Local::hour)
}

pub(crate) fn minute<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, Local::minute)
}

pub(crate) fn second<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, Local::second)
}

pub(crate) fn millisecond<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, Local::millisecond)
}

pub(crate) fn week<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, Local::week)
}

pub(crate) fn iso_week<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, |local| local.iso_week().week)
}

pub(crate) fn iso_day_of_week<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    part(call, context, |local| iso_weekday(local.days()))
}

/// `$isoWeekYear`. It is a long, unlike the other parts.
pub(crate) fn iso_week_year<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let local = local(call, context)?;
    Ok(local.map_or(ExprValue::NULL, |local| local.iso_week().year.into()))
}

fn timestamp<'a>(
    call: &'a Call,
    context: &Context<'a>,
    code: i32,
    get: fn(windrow_document::Timestamp) -> u32,
) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    match value.or_null() {
        ValueRef::Null | ValueRef::Undefined => Ok(ExprValue::NULL),
        ValueRef::Timestamp(timestamp) => Ok(i64::from(get(timestamp)).into()),
        other => {
            let (name, found) = (call.operator.name, other.type_of().name());
            let message = format!("Argument to {name} must be a timestamp, but is {found}");
            Err(Error::new(code, message))
        }
    }
}

pub(crate) fn ts_second<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    timestamp(call, context, 5687301, |timestamp| timestamp.seconds)
}

pub(crate) fn ts_increment<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    timestamp(call, context, 5687302, |timestamp| timestamp.increment)
}
