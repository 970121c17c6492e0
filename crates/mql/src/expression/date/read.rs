//! Parses dates, with a format or in one of the usual notations.

use super::calendar::{DAY_MS, Date, IsoWeek, month_from_name};
use super::format::{DateFormat, Item};
use super::zone::parse_offset;
use crate::Error;

/// The local time in a text, and its UTC offset if the text contains one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ParsedDate {
    pub local_millis: i64,
    /// Seconds east of UTC.
    pub offset: Option<i64>,
}

/// Error 241, ConversionFailure.
pub(crate) fn failure(text: &str) -> Error {
    Error::new(241, format!("Error parsing date string '{text}'"))
}

/// The rest of the text that is not parsed yet.
struct Reader<'t>(&'t str);

impl<'t> Reader<'t> {
    /// Parses one to `digits_max` digits.
    fn number(&mut self, digits_max: usize) -> Option<i64> {
        self.digits(1, digits_max)
    }

    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self
            .0
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        if count < least {
            return None;
        }
        self.take(count).parse().ok()
    }

    fn take(&mut self, bytes: usize) -> &'t str {
        let (front, rest) = self.0.split_at_checked(bytes).unwrap_or((self.0, ""));
        self.0 = rest;
        front
    }

    fn skip(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    fn skip_any(&mut self, characters: &[char]) {
        self.0 = self.0.trim_start_matches(characters);
    }

    fn word(&mut self) -> &'t str {
        let count = self.0.bytes().take_while(u8::is_ascii_alphabetic).count();
        self.take(count)
    }

    /// Parses one form. If it fails, the position does not change.
    fn attempt<T>(&mut self, form: impl FnOnce(&mut Reader<'t>) -> Option<T>) -> Option<T> {
        let before = self.0;
        let found = form(self);
        if found.is_none() {
            self.0 = before;
        }
        found
    }

    fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses a fraction as milliseconds. Digits after the third are ignored.
    fn fraction(&mut self, digits_max: usize) -> Option<i64> {
        let digits = self.0.bytes().take(digits_max);
        let count = digits.take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return None;
        }
        let digits = format!("{:0<3}", self.take(count));
        digits.get(..3)?.parse().ok()
    }
}

#[derive(Default)]
struct DateFields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
    offset: Option<i64>,
}

impl DateFields {
    /// Sets the date from a day of the year, where 0 is January 1. Days beyond the end are in the
    /// next year. Fails without a year.
    fn set_day_of_year(&mut self, day: i64) -> Option<()> {
        let first = Date {
            year: self.year?,
            month: 1,
            day: 1,
        };
        let date = Date::from_days(first.days() + day);
        (self.year, self.month, self.day) = (Some(date.year), Some(date.month), Some(date.day));
        Some(())
    }

    fn parsed_date(&self) -> Option<ParsedDate> {
        let in_range = (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second);
        if !in_range {
            return None;
        }
        let seconds = self.hour * 3600 + self.minute * 60 + self.second;
        let local_millis = self.days()? * DAY_MS + seconds * 1000 + self.millisecond;
        Some(ParsedDate {
            local_millis,
            offset: self.offset,
        })
    }

    /// Returns the day in one of the calendars, or `None` if both calendars are mixed or parts are
    /// missing.
    fn days(&self) -> Option<i64> {
        let iso = self.iso_year.or(self.iso_week).or(self.iso_day).is_some();
        let natural = self.year.or(self.month).or(self.day).is_some();
        match (iso, natural) {
            (true, false) => {
                let (week, day) = (self.iso_week.unwrap_or(1), self.iso_day.unwrap_or(1));
                let valid = (1..=53).contains(&week) && (1..=7).contains(&day);
                let week = IsoWeek {
                    year: self.iso_year?,
                    week,
                };
                valid.then(|| week.first_day() + day - 1)
            }
            (false, true) => {
                let date = Date {
                    year: self.year?,
                    month: self.month?,
                    day: self.day?,
                };
                date.is_valid().then(|| date.days())
            }
            _ => None,
        }
    }
}

/// Parses a text that must match the whole format.
pub(crate) fn parse_with_format(text: &str, format: &DateFormat) -> Option<ParsedDate> {
    let mut reader = Reader(text);
    let mut fields = DateFields::default();
    for item in &format.0 {
        match item {
            Item::Text(plain) => reader.skip(plain)?,
            Item::Letter(letter) => read_letter(*letter, &mut reader, &mut fields)?,
        }
    }
    if reader.is_at_end() {
        fields.parsed_date()
    } else {
        None
    }
}

