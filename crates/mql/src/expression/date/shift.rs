//! `$dateAdd`, `$dateSubtract`, `$dateDiff`, `$dateTrunc`. Units from a day on follow the calendar
//! of the time zone. Smaller units are durations.

use windrow_document::ValueRef;

use super::argument::zone_argument;
use super::calendar::{DAY_MS, Date, Local, days_in_month, iso_weekday};
use super::millis;
use super::unit::{Unit, weekday_from_value};
use super::zone::Zone;
use crate::Error;
use crate::expression::parse::NamedArguments;
use crate::expression::tree::{Call, EvalResult};
use crate::expression::{Context, ExprValue};

pub(crate) static ADD: NamedArguments = NamedArguments {
    not_document: 5166400,
    unknown: 5166401,
    names: &[
        ("startDate", Some(5166402)),
        ("timezone", None),
        ("unit", Some(5166402)),
        ("amount", Some(5166402)),
    ],
};

pub(crate) static DIFF: NamedArguments = NamedArguments {
    not_document: 5166301,
    unknown: 5166302,
    names: &[
        ("startDate", Some(5166303)),
        ("timezone", None),
        ("unit", Some(5166305)),
        ("endDate", Some(5166304)),
        ("startOfWeek", None),
    ],
};

pub(crate) static TRUNC: NamedArguments = NamedArguments {
    not_document: 5439007,
    unknown: 5439008,
    names: &[
        ("date", Some(5439009)),
        ("timezone", None),
        ("unit", Some(5439010)),
        ("binSize", None),
        ("startOfWeek", None),
    ],
};

/// The maximum number of years from 1970 in 64 bits of milliseconds.
const YEARS_MAX: u64 = 292_000_000;

/// Returns the milliseconds of a date argument. Fails with `code` for types that contain no date.
fn date(value: &ExprValue<'_>, code: i32) -> Result<i64, Error> {
    millis(value).map_err(|_| {
        let message = format!("requires a date, but got {}", value.type_name());
        Error::new(code, message)
    })
}

pub(crate) fn date_add<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let start = call.value(0, context)?;
    let (unit, amount) = (call.value(2, context)?, call.value(3, context)?);
    if start.is_nullish() || unit.is_nullish() || amount.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let Some(zone) = zone_argument(call, 1, context)? else {
        return Ok(ExprValue::NULL);
    };
    let name = call.operator.name;
    let start = date(&start, 5166403)?;
    let unit = Unit::from_value(&unit)?;
    let Some(amount) = amount.as_ref().and_then(ValueRef::as_whole) else {
        return Err(Error::new(
            5166405,
            format!("{name} expects integer amount of time units"),
        ));
    };
    let amount = if name == "$dateSubtract" {
        amount.checked_neg()
    } else {
        Some(amount)
    };
    match amount.and_then(|amount| add_units(start, unit, amount, &zone)) {
        Some(millis) => Ok(ValueRef::DateTime(millis).into()),
        None => Err(Error::new(5166406, format!("{name} overflowed"))),
    }
}

/// Returns a date plus an amount of units, or `None` if the result is out of range.
pub(crate) fn add_units(start: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    let local = zone.local(start);
    match unit {
        Unit::Millis(millis) => start.checked_add(amount.checked_mul(millis)?),
        Unit::Days(days) => {
            let span = amount.checked_mul(days)?.checked_mul(DAY_MS)?;
            Some(zone.utc(local.millis.checked_add(span)?))
        }
        Unit::Months(months) => {
            let date = local.date();
            let month =
                (date.year * 12 + date.month - 1).checked_add(amount.checked_mul(months)?)?;
            if month.unsigned_abs() > 12 * YEARS_MAX {
                return None;
            }
            let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
            let day = date.day.min(days_in_month(year, month));
            let days = Date { year, month, day }.days();
            Some(zone.utc(days.checked_mul(DAY_MS)? + local.millis_of_day()))
        }
    }
}

/// The argument `startOfWeek`, which is evaluated only if the unit is a week. A null is checked
/// before the other arguments are validated.
enum WeekStart<'a> {
    Default,
    /// The argument is null.
    Null,
    Value(ExprValue<'a>),
}

impl<'a> WeekStart<'a> {
    fn from_arguments(
        unit: &ExprValue<'_>,
        call: &'a Call,
        context: &Context<'a>,
    ) -> Result<WeekStart<'a>, Error> {
        let is_week = unit.as_str().and_then(Unit::parse) == Some(Unit::WEEK);
        if !is_week || call.argument(4).is_absent() {
            return Ok(WeekStart::Default);
        }
        let value = call.value(4, context)?;
        Ok(if value.is_nullish() {
            WeekStart::Null
        } else {
            WeekStart::Value(value)
        })
    }

    /// Returns the day of the week, where 1 is Monday. The default is Sunday. Fails with 5439015 or
    /// 5439016.
    fn weekday(&self) -> Result<i64, Error> {
        match self {
            WeekStart::Value(value) => weekday_from_value(value),
            WeekStart::Default | WeekStart::Null => Ok(7),
        }
    }
}

