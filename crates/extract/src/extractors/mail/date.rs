//! Parses dates of mails: RFC 5322 and other forms that programs write.

use crate::metadata_text::{CalendarTime, parse_iso_date};

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
/// German month names, which some programs write.
const OTHER_MONTHS: [(&str, i64); 6] = [
    ("mär", 3),
    ("mrz", 3),
    ("mai", 5),
    ("okt", 10),
    ("dez", 12),
    ("fév", 2),
];
/// Time zones with their offsets in hours. Source: RFC 5322, section 4.3, and common abbreviations.
const ZONES: [(&str, i64); 25] = [
    ("utc", 0),
    ("gmt", 0),
    ("ut", 0),
    ("z", 0),
    ("wet", 0),
    ("est", -5),
    ("edt", -4),
    ("cst", -6),
    ("cdt", -5),
    ("mst", -7),
    ("mdt", -6),
    ("pst", -8),
    ("pdt", -7),
    ("akst", -9),
    ("hst", -10),
    ("bst", 1),
    ("west", 1),
    ("cet", 1),
    ("met", 1),
    ("mez", 1),
    ("cest", 2),
    ("mest", 2),
    ("mesz", 2),
    ("eet", 2),
    ("jst", 9),
];

/// The components of a date that were parsed.
#[derive(Default)]
struct DateParts {
    day: Option<i64>,
    month: Option<i64>,
    year: Option<i64>,
    clock: Option<[i64; 3]>,
    offset_minutes: Option<i64>,
    afternoon: Option<bool>,
}

/// Returns milliseconds since 1970-01-01 UTC. A date without a zone is in UTC.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let text = remove_comments(text);
    let iso = text.trim();
    if iso.len() >= 10 && iso.as_bytes().get(4) == Some(&b'-') {
        let found = parse_iso_date(&join_iso_offset(iso));
        if found.is_some() {
            return found;
        }
    }
    let mut parts = DateParts::default();
    for token in text.split(|c: char| c.is_whitespace() || c == ',') {
        parts.add(token);
    }
    parts.finish()
}

/// Removes the space before the offset of an ISO date: `2024-01-02 03:04:05 +0100`.
fn join_iso_offset(text: &str) -> String {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let rest: String = words.collect();
    let rest = rest.trim_end_matches("UTC").trim_end_matches("GMT");
    let time = if rest.starts_with(|c: char| c.is_ascii_digit()) {
        format!("{first} {rest}")
    } else {
        format!("{first}{rest}")
    };
    // ISO 8601 writes `+0100` as `+01:00`.
    match time.char_indices().rev().nth(4) {
        Some((at, '+' | '-')) if time.len() > 15 && time.is_ascii() => {
            let (clock, offset) = time.split_at(at);
            let (hours, minutes) = offset.split_at(3);
            format!("{clock}{hours}:{minutes}")
        }
        _ => time,
    }
}

fn remove_comments(text: &str) -> String {
    let mut depth = 0u32;
    let mut plain = String::new();
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            other if depth == 0 => plain.push(other),
            _ => {}
        }
    }
    plain
}

impl DateParts {
    fn add(&mut self, token: &str) {
        let token = token.trim_matches(['.', '"', '\'']);
        if token.contains(':') && !token.starts_with(['+', '-']) && self.clock.is_none() {
            self.add_clock(token);
        } else if token.starts_with(['+', '-']) {
            self.offset_minutes = parse_offset(token).or(self.offset_minutes);
        } else if token.starts_with(|c: char| c.is_ascii_digit()) {
            self.add_number(token);
        } else {
            self.add_word(token);
        }
    }

    /// Adds `03:04:05`, `3:04`, `03:04:05.678`, `3:04pm` or `03:04:05+0100`.
    fn add_clock(&mut self, token: &str) {
        let end = token.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.'));
        let (clock, rest) = token.split_at(end.unwrap_or(token.len()));
        let mut numbers = clock.split(':').map(|part| {
            let whole = part.split('.').next().unwrap_or_default();
            whole.parse().ok()
        });
        let mut next = || numbers.next().unwrap_or(Some(0));
        let (Some(hour), Some(minute), Some(second)) = (next(), next(), next()) else {
            return;
        };
        self.clock = Some([hour, minute, second]);
        // If there is a time already, this is not another one.
        if !rest.is_empty() {
            self.add(rest);
        }
    }

