//! Whether a primary of a database in an object store is suspended: it has not been able to extend
//! the log for so long that another server can have taken over. It refuses writes until it has
//! extended the log again.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The suspension of a primary.
#[derive(Debug, Default)]
pub struct Suspension {
    is_suspended: AtomicBool,
    /// The number of times that it has begun or ended. Clients see each change as a new version of
    /// the topology.
    changes: AtomicI64,
}

impl Suspension {
    /// Begins or ends the suspension. Returns `true` if that is a change.
    pub fn set(&self, is_suspended: bool) -> bool {
        let is_change = self.is_suspended.swap(is_suspended, Ordering::AcqRel) != is_suspended;
        if is_change {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
        is_change
    }

    /// Returns `true` if the primary is suspended.
    pub fn is_suspended(&self) -> bool {
        self.is_suspended.load(Ordering::Acquire)
    }

    /// Returns how often the suspension has begun or ended.
    pub fn changes(&self) -> i64 {
        self.changes.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_count() {
        let suspension = Suspension::default();
        let set = |is_suspended| suspension.set(is_suspended);
        assert_eq!(
            [set(false), set(true), set(true), set(false)],
            [false, true, false, true]
        );
        assert_eq!(
            (suspension.is_suspended(), suspension.changes()),
            (false, 2)
        );
    }
}
