//! Dates and ranges of dates: `2024`, `2024-03..2024-05`, `today`, `P7D`.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _};

/// A range of times in milliseconds since 1970-01-01 UTC. Both ends are optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRange {
    /// The first millisecond.
    pub from_ms: Option<i64>,
    /// The millisecond after the last one.
    pub to_ms: Option<i64>,
}

/// The current time and the time zone, by which dates and words such as `today` are resolved.
#[derive(Debug, Clone)]
pub struct TimeContext {
    now: Timestamp,
    zone: TimeZone,
}

/// A range of days that a date, a month or a year denotes. The second day is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Days {
    first: Date,
    end: Date,
}

impl DateRange {
    /// Parses a date (`2024`, `2024-03`, `2024-03-09`), or two with `..` between them, one of which
    /// can be missing. Returns `None` for other texts.
    ///
    /// ```
    /// use windrow_file_query::{DateRange, TimeContext};
    ///
    /// let range = DateRange::parse("1970-01-02..", &TimeContext::utc(0)).unwrap();
    /// assert_eq!((range.from_ms, range.to_ms), (Some(86_400_000), None));
    /// ```
    pub fn parse(text: &str, times: &TimeContext) -> Option<DateRange> {
        parse_range(text, times)
    }
}

impl TimeContext {
    /// Returns the current time and the time zone of this machine.
    pub fn system() -> TimeContext {
        TimeContext {
            now: Timestamp::now(),
            zone: TimeZone::system(),
        }
    }

    /// Creates a context with this current time, in UTC.
    pub fn utc(now_ms: i64) -> TimeContext {
        TimeContext {
            now: Timestamp::from_millisecond(now_ms).unwrap_or_default(),
            zone: TimeZone::UTC,
        }
    }

    /// Formats a time in milliseconds since 1970-01-01 UTC as `2024-03-09 14:05:00`.
    ///
    /// ```
    /// use windrow_file_query::TimeContext;
    ///
    /// assert_eq!(TimeContext::utc(0).format_ms(86_400_000), "1970-01-02 00:00:00");
    /// ```
    pub fn format_ms(&self, ms: i64) -> String {
        let time = Timestamp::from_millisecond(ms).unwrap_or_default();
        let time = self.zone.to_datetime(time);
        format!(
            "{} {:02}:{:02}:{:02}",
            time.date(),
            time.hour(),
            time.minute(),
            time.second()
        )
    }

    /// Returns the start of a year, in milliseconds since 1970-01-01 UTC.
    ///
    /// ```
    /// use windrow_file_query::TimeContext;
    ///
    /// assert_eq!(TimeContext::utc(0).start_of_year_ms(1971), Some(365 * 86_400_000));
    /// ```
    pub fn start_of_year_ms(&self, year: i16) -> Option<i64> {
        self.start_ms(new_date(year, 1, 1)?)
    }

    /// Returns the year of a time in milliseconds since 1970-01-01 UTC.
    pub fn year_of_ms(&self, ms: i64) -> Option<i16> {
        let moment = Timestamp::from_millisecond(ms).ok()?;
        Some(self.zone.to_datetime(moment).year())
    }

    fn today(&self) -> Date {
        self.zone.to_datetime(self.now).date()
    }

    fn start_ms(&self, day: Date) -> Option<i64> {
        let start = day.to_zoned(self.zone.clone()).ok()?;
        Some(start.timestamp().as_millisecond())
    }
}

/// Parses the range of `date:VALUE`: a date, or two with `..` or `/` between them, one of which can
/// be missing. One of the two can be a period such as `P2M`, which is measured from the other one.
/// A period alone ends now.
pub fn parse_range(text: &str, times: &TimeContext) -> Option<DateRange> {
    let parts = text.split_once("..").or_else(|| text.split_once('/'));
    let (from, to) = match parts {
        Some(("", "")) => return None,
        Some((from, "")) => (Some(first_day(from, times)?), None),
        Some(("", to)) => (None, Some(parse_days(to, times)?.end)),
        Some((from, to)) => match (parse_period(from), parse_period(to)) {
            (None, None) => (
                Some(parse_days(from, times)?.first),
                Some(parse_days(to, times)?.end),
            ),
            (None, Some(period)) => {
                let first = parse_days(from, times)?.first;
                (Some(first), Some(first.checked_add(period).ok()?))
            }
            (Some(period), None) => {
                let end = parse_days(to, times)?.end;
                (Some(end.checked_sub(period).ok()?), Some(end))
            }
            (Some(_), Some(_)) => return None,
        },
        None => match parse_period(text) {
            Some(_) => (Some(first_day(text, times)?), None),
            None => {
                let days = parse_days(text, times)?;
                (Some(days.first), Some(days.end))
            }
        },
    };
    let ms = |day: Option<Date>| match day {
        Some(day) => times.start_ms(day).map(Some),
        None => Some(None),
    };
    Some(DateRange {
        from_ms: ms(from)?,
        to_ms: ms(to)?,
    })
}

/// Returns the start of a range without an end: the first day of a date, or the day at the start of
/// a period that ends now.
fn first_day(text: &str, times: &TimeContext) -> Option<Date> {
    match parse_period(text) {
        Some(period) => times.today().checked_sub(period).ok(),
        None => Some(parse_days(text, times)?.first),
    }
}

