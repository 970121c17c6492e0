//! The proleptic Gregorian calendar on 64-bit milliseconds.
//!
//! Source of the conversions between days and dates: Howard Hinnant, "chrono-Compatible Low-Level
//! Date Algorithms".

pub(crate) const SECOND_MS: i64 = 1000;
pub(crate) const MINUTE_MS: i64 = 60 * SECOND_MS;
pub(crate) const HOUR_MS: i64 = 60 * MINUTE_MS;
pub(crate) const DAY_MS: i64 = 24 * HOUR_MS;

/// A civil date. Months and days start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The year. It may be negative or above 9999.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
}

/// A week of ISO 8601. Weeks start on Monday, and the first week of a year contains its first
/// Thursday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IsoWeek {
    pub year: i64,
    pub week: i64,
}

/// A moment in the local time of a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// Milliseconds from 1970-01-01 00:00 in local time.
    pub millis: i64,
    /// The offset of local time from UTC in seconds, positive east of Greenwich.
    pub offset: i64,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Returns the English name of a month.
///
/// # Panics
/// Panics if the month is not from 1 to 12.
pub(crate) fn month_name(month: i64) -> &'static str {
    let index = usize::try_from(month - 1).ok();
    match index.and_then(|index| MONTHS.get(index)) {
        Some(name) => name,
        None => unreachable!("there is no month {month}"),
    }
}

/// Returns the month whose name starts with these letters. At least three letters are needed.
pub(crate) fn month_from_name(name: &str) -> Option<i64> {
    let name = name.to_ascii_lowercase();
    let found = MONTHS
        .iter()
        .position(|month| name.len() >= 3 && month.to_ascii_lowercase().starts_with(&name));
    match name.as_str() {
        "sept" => Some(9),
        _ => found.map(|index| index as i64 + 1),
    }
}

pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Date {
    /// Returns the date for any month and day. Values out of range carry over to the next unit.
    pub fn normalized(year: i64, month: i64, day: i64) -> Date {
        Date::from_days(Date::days_from_civil(year, month, day))
    }

    /// Returns `true` if the month and the day exist.
    pub fn is_valid(self) -> bool {
        (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
    }

    /// Returns the number of days since 1970-01-01.
    pub fn days(self) -> i64 {
        Date::days_from_civil(self.year, self.month, self.day)
    }

    fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
        let (year, month) = (
            year + (month - 1).div_euclid(12),
            (month - 1).rem_euclid(12) + 1,
        );
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = (month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// Returns the date of a number of days since 1970-01-01.
    pub fn from_days(days: i64) -> Date {
        let days = days + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Date { year, month, day }
    }

    /// Returns the day of the year, from 1.
    pub fn day_of_year(self) -> i64 {
        self.days()
            - Date {
                year: self.year,
                month: 1,
                day: 1,
            }
            .days()
            + 1
    }
}

/// Returns the day of the week. 0 is Sunday.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// Returns the ISO day of the week. 1 is Monday.
pub(crate) fn iso_weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

impl IsoWeek {
    pub fn from_days(days: i64) -> IsoWeek {
        let thursday = days + 4 - iso_weekday(days);
        let date = Date::from_days(thursday);
        IsoWeek {
            year: date.year,
            week: (date.day_of_year() - 1) / 7 + 1,
        }
    }

    /// Returns the Monday of the week, as a number of days since 1970. Weeks out of range carry
    /// over to other years.
    pub fn first_day(self) -> i64 {
        let january_4 = Date {
            year: self.year,
            month: 1,
            day: 4,
        }
        .days();
        january_4 + 1 - iso_weekday(january_4) + (self.week - 1) * 7
    }
}

impl Local {
    /// Creates the local time at a moment in UTC, with an offset in seconds.
    pub fn new(utc_millis: i64, offset: i64) -> Local {
        Local {
            millis: utc_millis.saturating_add(offset * SECOND_MS),
            offset,
        }
    }

    pub fn days(&self) -> i64 {
        self.millis.div_euclid(DAY_MS)
    }

    pub fn date(&self) -> Date {
        Date::from_days(self.days())
    }

    pub fn iso_week(&self) -> IsoWeek {
        IsoWeek::from_days(self.days())
    }

    /// Returns the week of the year. Weeks start on Sunday. Days before the first Sunday are in
    /// week 0.
    pub fn week(&self) -> i64 {
        (self.date().day_of_year() - 1 + 7 - weekday(self.days())) / 7
    }

    pub fn millis_of_day(&self) -> i64 {
        self.millis.rem_euclid(DAY_MS)
    }

    pub fn hour(&self) -> i64 {
        self.millis_of_day() / HOUR_MS
    }

    pub fn minute(&self) -> i64 {
        self.millis_of_day() / MINUTE_MS % 60
    }

    pub fn second(&self) -> i64 {
        self.millis_of_day() / SECOND_MS % 60
    }

    pub fn millisecond(&self) -> i64 {
        self.millis_of_day() % SECOND_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_convert_to_dates_and_back() {
        for days in (-800_000..3_000_000).step_by(367) {
            let date = Date::from_days(days);
            assert!(date.is_valid(), "{date:?}");
            assert_eq!(date.days(), days, "{date:?}");
        }
        assert_eq!(
            Date::from_days(0),
            Date {
                year: 1970,
                month: 1,
                day: 1
            }
        );
        assert_eq!(
            Date::normalized(2017, 14, 0),
            Date {
                year: 2018,
                month: 1,
                day: 31
            }
        );
    }

    #[test]
    fn iso_weeks_start_on_monday() {
        let cases = [
            ((2016, 1, 4), (2016, 1), 1),
            ((2020, 12, 31), (2020, 53), 4),
            ((1, 1, 1), (1, 1), 1),
            ((2021, 1, 3), (2020, 53), 7),
        ];
        for ((year, month, day), (iso_year, week), weekday) in cases {
            let days = Date { year, month, day }.days();
            let expected = IsoWeek {
                year: iso_year,
                week,
            };
            assert_eq!(IsoWeek::from_days(days), expected);
            assert_eq!(iso_weekday(days), weekday);
            assert_eq!(expected.first_day() + weekday - 1, days);
        }
    }
}
