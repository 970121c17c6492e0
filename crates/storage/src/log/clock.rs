//! When records were written, and the times that clients know them by.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Position;

/// What a client knows a record by: the second in which it was written, and the lowest 32 bits of its
/// position. In the order of the log, and no two records have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterTime(pub u64);

impl ClusterTime {
    pub fn new(seconds: u32, increment: u32) -> ClusterTime {
        ClusterTime(u64::from(seconds) << 32 | u64::from(increment))
    }

    /// The time of a record that was written then.
    pub fn of(position: Position, millis: u64) -> ClusterTime {
        ClusterTime::new((millis / 1000) as u32, position.0 as u32)
    }

    pub fn seconds(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub fn increment(self) -> u32 {
        self.0 as u32
    }

    /// After it, and not after any other time that is after it.
    pub fn next(self) -> ClusterTime {
        ClusterTime(self.0.saturating_add(1))
    }
}

impl fmt::Display for ClusterTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.seconds(), self.increment())
    }
}

/// The system's time in milliseconds since 1970.
pub(crate) fn system() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// When a record is said to be written: not before the one before it, and in another second where
/// the lowest bits of the position begin anew, so that times grow with positions. Never 0.
pub(crate) fn next_millis(last: u64, clock: u64, position: u64) -> u64 {
    let millis = clock.max(last).max(1);
    match position as u32 {
        0 => millis.max((last / 1000 + 1) * 1000),
        _ => millis,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_grow_with_positions() {
        let check = |last: u64, clock: u64, position: u64| {
            let millis = next_millis(last, clock, position);
            let before = ClusterTime::of(Position(position - 1), last);
            let after = ClusterTime::of(Position(position), millis);
            assert!(after > before, "{last} {clock} {position}");
        };
        check(0, 0, 1);
        check(5_000, 4_000, 7);
        check(5_999, 5_999, 1 << 32);
        check(5_999, 9_000, 1 << 32);
        check(6_000, 6_000, (1 << 32) + 1);
    }
}
