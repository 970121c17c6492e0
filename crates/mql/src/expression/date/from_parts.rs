//! `$dateFromParts`.

use windrow_document::ValueRef;

use super::argument::{prepare_with, zone_argument};
use super::calendar::{DAY_MS, Date, HOUR_MS, IsoWeek, MINUTE_MS, SECOND_MS};
use crate::Error;
use crate::expression::parse::NamedArguments;
use crate::expression::tree::{Call, EvalResult};
use crate::expression::{Context, ExprValue};

pub(crate) static ARGUMENTS: NamedArguments = NamedArguments {
    not_document: 40519,
    unknown: 40518,
    names: &[
        ("year", None),
        ("month", None),
        ("day", None),
        ("isoWeekYear", None),
        ("isoWeek", None),
        ("isoDayOfWeek", None),
        ("hour", None),
        ("minute", None),
        ("second", None),
        ("millisecond", None),
        ("timezone", None),
    ],
};

const YEAR: usize = 0;
const ISO_WEEK_YEAR: usize = 3;
const HOUR: usize = 6;
const ZONE: usize = 10;

/// Checks the combination of arguments.
///
/// # Errors
///
/// - 40516: there is no year.
/// - 40489: an ISO week or day is combined with `year`.
/// - 40525: a month or day is combined with `isoWeekYear`.
pub(crate) fn prepare(call: &mut Call) -> Result<(), Error> {
    let is_present = |index: usize| !call.argument(index).is_absent();
    let (has_year, has_week_year) = (is_present(YEAR), is_present(ISO_WEEK_YEAR));
    if !has_year && !has_week_year {
        let message = "$dateFromParts requires either 'year' or 'isoWeekYear' to be present";
        return Err(Error::new(40516, message));
    }
    let (mixed, code) = if has_year {
        (ISO_WEEK_YEAR..HOUR, 40489)
    } else {
        (YEAR..ISO_WEEK_YEAR, 40525)
    };
    if mixed.into_iter().any(is_present) {
        let message = "$dateFromParts does not allow mixing natural dates with ISO dates";
        return Err(Error::new(code, message));
    }
    prepare_with(call, ZONE, None)
}

/// Evaluates a whole number. It is `default` if the argument is absent, and `None` if it is null.
fn whole<'a>(
    call: &'a Call,
    context: &Context<'a>,
    index: usize,
    default: i64,
) -> Result<Option<i64>, Error> {
    if call.argument(index).is_absent() {
        return Ok(Some(default));
    }
    let value = call.value(index, context)?;
    if value.is_nullish() {
        return Ok(None);
    }
    value
        .as_ref()
        .and_then(ValueRef::as_whole)
        .map(Some)
        .ok_or_else(|| {
            let name = ARGUMENTS.names.get(index).map_or("part", |(name, _)| name);
            let message = format!(
                "'{name}' must evaluate to an integer, found {}",
                value.type_name()
            );
            Error::new(40515, message)
        })
}

/// As [`whole`], for parts that must fit in 16 bits. Fails with 31034 otherwise.
fn short<'a>(
    call: &'a Call,
    context: &Context<'a>,
    index: usize,
    default: i64,
) -> Result<Option<i64>, Error> {
    let number = whole(call, context, index, default)?;
    if number.is_some_and(|number| i16::try_from(number).is_err()) {
        let name = ARGUMENTS.names.get(index).map_or("part", |(name, _)| name);
        let message = format!("'{name}' must evaluate to a value in the range [-32768, 32767]");
        return Err(Error::new(31034, message));
    }
    Ok(number)
}

fn check_year(year: i64, name: &str, code: i32) -> Result<(), Error> {
    if (1..=9999).contains(&year) {
        return Ok(());
    }
    let message =
        format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {year}");
    Err(Error::new(code, message))
}

pub(crate) fn date_from_parts<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let Some(days) = days(call, context)? else {
        return Ok(ExprValue::NULL);
    };
    let hour = short(call, context, HOUR, 0)?;
    let minute = short(call, context, HOUR + 1, 0)?;
    let second = whole(call, context, HOUR + 2, 0)?;
    let millisecond = whole(call, context, HOUR + 3, 0)?;
    let zone = zone_argument(call, ZONE, context)?;
    let (Some(hour), Some(minute), Some(second), Some(millisecond), Some(zone)) =
        (hour, minute, second, millisecond, zone)
    else {
        return Ok(ExprValue::NULL);
    };
    let small = days * DAY_MS + hour * HOUR_MS + minute * MINUTE_MS;
    // MongoDB computes in microseconds, so the milliseconds must not overflow there either.
    let in_range = millisecond.checked_mul(1000).is_some();
    let millis = second
        .checked_mul(SECOND_MS)
        .and_then(|millis| millis.checked_add(millisecond))
        .and_then(|millis| millis.checked_add(small));
    match millis.filter(|_| in_range) {
        Some(local) => Ok(ValueRef::DateTime(zone.utc(local)).into()),
        None => Err(Error::new(
            159,
            "'second' and 'millisecond' give a date out of range",
        )),
    }
}

/// Returns the day in either calendar, as a number of days since 1970.
fn days<'a>(call: &'a Call, context: &Context<'a>) -> Result<Option<i64>, Error> {
    let iso = call.argument(YEAR).is_absent();
    let index = if iso { ISO_WEEK_YEAR } else { YEAR };
    let year = whole(call, context, index, 1970)?;
    match year {
        Some(year) if iso => check_year(year, "isoWeekYear", 31095)?,
        Some(year) => check_year(year, "year", 40523)?,
        None => return Ok(None),
    }
    let second = short(call, context, index + 1, 1)?;
    let third = short(call, context, index + 2, 1)?;
    let (Some(year), Some(second), Some(third)) = (year, second, third) else {
        return Ok(None);
    };
    Ok(Some(if iso {
        IsoWeek { year, week: second }.first_day() + third - 1
    } else {
        Date::normalized(year, second, third).days()
    }))
}
