//! `$dateToParts`.

use windrow_document::{DocumentBuilder, ValueRef};

use super::argument::zone_argument;
use super::calendar::{Local, iso_weekday};
use super::millis;
use crate::Error;
use crate::expression::parse::NamedArguments;
use crate::expression::tree::{Call, EvalResult};
use crate::expression::{Context, ExprValue};

pub(crate) static ARGUMENTS: NamedArguments = NamedArguments {
    not_document: 40524,
    unknown: 40520,
    names: &[("date", Some(40522)), ("timezone", None), ("iso8601", None)],
};

pub(crate) fn date_to_parts<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let date = call.value(0, context)?;
    let Some(zone) = zone_argument(call, 1, context)? else {
        return Ok(ExprValue::NULL);
    };
    let iso = match call.value(2, context)?.as_ref() {
        _ if call.argument(2).is_absent() => false,
        None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(ExprValue::NULL),
        Some(ValueRef::Bool(flag)) => flag,
        Some(other) => {
            let message = format!(
                "iso8601 must evaluate to a bool, found {}",
                other.type_of().name()
            );
            return Err(Error::new(40521, message));
        }
    };
    if date.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    Ok(parts(&zone.local(millis(&date)?), iso))
}

fn parts<'a>(local: &Local, iso: bool) -> ExprValue<'a> {
    let mut parts = DocumentBuilder::new();
    let mut add = |name: &str, number: i64| parts.append(name, ValueRef::Int32(number as i32));
    if iso {
        let week = local.iso_week();
        add("isoWeekYear", week.year);
        add("isoWeek", week.week);
        add("isoDayOfWeek", iso_weekday(local.days()));
    } else {
        let date = local.date();
        add("year", date.year);
        add("month", date.month);
        add("day", date.day);
    }
    add("hour", local.hour());
    add("minute", local.minute());
    add("second", local.second());
    add("millisecond", local.millisecond());
    parts.finish().into()
}
