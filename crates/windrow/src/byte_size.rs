//! Parses sizes: `512MB`, `2GiB`, `1073741824`.

/// Units and their sizes in bytes. Units without `i` are powers of 1000.
const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1000),
    ("kib", 1 << 10),
    ("m", 1_000_000),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("g", 1_000_000_000),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("t", 1_000_000_000_000),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
];

/// Parses a number of bytes with an optional unit, ignoring case.
pub fn parse(text: &str) -> Result<u64, String> {
    let invalid = || format!("{text:?} is not a size; write a number of bytes, 512MB or 2GiB");
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit);
    let factor = factor.ok_or_else(invalid)?.1;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(invalid);
    }
    match number.parse::<f64>() {
        Ok(number) if number * (factor as f64) < 1e18 => Ok((number * factor as f64) as u64),
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units_are_parsed() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(parse(text).ok(), expected, "{text}");
        };
        check("1073741824", Some(1 << 30));
        check("512MB", Some(512_000_000));
        check("512 mb", Some(512_000_000));
        check("2GiB", Some(2 << 30));
        check("1.5g", Some(1_500_000_000));
        check("64k", Some(64_000));
        for wrong in [
            "",
            "much",
            "1XB",
            "-1",
            "1.2.3",
            "99999999999TB",
            ".",
            "1e3",
        ] {
            check(wrong, None);
        }
    }
}