fn read_letter(letter: char, reader: &mut Reader<'_>, fields: &mut DateFields) -> Option<()> {
    match letter {
        'Y' => fields.year = Some(reader.digits(4, 4)?),
        'G' => fields.iso_year = Some(reader.number(4)?),
        'm' => fields.month = Some(reader.number(2)?),
        'd' => fields.day = Some(reader.number(2)?),
        'j' => fields.set_day_of_year(reader.number(3)?)?,
        'b' | 'B' => fields.month = Some(month_from_name(reader.word())?),
        'H' => fields.hour = reader.number(2)?,
        'M' => fields.minute = reader.number(2)?,
        'S' => fields.second = reader.number(2)?,
        'L' => fields.millisecond = reader.fraction(3)?,
        'u' => fields.iso_day = Some(reader.number(1)?),
        'V' => fields.iso_week = Some(reader.number(2)?),
        'z' => fields.offset = Some(read_zone(reader)?),
        'Z' => {
            let sign = if reader.skip("-").is_some() { -1 } else { 1 };
            let _ = reader.skip("+");
            fields.offset = Some(sign * reader.number(4)? * 60);
        }
        _ => return None,
    }
    Some(())
}

/// Parses a UTC offset: "Z", "+01:30", " GMT", "GMT+02", and the military letters "A" to "Y". Names
/// such as "America/New_York" are refused, because they have no fixed offset.
fn read_zone(reader: &mut Reader<'_>) -> Option<i64> {
    reader.skip_any(&[' ', '\t']);
    reader.attempt(|reader| {
        reader.skip("GMT")?;
        reader.0.starts_with(['+', '-']).then_some(())
    });
    if reader.0.starts_with(['+', '-']) {
        return [6, 5, 3].into_iter().find_map(|length| {
            reader.attempt(|reader| {
                let text = reader.take(length);
                parse_offset(text)
                    .filter(|_| !reader.0.starts_with(|next: char| next.is_ascii_digit()))
            })
        });
    }
    let word = reader.word().to_ascii_uppercase();
    let hours = match word.as_str() {
        "Z" | "UTC" | "GMT" | "WET" => 0,
        "CET" | "BST" => 1,
        "CEST" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        word => military_hours(word)?,
    };
    Some(hours * 3600)
}

/// Hours of a military letter: A to M without J are east of Greenwich, N to Y west of it.
fn military_hours(word: &str) -> Option<i64> {
    let [letter] = *word.as_bytes() else {
        return None;
    };
    match letter {
        b'A'..=b'I' => Some(i64::from(letter - b'A') + 1),
        b'K'..=b'M' => Some(i64::from(letter - b'K') + 10),
        b'N'..=b'Y' => Some(-(i64::from(letter - b'N') + 1)),
        _ => None,
    }
}

/// Parses the usual notations: ISO 8601 with or without time and offset, "07/04/2017", "July 4th,
/// 2017 12:39:30", "4 Jul 2017". Relative dates, times without a date and single years are not
/// accepted.
pub(crate) fn parse_any_notation(text: &str) -> Option<ParsedDate> {
    let mut reader = Reader(text.trim());
    let mut fields = DateFields::default();
    skip_weekday(&mut reader);
    read_date(&mut reader, &mut fields)?;
    let separated = reader
        .attempt(|reader| reader.skip("T").or_else(|| reader.skip("t")))
        .is_some();
    reader.skip_any(&[' ', ',']);
    if !reader.is_at_end() {
        let time = reader.attempt(|reader| read_time(reader, &mut fields));
        if time.is_none() && separated {
            return None;
        }
        reader.skip_any(&[' ']);
    }
    if !reader.is_at_end() {
        fields.offset = Some(read_zone(&mut reader)?);
    }
    if reader.is_at_end() {
        fields.parsed_date()
    } else {
        None
    }
}

fn skip_weekday(reader: &mut Reader<'_>) {
    const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    reader.attempt(|reader| {
        let word = reader.word().to_ascii_lowercase();
        let is_day = DAYS.iter().any(|day| word.starts_with(day));
        reader.skip_any(&[',', ' ']);
        is_day.then_some(())
    });
}

