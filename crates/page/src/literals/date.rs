//! Dates in ISO 8601, in UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Parses `2026-01-31`, `2026-01-31T10:20`, `…:30`, `….123`, with `Z`, `+01:00` or no zone, which
/// means UTC. Returns milliseconds since 1970-01-01 UTC. Fails with a message.
pub fn parse_date(text: &str) -> Result<i64, String> {
    let text = text.trim();
    let with_zone = text.parse::<Timestamp>();
    let parsed = with_zone.or_else(|_| {
        let civil = text.parse::<DateTime>()?;
        civil.to_zoned(TimeZone::UTC).map(|it| it.timestamp())
    });
    let millis = parsed.map(Timestamp::as_millisecond);
    millis.map_err(|_| format!("\"{text}\" is no date such as 2026-01-31T10:20:30Z"))
}

/// Returns a date in ISO 8601 and UTC, such as `2026-01-31T10:20:30.000Z`. `None` if the year is
/// not between 0 and 9999.
pub fn format_date(millis: i64) -> Option<String> {
    let date = Timestamp::from_millisecond(millis).ok()?;
    let date = TimeZone::UTC.to_datetime(date);
    (date.year() >= 0).then(|| date.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
}
