//! Sizes: `10k`, `1.5M`, `2GB`.

use std::ops::Bound;

use crate::query::SizeRange;

/// Parses a number of bytes. The units are powers of 1,024: `k`, `m`, `g`, `t`, with optional `b`
/// or `ib`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let shift = match lower
        .get(digits.len()..)?
        .trim_end_matches("ib")
        .trim_end_matches('b')
    {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    let is_number = digits.starts_with(|it: char| it.is_ascii_digit())
        && digits.chars().all(|it| it.is_ascii_digit() || it == '.');
    let number: f64 = is_number.then(|| digits.parse().ok())??;
    let bytes = number * (1_u64 << shift) as f64;
    (bytes < u64::MAX as f64).then_some(bytes as u64)
}

/// Parses the range of `size:VALUE`: `A..B` with one or both ends, or an exact size.
pub fn parse_range(text: &str) -> Option<SizeRange> {
    let end = |text: &str| match text {
        "" => Some(Bound::Unbounded),
        text => parse_bytes(text).map(Bound::Included),
    };
    match text.split_once("..") {
        Some(("", "")) => None,
        Some((lower, upper)) => Some(SizeRange {
            lower: end(lower)?,
            upper: end(upper)?,
        }),
        None => {
            let size = Bound::Included(parse_bytes(text)?);
            Some(SizeRange {
                lower: size,
                upper: size,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let cases = [
            ("0", Some(0)),
            ("12b", Some(12)),
            ("10k", Some(10_240)),
            ("1.5M", Some(1_572_864)),
            ("2GiB", Some(2 << 30)),
            ("1tb", Some(1 << 40)),
            ("", None),
            ("k", None),
            ("-1", None),
            ("1x", None),
            ("1e3", None),
            ("99999999999999999999", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_bytes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn ranges_have_one_end_or_two() {
        let range = |lower, upper| Some(SizeRange { lower, upper });
        let kilo = Bound::Included(1_024);
        assert_eq!(parse_range("1k.."), range(kilo, Bound::Unbounded));
        assert_eq!(parse_range("..1k"), range(Bound::Unbounded, kilo));
        assert_eq!(parse_range("1k..2k"), range(kilo, Bound::Included(2_048)));
        assert_eq!(parse_range("1k"), range(kilo, kilo));
        assert_eq!(parse_range(".."), None);
        assert_eq!(parse_range("1k..x"), None);
    }
}