type DateForm = fn(&mut Reader<'_>) -> Option<Date>;

/// The notations of a date. The first one that matches is used.
const DATE_FORMS: [DateForm; 7] = [
    year_month_day,
    year_name_day,
    digits_alone,
    month_day_year,
    day_month_year,
    name_day_year,
    day_name_year,
];

fn read_date(reader: &mut Reader<'_>, fields: &mut DateFields) -> Option<()> {
    let mut forms = DATE_FORMS.into_iter();
    let date = forms.find_map(|form| reader.attempt(form))?;
    (fields.year, fields.month, fields.day) = (Some(date.year), Some(date.month), Some(date.day));
    Some(())
}

/// "2017-07-04", "2017/7/4".
fn year_month_day(reader: &mut Reader<'_>) -> Option<Date> {
    let year = reader.digits(4, 4)?;
    let separator = if reader.skip("-").is_some() {
        "-"
    } else {
        reader.skip("/").map(|()| "/")?
    };
    let month = reader.number(2)?;
    reader.skip(separator)?;
    let day = reader.number(2)?;
    Some(Date { year, month, day })
}

/// "2017-Jul-04".
fn year_name_day(reader: &mut Reader<'_>) -> Option<Date> {
    let year = reader.digits(4, 4)?;
    reader.skip_any(&[' ', '.', '-']);
    let month = month_from_name(reader.word())?;
    reader.skip_any(&[' ', '.', '-']);
    let day = reader.number(2)?;
    Some(Date { year, month, day })
}

/// "20170704".
fn digits_alone(reader: &mut Reader<'_>) -> Option<Date> {
    let (year, month) = (reader.digits(4, 4)?, reader.digits(2, 2)?);
    let day = reader.digits(2, 2)?;
    Some(Date { year, month, day })
}

/// "7/4/2017", "7/4/17".
fn month_day_year(reader: &mut Reader<'_>) -> Option<Date> {
    let month = reader.number(2)?;
    reader.skip("/")?;
    let day = reader.number(2)?;
    reader.skip("/")?;
    let year = reader.attempt(|reader| reader.digits(4, 4));
    let year = match year {
        Some(year) => year,
        None => reader.digits(2, 2).map(full_year)?,
    };
    Some(Date { year, month, day })
}

/// Returns the full year of two digits, from 1970 to 2069.
fn full_year(year: i64) -> i64 {
    if year < 70 { year + 2000 } else { year + 1900 }
}

/// "04-07-2017", "4.7.2017".
fn day_month_year(reader: &mut Reader<'_>) -> Option<Date> {
    let day = reader.number(2)?;
    reader.attempt(|reader| matches!(reader.take(1), "-" | ".").then_some(()))?;
    let month = reader.number(2)?;
    reader.attempt(|reader| matches!(reader.take(1), "-" | ".").then_some(()))?;
    let year = reader.digits(4, 4)?;
    Some(Date { year, month, day })
}

/// "July 4th, 2017".
fn name_day_year(reader: &mut Reader<'_>) -> Option<Date> {
    let month = month_from_name(reader.word())?;
    reader.skip_any(&[' ', '.', '-']);
    let day = reader.number(2)?;
    skip_ordinal(reader);
    reader.skip_any(&[' ', ',', '-']);
    let year = reader.digits(4, 4)?;
    Some(Date { year, month, day })
}

/// "4 Jul 2017".
fn day_name_year(reader: &mut Reader<'_>) -> Option<Date> {
    let day = reader.number(2)?;
    skip_ordinal(reader);
    reader.skip_any(&[' ', '-']);
    let month = month_from_name(reader.word())?;
    reader.skip_any(&[' ', ',', '.', '-']);
    let year = reader.digits(4, 4)?;
    Some(Date { year, month, day })
}

fn skip_ordinal(reader: &mut Reader<'_>) {
    reader.attempt(|reader| matches!(reader.word(), "st" | "nd" | "rd" | "th").then_some(()));
}

/// Parses a time: "12:10", "12:10:40.787", "12:10.40", "121040", "3:10 PM", "3pm", "noon",
/// "midnight".
fn read_time(reader: &mut Reader<'_>, fields: &mut DateFields) -> Option<()> {
    let named = reader.attempt(|reader| match reader.word().to_ascii_lowercase().as_str() {
        "noon" => Some(12),
        "midnight" => Some(0),
        _ => None,
    });
    if let Some(hour) = named {
        fields.hour = hour;
        return Some(());
    }
    fields.hour = reader.number(2)?;
    if read_half_of_day(reader, fields).is_some() {
        return Some(());
    }
    let separated = skip_separator(reader).is_some();
    fields.minute = reader.digits(2, 2)?;
    let more = if separated {
        skip_separator(reader).is_some()
    } else {
        reader.0.starts_with(|next: char| next.is_ascii_digit())
    };
    if more {
        fields.second = reader.digits(2, 2)?;
        if reader.skip(".").is_some() {
            fields.millisecond = reader.fraction(usize::MAX)?;
        }
    }
    read_half_of_day(reader, fields);
    Some(())
}

/// Parses "am" or "pm" after an hour from 1 to 12.
fn read_half_of_day(reader: &mut Reader<'_>, fields: &mut DateFields) -> Option<()> {
    reader.attempt(|reader| {
        reader.skip_any(&[' ']);
        let afternoon = match reader.word().to_ascii_lowercase().as_str() {
            "am" => 0,
            "pm" => 12,
            _ => return None,
        };
        if !(1..=12).contains(&fields.hour) {
            return None;
        }
        fields.hour = fields.hour % 12 + afternoon;
        Some(())
    })
}

fn skip_separator(reader: &mut Reader<'_>) -> Option<()> {
    reader.attempt(|reader| matches!(reader.take(1), ":" | ".").then_some(()))
}
