//! Time zones: names of the IANA database, which is compiled in, and offsets such as "+05:30".

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use std::sync::LazyLock;

use super::calendar::{DAY_MS, Local, SECOND_MS};
use crate::Error;

/// The compiled-in database. Results must not depend on the database of the machine.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Zone {
    /// A fixed offset in seconds east of UTC.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    pub const UTC: Zone = Zone::Fixed(0);

    /// Parses a name or an offset: "+05", "-0530", "+05:30". Fails with 40485 for other strings.
    pub fn parse(text: &str) -> Result<Zone, Error> {
        if let Some(offset) = parse_offset(text) {
            return Ok(Zone::Fixed(offset));
        }
        let unknown = || {
            Error::new(
                40485,
                format!("unrecognized time zone identifier: \"{text}\""),
            )
        };
        if matches!(text, "UTC" | "GMT") {
            return Ok(Zone::UTC);
        }
        let zone = DATABASE.get(text).map_err(|_| unknown())?;
        // Names are case-sensitive, but the database ignores case.
        if zone.iana_name() == Some(text) {
            Ok(Zone::Named(zone))
        } else {
            Err(unknown())
        }
    }

    /// Returns the offset at a moment, in seconds east of UTC.
    pub fn offset(&self, utc_millis: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => {
                let seconds = utc_millis.div_euclid(SECOND_MS);
                let end = if seconds < 0 {
                    Timestamp::MIN
                } else {
                    Timestamp::MAX
                };
                let moment = Timestamp::from_second(seconds).unwrap_or(end);
                i64::from(zone.to_offset(moment).seconds())
            }
        }
    }

    pub fn local(&self, utc_millis: i64) -> Local {
        Local::new(utc_millis, self.offset(utc_millis))
    }

    /// Returns the moment of a local time, in UTC. If the local time occurs twice, the earlier
    /// moment is returned. If it does not occur, because clocks were set forward, the offset before
    /// the change is used.
    pub fn utc(&self, local_millis: i64) -> i64 {
        let before = self.offset(local_millis.saturating_sub(DAY_MS)) * SECOND_MS;
        let early = local_millis.saturating_sub(before);
        if self.offset(early) * SECOND_MS == before {
            return early;
        }
        let after = self.offset(local_millis.saturating_add(DAY_MS)) * SECOND_MS;
        let late = local_millis.saturating_sub(after);
        if self.offset(late) * SECOND_MS == after {
            late
        } else {
            early
        }
    }
}

/// Parses "+hh", "+hhmm" or "+hh:mm", with either sign, as seconds.
pub(crate) fn parse_offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "0"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let number = |text: &str| {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<i64>().ok()).flatten()
    };
    Some(sign * (number(hours)? * 3600 + number(minutes)? * 60))
}
