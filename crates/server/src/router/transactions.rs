//! The data sets of transactions: that of the first command. All others have to be for databases of
//! the same one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::placement::DataSetId;
use crate::sessions::{SessionId, TIMEOUT};
use crate::sync::lock;

/// The newest transaction of each session.
#[derive(Debug, Default)]
pub struct TransactionSets {
    sets: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    of_sessions: HashMap<SessionId, SetOfTransaction>,
    /// When unused sessions were removed last.
    cleaned: Option<Instant>,
}

#[derive(Debug)]
struct SetOfTransaction {
    number: i64,
    set: DataSetId,
    used: Instant,
}

/// How often transactions of unused sessions are removed.
const CLEANING_INTERVAL: Duration = Duration::from_secs(60);

impl TransactionSets {
    /// Records the data set of a transaction that begins.
    pub fn begin(&self, session: SessionId, number: i64, set: DataSetId) {
        let now = Instant::now();
        let mut table = lock(&self.sets);
        let is_clean = |cleaned: Instant| now.duration_since(cleaned) < CLEANING_INTERVAL;
        if !table.cleaned.is_some_and(is_clean) {
            table.cleaned = Some(now);
            let of_sessions = &mut table.of_sessions;
            of_sessions.retain(|_, one| now.duration_since(one.used) < TIMEOUT);
        }
        let used = now;
        let one = SetOfTransaction { number, set, used };
        table.of_sessions.insert(session, one);
    }

    /// Returns the data set of a transaction. `None` if it did not begin on this server.
    pub fn find(&self, session: SessionId, number: i64) -> Option<DataSetId> {
        let mut table = lock(&self.sets);
        let found = table.of_sessions.get_mut(&session)?;
        found.used = Instant::now();
        (found.number == number).then_some(found.set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_transaction_of_a_session_counts() {
        let sets = TransactionSets::default();
        let session = SessionId::for_tests([1; 16]);
        sets.begin(session, 1, DataSetId(2));
        assert_eq!(sets.find(session, 1), Some(DataSetId(2)));
        assert_eq!(sets.find(session, 2), None);
        sets.begin(session, 2, DataSetId(0));
        assert_eq!(sets.find(session, 2), Some(DataSetId(0)));
        assert_eq!(sets.find(session, 1), None);
        assert_eq!(sets.find(SessionId::for_tests([2; 16]), 2), None);
    }
}