/// Parses the range of `date<VALUE` and of the other comparisons.
pub fn parse_comparison(operator: &str, text: &str, times: &TimeContext) -> Option<DateRange> {
    let days = parse_days(text, times)?;
    let (first, end) = (times.start_ms(days.first)?, times.start_ms(days.end)?);
    let (from_ms, to_ms) = match operator {
        "<" => (None, Some(first)),
        "<=" => (None, Some(end)),
        ">" => (Some(end), None),
        ">=" => (Some(first), None),
        _ => return None,
    };
    Some(DateRange { from_ms, to_ms })
}

/// Parses a period `P1Y2M3W4D` (ISO 8601). Case is ignored.
fn parse_period(text: &str) -> Option<Span> {
    let mut rest = text.strip_prefix(['P', 'p'])?;
    let mut span = Span::new();
    while !rest.is_empty() {
        let digits = rest.len()
            - rest
                .trim_start_matches(|it: char| it.is_ascii_digit())
                .len();
        let count: i64 = rest.get(..digits)?.parse().ok()?;
        let unit = rest.get(digits..)?.chars().next()?;
        span = match unit.to_ascii_uppercase() {
            'Y' => span.try_years(count),
            'M' => span.try_months(count),
            'W' => span.try_weeks(count),
            'D' => span.try_days(count),
            _ => return None,
        }
        .ok()?;
        rest = rest.get(digits + unit.len_utf8()..)?;
    }
    (!span.is_zero()).then_some(span)
}

/// Parses `2024`, `2024-03`, `2024-03-09`, `today` or `yesterday`.
fn parse_days(text: &str, times: &TimeContext) -> Option<Days> {
    let (first, length) = match text.to_ascii_lowercase().as_str() {
        "today" => (times.today(), 1.day()),
        "yesterday" => (times.today().yesterday().ok()?, 1.day()),
        text => {
            let numbers: Option<Vec<i16>> = text.split('-').map(parse_digits).collect();
            match numbers?.as_slice() {
                [year] => (new_date(*year, 1, 1)?, 1.year()),
                [year, month] => (new_date(*year, *month, 1)?, 1.month()),
                [year, month, day] => (new_date(*year, *month, *day)?, 1.day()),
                _ => return None,
            }
        }
    };
    Some(Days {
        first,
        end: first.checked_add(length).ok()?,
    })
}

fn parse_digits(text: &str) -> Option<i16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

fn new_date(year: i16, month: i16, day: i16) -> Option<Date> {
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn times() -> TimeContext {
        let noon = date(2024, 3, 10).at(12, 0, 0, 0).to_zoned(TimeZone::UTC);
        TimeContext::utc(noon.unwrap().timestamp().as_millisecond())
    }

    fn day(text: &str) -> i64 {
        let day: Date = text.parse().unwrap();
        times().start_ms(day).unwrap()
    }

    fn check(found: Option<DateRange>, expected: Option<(Option<&str>, Option<&str>)>) {
        let expected = expected.map(|(from, to)| DateRange {
            from_ms: from.map(day),
            to_ms: to.map(day),
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn ranges_are_parsed() {
        let cases = [
            ("2024", Some((Some("2024-01-01"), Some("2025-01-01")))),
            ("2024-02", Some((Some("2024-02-01"), Some("2024-03-01")))),
            ("2024-02-29", Some((Some("2024-02-29"), Some("2024-03-01")))),
            ("2023..2024", Some((Some("2023-01-01"), Some("2025-01-01")))),
            (
                "2023-05/2024-02-03",
                Some((Some("2023-05-01"), Some("2024-02-04"))),
            ),
            ("2024..", Some((Some("2024-01-01"), None))),
            ("..2024", Some((None, Some("2025-01-01")))),
            (
                "2024-01-31/P1M",
                Some((Some("2024-01-31"), Some("2024-02-29"))),
            ),
            ("P1Y/2023", Some((Some("2023-01-01"), Some("2024-01-01")))),
            ("p2w", Some((Some("2024-02-25"), None))),
            ("P1D..", Some((Some("2024-03-09"), None))),
            ("today", Some((Some("2024-03-10"), Some("2024-03-11")))),
            ("Yesterday", Some((Some("2024-03-09"), Some("2024-03-10")))),
            ("..", None),
            ("/", None),
            ("", None),
            ("P", None),
            ("P1Y/P1Y", None),
            ("2024-13", None),
            ("2023-02-29", None),
            ("24-1-1-1", None),
            ("+2024", None),
            ("P99999999999Y", None),
        ];
        for (text, expected) in cases {
            check(parse_range(text, &times()), expected);
        }
    }

    /// Years were counted in UTC, and searched in the time zone of the machine.
    #[test]
    fn years_begin_in_the_time_zone_of_dates() {
        let zone = TimeZone::fixed(jiff::tz::offset(13));
        let times = TimeContext { zone, ..times() };
        let start = times.start_of_year_ms(2024).unwrap();
        let year = parse_range("2024", &times).unwrap();
        assert_eq!(year.from_ms, Some(start));
        assert_eq!(start, day("2024-01-01") - 13 * 3_600_000);
        let years = [start - 1, start].map(|ms| times.year_of_ms(ms));
        assert_eq!(years, [Some(2023), Some(2024)]);
    }

    #[test]
    fn comparisons_count_whole_days() {
        let cases = [
            ("<", "2024", Some((None, Some("2024-01-01")))),
            ("<=", "2024", Some((None, Some("2025-01-01")))),
            (">", "2024-02", Some((Some("2024-03-01"), None))),
            (">=", "today", Some((Some("2024-03-10"), None))),
            (">=", "P1D", None),
        ];
        for (operator, text, expected) in cases {
            check(parse_comparison(operator, text, &times()), expected);
        }
    }
}
