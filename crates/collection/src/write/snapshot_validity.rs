//! Tracks whether documents that were read at a snapshot are unchanged, so they need not be read
//! again once they are locked.

#[cfg(debug_assertions)]
use std::collections::HashSet;
use std::sync::Arc;

use windrow_fold::Position;

use crate::generation::Generation;
use crate::record::Operation;
#[cfg(debug_assertions)]
use windrow_fold::RecordId;

/// Records if other writers have changed documents since a snapshot.
#[derive(Debug)]
pub(super) struct SnapshotValidity {
    /// No other writer has until this position.
    until: Position,
    /// The positions of the batch's own commits after `until`.
    own: Vec<Position>,
    /// The documents that the batch has visited. At a second visit, the batch itself may have
    /// changed the snapshot's version.
    #[cfg(debug_assertions)]
    visited: HashSet<RecordId>,
}

impl SnapshotValidity {
    /// Starts tracking at the position of a snapshot.
    pub fn since(snapshot: Position) -> SnapshotValidity {
        SnapshotValidity {
            until: snapshot,
            own: Vec::new(),
            #[cfg(debug_assertions)]
            visited: HashSet::new(),
        }
    }

    /// Returns `true` if this is the first visit of a document.
    #[cfg(debug_assertions)]
    pub fn is_first_visit(&mut self, id: RecordId) -> bool {
        self.visited.insert(id)
    }

    /// Records the position of the batch's own commit.
    pub fn record_own(&mut self, position: Position) {
        self.own.push(position);
    }

    /// Returns `true` if no other writer has changed or deleted a document until now. `generations`
    /// are those of the collection, oldest first. After the first `false` it returns `false` for
    /// ever, as a fold may remove the commits to check.
    pub fn holds<'g>(
        &mut self,
        generations: impl IntoIterator<Item = &'g Arc<Generation>>,
    ) -> bool {
        for (place, generation) in generations.into_iter().enumerate() {
            let is_known = place > 0 || generation.start() <= self.until;
            if !is_known || !self.holds_in(generation) {
                return false;
            }
        }
        let until = self.until;
        self.own.retain(|position| *position > until);
        true
    }

    fn holds_in(&mut self, generation: &Generation) -> bool {
        for commit in generation.commits_since(self.until) {
            let mut operations = commit.operations.iter();
            let inserts = operations.all(|one| matches!(one, Operation::Insert { .. }));
            if !inserts && !self.own.contains(&commit.position) {
                return false;
            }
            self.until = commit.position;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use windrow_fold::RecordId;

    use super::*;
    use crate::record::Commit;

    fn generation(start: u64, commits: &[(u64, Operation)]) -> Arc<Generation> {
        let generation = Generation::new(Position(start), None, &Arc::default());
        push(&generation, commits);
        Arc::new(generation)
    }

    fn push(generation: &Generation, commits: &[(u64, Operation)]) {
        for (position, operation) in commits {
            generation.push(Commit {
                position: Position(*position),
                operations: vec![operation.clone()],
                bytes: 1,
            });
        }
    }

    fn insert() -> Operation {
        Operation::Insert {
            first: RecordId(1),
            documents: Bytes::new(),
            hashes: Vec::new(),
        }
    }

    fn delete() -> Operation {
        Operation::Delete {
            id: RecordId(1),
            changes: Vec::new(),
            detail: Bytes::new(),
        }
    }

    #[test]
    fn only_changes_by_others_invalidate() {
        let active = generation(5, &[(6, delete()), (7, insert())]);
        let mut validity = SnapshotValidity::since(Position(6));
        assert!(validity.holds([&active]));
        push(&active, &[(8, delete())]);
        validity.record_own(Position(8));
        assert!(validity.holds([&active]));
        push(&active, &[(9, insert()), (10, delete())]);
        assert!(!validity.holds([&active]));
        assert!(!validity.holds([&active]));
        assert!(!SnapshotValidity::since(Position(5)).holds([&active]));
        assert!(SnapshotValidity::since(Position(10)).holds([&active]));
    }

    #[test]
    fn a_fold_of_unchecked_commits_invalidates() {
        let frozen = generation(0, &[(3, delete()), (6, delete())]);
        let next = generation(6, &[(7, insert())]);
        assert!(SnapshotValidity::since(Position(6)).holds([&frozen, &next]));
        assert!(!SnapshotValidity::since(Position(4)).holds([&frozen, &next]));
        assert!(SnapshotValidity::since(Position(6)).holds([&next]));
        assert!(!SnapshotValidity::since(Position(4)).holds([&next]));
        let mut own = SnapshotValidity::since(Position(4));
        own.record_own(Position(6));
        assert!(own.holds([&frozen, &next]));
        assert!(own.holds([&next]));
        // A commit that was folded before the check may have contained changes.
        let mut unmet = SnapshotValidity::since(Position(4));
        unmet.record_own(Position(6));
        assert!(!unmet.holds([&next]));
    }
}