    /// Adds a day, a year, or a date of numbers and months: `2-Jan-2024`, `2/Jan/24`.
    fn add_number(&mut self, token: &str) {
        let mut split = token.split(['-', '/', '.']).filter(|part| !part.is_empty());
        if let (Some(first), Some(second)) = (split.next(), split.next()) {
            let is_word = second.starts_with(char::is_alphabetic);
            if is_word {
                self.add_number(first);
                self.add_word(second);
                split.for_each(|part| self.add_number(part));
            } else if token.contains('.') && self.clock.is_none() && self.month.is_some() {
                // A time with periods: `03.04.05`.
                self.add_clock(&token.replace('.', ":"));
            }
            return;
        }
        let digits = token.trim_end_matches(|c: char| !c.is_ascii_digit());
        let Ok(number) = digits.parse::<i64>() else {
            return;
        };
        let is_day = self.day.is_none() && digits.len() <= 2 && (1..=31).contains(&number);
        if is_day {
            self.day = Some(number);
        } else if self.year.is_none() {
            self.year = Some(match digits.len() {
                1..=2 if number < 50 => 2000 + number,
                1..=3 => 1900 + number,
                _ => number,
            });
        }
    }

    fn add_word(&mut self, token: &str) {
        let word = token.to_lowercase();
        let month = MONTHS.iter().position(|month| word.starts_with(month));
        let month = month.map(|index| index as i64 + 1).or_else(|| {
            let other = OTHER_MONTHS.iter().find(|(name, _)| word.starts_with(name));
            other.map(|(_, month)| *month)
        });
        let zone = ZONES.iter().find(|(name, _)| word == *name);
        if let Some((_, hours)) = zone {
            self.offset_minutes = self.offset_minutes.or(Some(hours * 60));
        } else if let Some(offset) = ["gmt", "utc"].iter().find_map(|it| word.strip_prefix(it)) {
            self.offset_minutes = parse_offset(offset).or(self.offset_minutes);
        } else if word == "am" || word == "pm" {
            self.afternoon = Some(word == "pm");
        } else if self.month.is_none() && word.chars().count() >= 3 {
            self.month = month;
        }
    }

    fn finish(self) -> Option<i64> {
        let [mut hour, minute, second] = self.clock.unwrap_or_default();
        if let Some(afternoon) = self.afternoon {
            hour = hour % 12 + if afternoon { 12 } else { 0 };
        }
        let time = CalendarTime {
            year: self.year?,
            month: self.month?,
            day: self.day?,
            hour,
            minute,
            second,
            offset_minutes: self.offset_minutes.unwrap_or(0),
        };
        (time.is_valid() && time.year >= 1900).then(|| time.to_unix_ms())
    }
}

/// Parses `+0100`, `-01:00`, `+1` or `+100` into minutes.
fn parse_offset(text: &str) -> Option<i64> {
    let sign = match text.chars().next()? {
        '-' => -1,
        '+' => 1,
        _ => return None,
    };
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let number: i64 = digits.parse().ok()?;
    let minutes = match digits.len() {
        1..=2 => number * 60,
        3..=4 => number / 100 * 60 + number % 100,
        _ => return None,
    };
    (minutes < 24 * 60).then_some(sign * minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_parsed() {
        let expected = 1_704_161_045_000;
        let check = |text: &str, expected: Option<i64>| {
            assert_eq!(parse_date(text), expected, "{text}");
        };
        for text in [
            "Tue, 2 Jan 2024 03:04:05 +0100",
            "2 Jan 2024 02:04:05",
            "Tue, 02 Jan 24 03:04:05 +01:00 (CET)",
            "Tue, 2 Jan 124 03:04:05 CET",
            "Tue Jan  2 02:04:05 2024",
            "Tue Jan  2 03:04:05 CET 2024",
            "Tue Jan  2 03:04:05 2024 +0100",
            "Mon,1 Jan 2024 21:04:05 EST",
            "Tuesday, January 2, 2024 2:04:05 AM",
            "Tue, 2-Jan-2024 02:04:05 GMT",
            "2/Jan/2024 02:04:05Z",
            "Di, 2 Jan 2024 03:04:05 MEZ",
            "Tue, 2 Jan 2024 02.04.05 -0000",
            "Tue, 2 Jan 2024 03:04:05 GMT+0100",
            "Tue, 2 Jan 2024 03:04:05+0100",
            "Tue, 2 (comment (nested)) Jan 2024 02:04:05.250 UTC",
            "2024-01-02T02:04:05Z",
            "2024-01-02 03:04:05 +0100",
            "2024-01-02 02:04:05 UTC",
            "Jan 1, 2024 9:04:05 PM -0500",
            "Tue, 2 Jan 2024 02:04:05 \"GMT\"",
        ] {
            check(text, Some(expected));
        }
        check("2 Jan 1999", Some(915_235_200_000));
        check("2 Jan 99 00:00", Some(915_235_200_000));
        check("1 März 2024 00:00 UTC", Some(1_709_251_200_000));
        for text in [
            "",
            "yesterday",
            "a:b",
            "Tue, 2 Jan",
            "32 Jan 2024",
            "2 Jan 2024 25:00",
            "1 2 3 4",
        ] {
            check(text, None);
        }
    }
}
