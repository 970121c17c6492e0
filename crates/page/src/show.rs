//! Formats values for display.

use std::fmt::Write as _;

/// Returns a number with separators between thousands.
///
/// `1234567` is `1,234,567`.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut shown = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Returns a number of bytes with a unit.
pub fn bytes(count: f64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut units) = (count, UNITS.iter().copied().peekable());
    while value >= 999.5 && units.len() > 1 {
        value /= 1000.0;
        units.next();
    }
    let unit = units.next().unwrap_or_default();
    if unit == "B" || value >= 99.95 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// Returns a duration in its two largest units.
pub fn duration(seconds: f64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let (mut left, mut shown, mut count) = (seconds.max(0.0) as u64, String::new(), 0);
    for (size, unit) in UNITS {
        let number = left / size;
        left %= size;
        let is_last = unit == "s" && shown.is_empty();
        if (number > 0 || is_last) && count < 2 {
            let space = if shown.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(shown, "{space}{number} {unit}");
        }
        count += usize::from(!shown.is_empty());
    }
    shown
}

/// Capitalizes the first letter of a server message.
pub fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters).collect()
}

/// Returns the display name of a mail address: `Ada <ada@example.org>` is `Ada`.
pub fn name_alone(person: &str) -> &str {
    match person.split_once(" <") {
        Some((name, _)) if !name.trim().is_empty() => name.trim().trim_matches('"'),
        _ => person,
    }
}

/// Characters that change the writing direction of the text after them.
const DIRECTIONS: [char; 9] = [
    '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}',
    '\u{2069}',
];

/// Returns a name without characters that hide or reorder others. A name could otherwise imitate
/// another one.
pub fn visible(name: &str) -> String {
    let is_hidden = |it: char| it.is_control() || DIRECTIONS.contains(&it);
    name.replace(is_hidden, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (-1000, "-1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, expected) in cases {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn sizes_have_units() {
        let cases = [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1_000.0, "1.0 kB"),
            (15_300_000.0, "15.3 MB"),
            (153_000_000.0, "153 MB"),
            (999_600.0, "1.0 MB"),
        ];
        for (count, expected) in cases {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn durations_have_units() {
        let cases = [
            (0.4, "0 s"),
            (61.0, "1 min 1 s"),
            (3_600.0, "1 h"),
            (90_061.0, "1 d 1 h"),
            (86_460.0, "1 d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(duration(seconds), expected);
        }
    }

    #[test]
    fn names_show_what_they_are() {
        assert_eq!(visible("a\u{202e}gpj.exe\n"), "a\u{fffd}gpj.exe\u{fffd}");
        assert_eq!(sentence("the end"), "The end");
        assert_eq!(name_alone("\"Ada L.\" <ada@example.org>"), "Ada L.");
        assert_eq!(name_alone("<ada@example.org>"), "<ada@example.org>");
        assert_eq!(visible("Ägypten שלום"), "Ägypten שלום");
    }
}
