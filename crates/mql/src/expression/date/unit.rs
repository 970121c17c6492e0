//! Time units and days of the week as arguments.

use super::calendar::{HOUR_MS, MINUTE_MS, SECOND_MS};
use crate::Error;
use crate::expression::ExprValue;

/// A time unit: a number of months, days or milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Months, quarters and years.
    Months(i64),
    /// Days and weeks.
    Days(i64),
    Millis(i64),
}

impl Unit {
    pub const WEEK: Unit = Unit::Days(7);

    pub fn parse(name: &str) -> Option<Unit> {
        Some(match name {
            "year" => Unit::Months(12),
            "quarter" => Unit::Months(3),
            "month" => Unit::Months(1),
            "week" => Unit::WEEK,
            "day" => Unit::Days(1),
            "hour" => Unit::Millis(HOUR_MS),
            "minute" => Unit::Millis(MINUTE_MS),
            "second" => Unit::Millis(SECOND_MS),
            "millisecond" => Unit::Millis(1),
            _ => return None,
        })
    }

    /// Parses a unit argument.
    ///
    /// # Errors
    ///
    /// - 5439013: not a string.
    /// - 9: an unknown unit.
    pub fn from_value(value: &ExprValue<'_>) -> Result<Unit, Error> {
        let Some(name) = value.as_str() else {
            let message = format!(
                "requires 'unit' to be a string, but got {}",
                value.type_name()
            );
            return Err(Error::new(5439013, message));
        };
        Unit::parse(name)
            .ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {name}")))
    }
}

/// Parses a day of the week, such as "mon" or "Monday", where 1 is Monday. Fails with 5439015 if
/// the value is not a string, and with 5439016 if the day is unknown.
pub(crate) fn weekday_from_value(value: &ExprValue<'_>) -> Result<i64, Error> {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let Some(name) = value.as_str() else {
        let message = format!(
            "requires 'startOfWeek' to be a string, but got {}",
            value.type_name()
        );
        return Err(Error::new(5439015, message));
    };
    let lower = name.to_ascii_lowercase();
    let found = DAYS
        .iter()
        .position(|day| *day == lower || day.get(..3) == Some(lower.as_str()));
    match found {
        Some(index) => Ok(index as i64 + 1),
        None => {
            let message = format!("unknown day of week value: {name}");
            Err(Error::new(5439016, message))
        }
    }
}
