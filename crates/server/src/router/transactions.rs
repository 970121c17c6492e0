//! The data sets of transactions: that of the first command. All others have to be for databases of
//! the same one.

use super::recent_table::RecentTable;
use crate::placement::DataSetId;
use crate::sessions::{SessionId, TIMEOUT};

/// The newest transaction of each session.
#[derive(Debug)]
pub struct TransactionSets {
    newest: RecentTable<SessionId, SetOfTransaction>,
}

#[derive(Clone, Copy, Debug)]
struct SetOfTransaction {
    number: i64,
    set: DataSetId,
}

impl Default for TransactionSets {
    fn default() -> TransactionSets {
        TransactionSets {
            newest: RecentTable::new(TIMEOUT),
        }
    }
}

impl TransactionSets {
    /// Records the data set of a transaction that begins.
    pub fn begin(&self, session: SessionId, number: i64, set: DataSetId) {
        self.newest
            .insert(session, SetOfTransaction { number, set });
    }

    /// Returns the data set of a transaction. `None` if it did not begin on this server.
    pub fn find(&self, session: SessionId, number: i64) -> Option<DataSetId> {
        let newest = self.newest.get(&session)?;
        (newest.number == number).then_some(newest.set)
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
