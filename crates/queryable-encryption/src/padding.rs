//! Padding of range fields. Compaction leaves an anchor for each edge, so the number of anchors
//! discloses how many edges the values of a field share. Padding documents hide this: together with
//! them, there are as many anchors as if no edge was shared.
//!
//! ```text
//! root         the client's anchorPaddingToken
//! document     {_id: F(F(root, 1), 0 | number), value: E(F(root, 2), 0 | 0)}
//! ```
//!
//! Padding documents are thus the anchors of a counter without insertions.

use crate::compaction::CounterChange;
use crate::counter::{Counter, CounterState};
use crate::error::Error;

/// The numbers of edges of a field that a compaction has processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeCounts {
    /// Documents in the compaction collection: one for each edge of an inserted value.
    pub records: u64,
    /// Documents in the compaction collection for leaves: one for each inserted value.
    pub leaf_records: u64,
    /// New anchors.
    pub anchors: u64,
    /// New anchors of leaves.
    pub leaf_anchors: u64,
}

impl EdgeCounts {
    /// Adds the counts of another part of the compaction.
    pub fn add(&mut self, other: EdgeCounts) {
        self.records += other.records;
        self.leaf_records += other.leaf_records;
        self.anchors += other.anchors;
        self.leaf_anchors += other.leaf_anchors;
    }

    /// Returns the number of padding documents, multiplied by `factor`. They hide only a part of
    /// the counts if it is below 1.
    pub fn padding(&self, factor: f64) -> u64 {
        // All values of a field have the same number of edges, one of which is the leaf.
        let half = self.leaf_records / 2;
        let edges = (self.records + half).checked_div(self.leaf_records);
        let all = edges.unwrap_or_default().saturating_mul(self.leaf_anchors);
        (factor * all.saturating_sub(self.anchors) as f64).ceil() as u64
    }
}

impl Counter {
    /// Returns the change that replaces padding documents by the null anchor. It deletes at most
    /// `delete_max` of them.
    pub fn clean_up_padding(
        &self,
        state: CounterState,
        delete_max: u64,
    ) -> Result<CounterChange, Error> {
        let covered = state.null_anchor.unwrap_or_default();
        let last = state.anchor.min(covered.saturating_add(delete_max));
        let mut change = CounterChange {
            is_complete: last == state.anchor,
            ..CounterChange::default()
        };
        if last > covered {
            let null = Some(self.null_anchor(last, 0)?);
            match state.null_anchor {
                None => change.insert = null,
                Some(_) => change.replace = null,
            }
            let numbers = covered + 1..=last;
            change.delete = numbers.map(|number| self.anchor_id(number)).collect();
        }
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::State;
    use crate::token::Token;

    #[test]
    fn padding_makes_up_for_shared_edges() {
        let three_values = EdgeCounts {
            records: 24,
            leaf_records: 3,
            anchors: 15,
            leaf_anchors: 3,
        };
        assert_eq!(three_values.padding(1.0), 9);
        assert_eq!(three_values.padding(0.5), 5);
        assert_eq!(three_values.padding(0.0), 0);
        assert_eq!(EdgeCounts::default().padding(1.0), 0);
        // Two insertions of one value share everything, and a compaction may see parts of values.
        let mut counts = EdgeCounts {
            records: 16,
            leaf_records: 2,
            anchors: 8,
            leaf_anchors: 1,
        };
        assert_eq!(counts.padding(1.0), 0);
        counts.add(EdgeCounts {
            records: 3,
            anchors: 3,
            ..EdgeCounts::default()
        });
        assert_eq!(counts.padding(1.0), 0);
    }

    #[test]
    fn cleanup_deletes_padding() {
        let counter = Counter::new(&Token::new([5; 32]));
        let mut state = State::default();
        let mut number = 0;
        for _ in 0..3 {
            for _ in 0..7 {
                number += 1;
                state.insert(counter.anchor(number, 0).unwrap());
            }
            loop {
                let found = state.find(&counter).unwrap();
                assert_eq!((found.anchor, found.count), (number, 0));
                let change = counter.clean_up_padding(found, 3).unwrap();
                let null = change.insert.into_iter().chain(change.replace);
                null.for_each(|null| state.insert(null));
                for id in change.delete {
                    assert!(state.0.remove(&id).is_some());
                }
                if change.is_complete {
                    break;
                }
            }
            assert_eq!(state.0.len(), 1);
        }
        let found = state.find(&counter).unwrap();
        let change = counter.clean_up_padding(found, 3).unwrap();
        assert!(change.is_complete && change.insert.is_none() && change.replace.is_none());
    }
}