/// `$dateDiff`. The result is null if any argument is null, even if others are invalid.
pub(crate) fn date_diff<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (start, end) = (call.value(0, context)?, call.value(3, context)?);
    let unit = call.value(2, context)?;
    let week_start = WeekStart::from_arguments(&unit, call, context)?;
    let is_null = [&start, &end, &unit].into_iter().any(ExprValue::is_nullish)
        || matches!(week_start, WeekStart::Null);
    if is_null {
        return Ok(ExprValue::NULL);
    }
    let Some(zone) = zone_argument(call, 1, context)? else {
        return Ok(ExprValue::NULL);
    };
    let (start, end) = (date(&start, 5166307)?, date(&end, 5166307)?);
    let (unit, week_start) = (Unit::from_value(&unit)?, week_start.weekday()?);
    let count = |millis| boundaries(millis, unit, &zone, week_start);
    Ok(count(end).wrapping_sub(count(start)).into())
}

/// Returns the number of unit boundaries between some fixed origin and a moment.
fn boundaries(utc_millis: i64, unit: Unit, zone: &Zone, week_start: i64) -> i64 {
    let local = zone.local(utc_millis);
    match unit {
        Unit::Months(months) => {
            let date = local.date();
            (date.year * 12 + date.month - 1).div_euclid(months)
        }
        Unit::WEEK => (local.days() + 3 - (week_start - 1)).div_euclid(7),
        Unit::Days(_) => local.days(),
        // Only the part of the offset that is smaller than the unit moves its boundaries.
        Unit::Millis(millis) => {
            let part = (local.offset * 1000).rem_euclid(millis);
            utc_millis.saturating_add(part).div_euclid(millis)
        }
    }
}

/// `$dateTrunc`. The result is null if any argument is null, even if others are invalid.
pub(crate) fn date_trunc<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (moment, unit) = (call.value(0, context)?, call.value(2, context)?);
    let bin = if call.argument(3).is_absent() {
        ExprValue::from(1)
    } else {
        call.value(3, context)?
    };
    let week_start = WeekStart::from_arguments(&unit, call, context)?;
    let is_null = [&moment, &unit, &bin]
        .into_iter()
        .any(ExprValue::is_nullish)
        || matches!(week_start, WeekStart::Null);
    if is_null {
        return Ok(ExprValue::NULL);
    }
    let Some(zone) = zone_argument(call, 1, context)? else {
        return Ok(ExprValue::NULL);
    };
    let moment = date(&moment, 5166307)?;
    let (unit, bin) = (Unit::from_value(&unit)?, bin_size(&bin)?);
    match truncated(moment, unit, bin, &zone, week_start.weekday()?) {
        Some(cut) => Ok(ValueRef::DateTime(cut).into()),
        None => Err(Error::new(5976500, "$dateTrunc overflowed")),
    }
}

/// Returns the number of units in a bin.
fn bin_size(value: &ExprValue<'_>) -> Result<i64, Error> {
    match value.as_ref().and_then(ValueRef::as_whole) {
        None => {
            let message = format!(
                "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{}'",
                value.or_null()
            );
            Err(Error::new(5439017, message))
        }
        Some(bin) if bin <= 0 => {
            let message =
                format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {bin}");
            Err(Error::new(5439018, message))
        }
        Some(bin) => Ok(bin),
    }
}

/// Returns the start of the bin that contains the moment. Bins are counted from 2000-01-01 in the
/// time zone. Returns `None` if the result is out of range.
fn truncated(utc_millis: i64, unit: Unit, bin: i64, zone: &Zone, week_start: i64) -> Option<i64> {
    let local: Local = zone.local(utc_millis);
    let origin = Date {
        year: 2000,
        month: 1,
        day: 1,
    };
    let cut = |since: i64, size: i64| since.div_euclid(size).checked_mul(size);
    match unit {
        Unit::Months(months) => {
            let since = (local.date().year - origin.year) * 12 + local.date().month - 1;
            let month = cut(since, bin.checked_mul(months)?)?;
            let in_range = month.unsigned_abs() < 12 * YEARS_MAX;
            let start = in_range.then(|| Date::normalized(origin.year, month + 1, 1))?;
            Some(zone.utc(start.days().checked_mul(DAY_MS)?))
        }
        Unit::Days(days) => {
            let origin = match unit {
                Unit::WEEK => first_weekday(origin.days(), week_start),
                _ => origin.days(),
            };
            let since = cut(local.days() - origin, bin.checked_mul(days)?)?;
            Some(zone.utc(origin.checked_add(since)?.checked_mul(DAY_MS)?))
        }
        Unit::Millis(millis) => {
            let origin = zone.utc(origin.days() * DAY_MS);
            let since = cut(utc_millis.checked_sub(origin)?, bin.checked_mul(millis)?)?;
            origin.checked_add(since)
        }
    }
}

/// Returns the first day from `days` on that is this ISO day of the week.
fn first_weekday(days: i64, week_start: i64) -> i64 {
    days + (week_start - iso_weekday(days)).rem_euclid(7)
}
