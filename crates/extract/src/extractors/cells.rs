//! Values of cells and page headers, for all versions of Excel.

use std::collections::HashMap;

/// Days from the day 0 of serial numbers, 1899-12-30, to 1970-01-01. It is right from 1900-03-01
/// on, because Excel counts a 29 February 1900 that did not exist.
const UNIX_EPOCH_SERIAL: i64 = 25_569;
/// Days from 1899-12-30 to 1904-01-01, where serial numbers of old Macintosh files start.
const SERIAL_1904: i64 = 1_462;
/// The serial number of 9999-12-31.
const SERIAL_MAX: f64 = 2_958_465.0;
const SECONDS_PER_DAY: i64 = 86_400;

/// The strings of all cells, concatenated. Many are shorter than a `String` itself.
#[derive(Debug, Default)]
pub(super) struct SharedStrings {
    text: String,
    ends: Vec<usize>,
}

impl SharedStrings {
    pub(super) fn push(&mut self, string: &str) {
        self.text.push_str(string);
        self.ends.push(self.text.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let before = index.checked_sub(1);
        let start = before.and_then(|before| self.ends.get(before));
        self.text.get(start.copied().unwrap_or(0)..end)
    }
}

/// How a number is displayed. Dates are numbers of days.
#[derive(Debug, Clone, Copy, PartialEq)]
enum NumberKind {
    Number,
    Date,
    Time,
    DateTime,
}

/// The formats of cells.
#[derive(Debug, Default)]
pub(super) struct CellFormats {
    /// By the number of the style.
    kinds: Vec<NumberKind>,
    /// By the number of the format.
    custom_kinds: HashMap<u32, NumberKind>,
    pub(super) starts_in_1904: bool,
}

impl CellFormats {
    /// Adds the next style. `format` is the number of its format.
    pub(super) fn push_style(&mut self, format: u32) {
        let custom = self.custom_kinds.get(&format).copied();
        self.kinds
            .push(custom.unwrap_or_else(|| classify_id(format)));
    }

    /// Adds a format with a code like `yyyy\-mm\-dd`.
    pub(super) fn add_format(&mut self, format: u32, code: &str) {
        self.custom_kinds.insert(format, classify_code(code));
    }

    /// Formats a number by its style.
    pub(super) fn format(&self, number: f64, style: Option<usize>) -> String {
        let kind = style.and_then(|style| self.kinds.get(style));
        let kind = kind.copied().unwrap_or(NumberKind::Number);
        format_number(number, kind, self.starts_in_1904)
    }
}

/// Returns the kind of a format that is not declared. Source: ECMA-376 part 1, 18.8.30.
fn classify_id(format: u32) -> NumberKind {
    match format {
        14..=17 => NumberKind::Date,
        18..=21 | 45..=47 => NumberKind::Time,
        22 => NumberKind::DateTime,
        _ => NumberKind::Number,
    }
}

/// Returns the kind of a format like `yyyy\-mm\-dd "at" hh:mm`.
fn classify_code(code: &str) -> NumberKind {
    let (mut date, mut time) = (false, false);
    let mut characters = code.chars();
    while let Some(character) = characters.next() {
        match character.to_ascii_lowercase() {
            '"' => while !matches!(characters.next(), Some('"') | None) {},
            // Colors, conditions, currencies, or elapsed hours.
            '[' => {
                let first = characters.next();
                time |= matches!(first, Some('h' | 'H' | 's' | 'S'));
                while !matches!(characters.next(), Some(']') | None) {}
            }
            '\\' | '_' | '*' => {
                characters.next();
            }
            'y' | 'd' => date = true,
            'h' | 's' => time = true,
            // The second section is for negative numbers.
            ';' => break,
            _ => {}
        }
    }
    match (date, time) {
        (true, true) => NumberKind::DateTime,
        (true, false) => NumberKind::Date,
        (false, true) => NumberKind::Time,
        (false, false) => NumberKind::Number,
    }
}

/// Returns a number as text: `0.1`, `2024-05-06`, `07:08:09`, `2024-05-06 07:08:09`.
fn format_number(number: f64, kind: NumberKind, starts_in_1904: bool) -> String {
    if kind == NumberKind::Number || !(0.0..=SERIAL_MAX).contains(&number) {
        return format_plain(number);
    }
    // The value is in the range, so the conversion is exact.
    let seconds = (number * SECONDS_PER_DAY as f64).round() as i64;
    let (days, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let offset = if starts_in_1904 { SERIAL_1904 } else { 0 };
    let date = format_date(days + offset - UNIX_EPOCH_SERIAL);
    let hour = if kind == NumberKind::Time {
        seconds / 3600
    } else {
        second / 3600
    };
    let time = format!("{hour:02}:{:02}:{:02}", second / 60 % 60, second % 60);
    match kind {
        NumberKind::Date => date,
        NumberKind::Time => time,
        NumberKind::DateTime | NumberKind::Number => format!("{date} {time}"),
    }
}

/// The shortest decimal that identifies the number. Files have 17 digits: `0.10000000000000001`.
fn format_plain(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude == 0.0 || (1e-9..1e15).contains(&magnitude) {
        format!("{number}")
    } else {
        format!("{number:e}")
    }
}

/// Returns the date of a day since 1970-01-01. Source: Howard Hinnant's algorithm
/// `civil_from_days`, <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>.
fn format_date(day: i64) -> String {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns the text of a header such as `&L&"Arial,Bold"&12Left&CPage &P`. Source: ECMA-376 part 1,
/// 18.3.1.46.
pub(super) fn strip_header_codes(header: &str) -> String {
    let mut characters = header.chars().peekable();
    let mut words = String::new();
    while let Some(character) = characters.next() {
        if character != '&' {
            words.push(character);
            continue;
        }
        match characters.next() {
            Some('&') => words.push('&'),
            Some('L' | 'C' | 'R') => words.push(' '),
            Some('"') => while !matches!(characters.next(), Some('"') | None) {},
            Some('0'..='9') => while characters.next_if(char::is_ascii_digit).is_some() {},
            // A color of six characters.
            Some('K') => characters.by_ref().take(6).for_each(drop),
            // Other attributes and fields.
            Some(_) | None => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_by_their_kind() {
        let check = |number: f64, code: &str, expected: &str| {
            let found = format_number(number, classify_code(code), false);
            assert_eq!(found, expected, "{number} {code}");
        };
        check("0.10000000000000001".parse().unwrap(), "General", "0.1");
        check(45_418.0, "yyyy\\-mm\\-dd", "2024-05-06");
        check(45_418.25, "d/m/yy h:mm", "2024-05-06 06:00:00");
        check(0.5, "h:mm AM/PM", "12:00:00");
        check(1.5, "[h]:mm:ss", "36:00:00");
        check(5.0, "0 \"days\"", "5");
        check(5.0, "[Red]0.00;yyyy", "5");
        check(1e300, "yyyy", "1e300");
        check(-1.0, "yyyy", "-1");
        check(f64::NAN, "yyyy", "NaN");
        check(61.0, "yyyy-mm-dd", "1900-03-01");
        assert_eq!(format_number(0.0, NumberKind::Date, true), "1904-01-01");
    }
}
