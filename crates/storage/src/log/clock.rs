//! The times of records, and the cluster times that clients get.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Position;

/// The time of a record in the form of a BSON timestamp: the second in which the record was
/// written, and the lowest 32 bits of its position. Cluster times ascend with positions, and no two
/// records have the same.
///
/// ```
/// use windrow_storage::{ClusterTime, Position};
///
/// let time = ClusterTime::from_record(Position(7), 2_500);
/// assert_eq!((time.seconds(), time.increment()), (2, 7));
/// assert!(time < time.next());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterTime(pub u64);

impl ClusterTime {
    /// Returns the cluster time of its two parts.
    pub fn new(seconds: u32, increment: u32) -> ClusterTime {
        ClusterTime(u64::from(seconds) << 32 | u64::from(increment))
    }

    /// Returns the cluster time of the record at `position`, written at `millis` milliseconds since
    /// 1970.
    pub fn from_record(position: Position, millis: u64) -> ClusterTime {
        ClusterTime::new((millis / 1000) as u32, position.0 as u32)
    }

    /// Returns the seconds since 1970.
    pub fn seconds(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the lowest 32 bits of the position.
    pub fn increment(self) -> u32 {
        self.0 as u32
    }

    /// Returns the next larger cluster time.
    pub fn next(self) -> ClusterTime {
        ClusterTime(self.0.saturating_add(1))
    }
}

impl fmt::Display for ClusterTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.seconds(), self.increment())
    }
}

/// Returns the system's time in milliseconds since 1970.
pub(crate) fn system_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Returns the time to store in the record at `position`, in milliseconds since 1970.
///
/// It is at least `last`, the time of the record before, even if the clock was set back. If the
/// lowest 32 bits of the position are 0, it is in a later second. Otherwise the cluster time would
/// be less than that of the record before. It is never 0, which means a record without a time.
pub(crate) fn next_millis(last: u64, clock: u64, position: Position) -> u64 {
    let millis = clock.max(last).max(1);
    match position.0 as u32 {
        0 => millis.max((last / 1000 + 1) * 1000),
        _ => millis,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_times_ascend_with_positions() {
        let check = |last: u64, clock: u64, position: u64| {
            let position = Position(position);
            let millis = next_millis(last, clock, position);
            let before = ClusterTime::from_record(position.previous(), last);
            let after = ClusterTime::from_record(position, millis);
            assert!(after > before, "{last} {clock} {position}");
        };
        check(0, 0, 1);
        check(5_000, 4_000, 7);
        check(5_999, 5_999, 1 << 32);
        check(5_999, 9_000, 1 << 32);
        check(6_000, 6_000, (1 << 32) + 1);
    }
}
