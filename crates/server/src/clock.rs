//! Points in time for replies and logs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use windrow_document::{Timestamp, Value};
use windrow_mql::expression::CalendarDate;

/// Returns the current time as a timestamp. Each call returns a different timestamp.
pub(crate) fn timestamp() -> Timestamp {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let seconds = millis(SystemTime::now()) as u64 / 1000;
    let earliest = seconds << 32 | 1;
    let next = |last: u64| (last + 1).max(earliest);
    let last = LAST.fetch_update(Relaxed, Relaxed, |last| Some(next(last)));
    Timestamp::from_bits(next(last.unwrap_or_default()))
}

/// Returns the time of an instant in the past.
pub(crate) fn at(moment: Instant) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(moment.elapsed()).unwrap_or(now)
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now_millis() -> i64 {
    millis(SystemTime::now())
}

/// Returns a time as a BSON date.
pub(crate) fn date(time: SystemTime) -> Value {
    Value::DateTime(millis(time))
}

/// Milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a time in ISO 8601, UTC, with milliseconds: `2026-11-21T06:38:01.161+00:00`.
pub(crate) fn iso(time: SystemTime) -> String {
    iso_of_millis(millis(time))
}

/// Returns a time in ISO 8601, as [`iso`] does, from the milliseconds since 1970.
pub(crate) fn iso_of_millis(millis: i64) -> String {
    let (days, of_day) = (millis / 86_400_000, millis % 86_400_000);
    let CalendarDate { year, month, day } = CalendarDate::from_days(days);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}+00:00")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_written_in_utc() {
        let check = |millis: u64, expected: &str| {
            assert_eq!(iso(UNIX_EPOCH + Duration::from_millis(millis)), expected);
        };
        check(0, "1970-01-01T00:00:00.000+00:00");
        check(951_782_400_001, "2000-02-29T00:00:00.001+00:00");
        check(1_795_243_081_161, "2026-11-21T06:38:01.161+00:00");
        check(4_107_542_399_999, "2100-02-28T23:59:59.999+00:00");
    }
}
