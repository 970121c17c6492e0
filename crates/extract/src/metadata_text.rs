//! Cleans declared metadata: texts, keywords, languages and dates.

use crate::encoding::truncate;

/// The maximum length of a property. Longer ones are truncated, because stored documents have a
/// maximum size.
const PROPERTY_BYTES_MAX: usize = 4096;
const KEYWORDS_MAX: usize = 200;

/// Returns the text with collapsed white space. `None` if it is empty.
pub(crate) fn clean_property(text: &str) -> Option<String> {
    let mut cleaned = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c == '\0') {
        if word.is_empty() {
            continue;
        }
        if !cleaned.is_empty() {
            cleaned.push(' ');
        }
        cleaned.push_str(word);
        if truncate(&mut cleaned, PROPERTY_BYTES_MAX) {
            break;
        }
    }
    (!cleaned.is_empty()).then_some(cleaned)
}

/// Appends the keywords of a list that is separated by commas or semicolons.
pub(crate) fn append_keywords(keywords: &mut Vec<String>, text: &str) {
    for keyword in text.split([',', ';']).filter_map(clean_property) {
        if keywords.len() < KEYWORDS_MAX && !keywords.contains(&keyword) {
            keywords.push(keyword);
        }
    }
}

/// Returns the primary subtag of a language tag: `de` for `de-AT`.
pub(crate) fn parse_language(tag: &str) -> Option<String> {
    let primary = tag.trim().split(['-', '_']).next()?.to_ascii_lowercase();
    let valid = (2..=3).contains(&primary.len()) && primary.bytes().all(|b| b.is_ascii_lowercase());
    valid.then_some(primary)
}

/// A date and time of day of the Gregorian calendar. `offset_minutes` is local time minus UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CalendarTime {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) offset_minutes: i64,
}

impl CalendarTime {
    /// Returns the milliseconds since 1970-01-01 UTC. Source: Howard Hinnant's algorithm
    /// `days_from_civil`, <https://howardhinnant.github.io/date_algorithms.html#days_from_civil>.
    pub(crate) fn to_unix_ms(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        let minutes = self.hour * 60 + self.minute - self.offset_minutes;
        (days * 86_400 + minutes * 60 + self.second) * 1000
    }

    /// Returns `false` if a component is outside its range.
    pub(crate) fn is_valid(&self) -> bool {
        (0..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=31).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && (-1439..=1439).contains(&self.offset_minutes)
    }
}

/// Parses a date of ISO 8601 as written by `xsd:dateTime`: `2024-05-06T07:08:09.5+02:00`. Parts
/// from the end can be missing: `2024-05-06`, `2024`. A time without an offset is UTC.
pub(crate) fn parse_iso_date(text: &str) -> Option<i64> {
    let (date, time) = match text.trim().split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text.trim(), None),
    };
    let mut numbers = date.split('-').map(str::parse);
    let mut parsed = CalendarTime {
        year: numbers.next()?.ok()?,
        month: numbers.next().unwrap_or(Ok(1)).ok()?,
        day: numbers.next().unwrap_or(Ok(1)).ok()?,
        ..CalendarTime::default()
    };
    if let Some(time) = time {
        let (clock, offset_minutes) = split_offset(time)?;
        let mut numbers = clock.split(':').map(|part| {
            let whole = part.split('.').next().unwrap_or_default();
            whole.parse().ok()
        });
        parsed.hour = numbers.next()??;
        parsed.minute = numbers.next()??;
        parsed.second = numbers.next().unwrap_or(Some(0))?;
        parsed.offset_minutes = offset_minutes;
    }
    parsed.is_valid().then(|| parsed.to_unix_ms())
}

/// Parses a date in ISO 8601 or in words: `2024-05-06`, `May 6, 2024`, `6 May 2024`, `May 2024`.
pub(crate) fn parse_written_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let day = text.get(..10).unwrap_or_default();
    let iso = parse_iso_date(text).or_else(|| parse_iso_date(day));
    iso.filter(|_| day.contains('-'))
        .or_else(|| parse_date_words(text))
}

fn parse_date_words(text: &str) -> Option<i64> {
    let (mut year, mut month, mut day) = (None, None, None);
    let words = text.split(|it: char| !it.is_alphanumeric());
    for word in words.filter(|word| !word.is_empty()).take(8) {
        match word.parse::<i64>() {
            Ok(number @ 1..=31) if day.is_none() => day = Some(number),
            Ok(number @ 1900..=2200) if year.is_none() => year = Some(number),
            Ok(_) => {}
            Err(_) => month = month.or_else(|| parse_month(word)),
        }
    }
    let parsed = CalendarTime {
        year: year?,
        month: month?,
        day: day.unwrap_or(1),
        ..CalendarTime::default()
    };
    parsed.is_valid().then(|| parsed.to_unix_ms())
}

/// Returns the number of a month by its English name or the first three letters of the name.
fn parse_month(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let start = word.get(..3)?.to_ascii_lowercase();
    let found = (1..).zip(MONTHS).find(|(_, month)| *month == start);
    found.map(|(number, _)| number)
}

/// Splits a time of day and its offset from UTC in minutes.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    let time = time.trim_end_matches('Z');
    let Some(at) = time.find(['+', '-']) else {
        return Some((time, 0));
    };
    let (clock, offset) = time.split_at_checked(at)?;
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let digits: String = offset.chars().filter(char::is_ascii_digit).collect();
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..4).unwrap_or("0").parse().ok()?;
    Some((clock, sign * (hours * 60 + minutes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_dates_are_parsed() {
        let check = |text: &str, expected| assert_eq!(parse_iso_date(text), expected, "{text}");
        check("2024-01-02T03:04:05Z", Some(1_704_164_645_000));
        check("2024-01-02T03:04:05.25+01:00", Some(1_704_161_045_000));
        check("2024-01-02T03:04:05-0100", Some(1_704_168_245_000));
        check("2024-01-02 03:04", Some(1_704_164_640_000));
        check("2024-01-02", Some(1_704_153_600_000));
        check("1970", Some(0));
        check("1969-12-31T23:59:59Z", Some(-1_000));
        for invalid in [
            "",
            "words",
            "2024-13-01",
            "2024-01-02T25:00:00",
            "2024-01-02T1",
            "2024-01-02T03:04:05+é",
            "99999-01-01",
            "9223372036854775807-01-01",
        ] {
            check(invalid, None);
        }
    }

    #[test]
    fn written_dates_are_parsed() {
        let check = |text: &str, expected| assert_eq!(parse_written_date(text), expected, "{text}");
        for text in [
            "May 6, 2024",
            "6 May 2024",
            "Mon 6 May 2024",
            "2024-05-06",
            "$Mdocdate: May 6 2024 $",
        ] {
            check(text, Some(1_714_953_600_000));
        }
        check("May 2024", Some(1_714_521_600_000));
        for invalid in ["", "2024", "soon", "GNU 1.2", "\\today", "é"] {
            check(invalid, None);
        }
    }

    #[test]
    fn properties_are_cleaned() {
        assert_eq!(clean_property(" a \n b\0").as_deref(), Some("a b"));
        assert_eq!(clean_property(" \0"), None);
        assert_eq!(clean_property(&"é".repeat(9000)).unwrap().len(), 4096);
        let mut keywords = Vec::new();
        append_keywords(&mut keywords, "one, two;one, ,three four");
        assert_eq!(keywords, ["one", "two", "three four"]);
        assert_eq!(parse_language("de-AT").as_deref(), Some("de"));
        assert_eq!(parse_language("x"), None);
    }
}
