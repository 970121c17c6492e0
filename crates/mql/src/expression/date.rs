//! Dates: the calendar, and the operators that split, build, format, parse, shift and truncate
//! dates in any time zone.
//!
//! Reading order: [`calendar`] (days and civil dates), [`zone`] (offsets), [`part`] (`$year`, …),
//! [`from_parts`], [`to_parts`], [`format`] (`%Y-%m-%d`), [`to_text`], [`from_text`] with [`read`],
//! [`unit`] and [`shift`] (`$dateAdd`, `$dateDiff`, `$dateTrunc`).

pub(crate) mod argument;
pub(crate) mod calendar;
pub(crate) mod date_constants;
pub(crate) mod format;
pub(crate) mod from_parts;
pub(crate) mod from_text;
pub(crate) mod part;
pub(crate) mod read;
pub(crate) mod shift;
pub(crate) mod to_parts;
pub(crate) mod to_text;
pub(crate) mod unit;
pub(crate) mod zone;

use windrow_document::{Timestamp, ValueRef};

use super::ExprValue;
use crate::Error;
use calendar::Local;

/// Milliseconds since 1970 of a date, a timestamp or an ObjectId. Fails with 16006 for other types.
pub(crate) fn millis(value: &ExprValue<'_>) -> Result<i64, Error> {
    match value.or_null() {
        ValueRef::DateTime(millis) => Ok(millis),
        ValueRef::Timestamp(timestamp) => Ok(i64::from(timestamp.seconds) * 1000),
        // MongoDB reads the seconds of an ObjectId as a signed number: times from 2038 on become
        // times before 1970.
        ValueRef::ObjectId(id) => Ok(i64::from(id.seconds().cast_signed()) * 1000),
        _ => {
            let message = format!("can't convert from BSON type {} to Date", value.type_name());
            Err(Error::new(16006, message))
        }
    }
}

/// Returns a date in ISO 8601, such as "2019-07-14T05:06:07.089Z".
pub(crate) fn to_iso_text(millis: i64) -> Result<String, Error> {
    format::DateFormat::default().print(&Local::new(millis, 0))
}

/// Returns a timestamp, such as "Jan 26 00:53:20:3".
pub(crate) fn timestamp_text(timestamp: Timestamp) -> String {
    let local = Local::new(i64::from(timestamp.seconds) * 1000, 0);
    let date = local.date();
    let (month, _) = calendar::month_name(date.month).split_at(3);
    format!(
        "{month} {:2} {:02}:{:02}:{:02}:{}",
        date.day,
        local.hour(),
        local.minute(),
        local.second(),
        timestamp.increment
    )
}
