//! The counter of a value: the number of its insertions, in documents of the state collection
//! (ESC).
//!
//! ```text
//! one insertion    _id: F(tag key, count)
//! anchor           _id: F(tag key, 0 | number)    value: E(value key, 0 | count)
//! null anchor      _id: F(tag key, 0 | 0)         value: E(value key, number | count)
//! ```
//! Counts and numbers of anchors begin at 1 and have no gaps. An anchor replaces all insertions up
//! to its count, whose documents compaction deletes. The null anchor replaces all anchors up to its
//! number, which cleanup deletes. The count is therefore found with few lookups: of the latest
//! anchor, then of the latest insertion after it, each by a search with steps that double.

use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};

use crate::cipher;
use crate::error::Error;
use crate::payload::{FindEdge, InsertEntry};
use crate::reader::GENERIC;
use crate::token::{TOKEN_BYTES, Token, TokenFunction};

/// The `_id` of a document in the state collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub [u8; TOKEN_BYTES]);

impl StateId {
    /// Returns the id as a value.
    pub fn to_value(self) -> Value {
        Value::Binary {
            subtype: GENERIC,
            bytes: self.0.to_vec(),
        }
    }
}

/// Returns the document with an id, or `None`.
pub type Lookup<'a, E> = dyn FnMut(StateId) -> Result<Option<DocumentBuf>, E> + 'a;

/// The counter of one value with one contention factor.
pub struct Counter {
    ids: TokenFunction,
    values: Token,
}

/// The state of a counter, as its documents have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterState {
    /// The number of insertions of the value.
    pub count: u64,
    /// The number of the latest anchor, or 0.
    pub anchor: u64,
    /// The number up to which the null anchor replaces anchors. `None` if there is no null anchor.
    pub null_anchor: Option<u64>,
    /// The count of the latest anchor, or 0. The documents of later insertions exist.
    pub anchored: u64,
}

impl Counter {
    /// Creates the counter of a value. `esc` is the token of the value with its contention factor.
    pub(crate) fn new(esc: &Token) -> Counter {
        Counter {
            ids: esc.derive(1).function(),
            values: esc.derive(2),
        }
    }

    /// Returns the counter of an inserted value.
    pub fn from_insertion(entry: &InsertEntry) -> Counter {
        Counter::new(&entry.esc)
    }

    /// Returns the counter of a searched value with a contention factor.
    pub(crate) fn from_edge(edge: &FindEdge, factor: u64) -> Counter {
        Counter::new(&edge.esc.derive(factor))
    }

    /// Returns the id of an insertion.
    pub fn insertion_id(&self, count: u64) -> StateId {
        StateId(self.ids.compute_number(count))
    }

    /// Returns the id of an anchor; the id of the null anchor if the number is 0.
    pub fn anchor_id(&self, number: u64) -> StateId {
        StateId(self.ids.compute_pair(0, number))
    }

    /// Returns the document of an insertion.
    pub fn insertion(&self, count: u64) -> DocumentBuf {
        doc! { "_id": (self.insertion_id(count).to_value()) }
    }

    /// Returns the document of an anchor.
    pub fn anchor(&self, number: u64, count: u64) -> Result<DocumentBuf, Error> {
        self.document(self.anchor_id(number), 0, count)
    }

    /// Returns the document of the null anchor, which replaces the anchors up to `number`.
    pub fn null_anchor(&self, number: u64, count: u64) -> Result<DocumentBuf, Error> {
        self.document(self.anchor_id(0), number, count)
    }

    fn document(&self, id: StateId, first: u64, second: u64) -> Result<DocumentBuf, Error> {
        let plaintext = [first.to_le_bytes(), second.to_le_bytes()].concat();
        let bytes = cipher::encrypt(&self.values, &plaintext)?;
        let value = Value::Binary {
            subtype: GENERIC,
            bytes,
        };
        Ok(doc! { "_id": (id.to_value()), "value": value })
    }

    /// Returns the two numbers of an anchor.
    fn read(&self, document: Document<'_>) -> Result<(u64, u64), Error> {
        let invalid = || Error::damaged("an anchor has no valid value");
        let Some(ValueRef::Binary { bytes, .. }) = document.get("value") else {
            return Err(invalid());
        };
        let plaintext = cipher::decrypt(&self.values, bytes).ok_or_else(invalid)?;
        let (first, rest) = plaintext.split_first_chunk().ok_or_else(invalid)?;
        let second = rest.try_into().map_err(|_| invalid())?;
        Ok((u64::from_le_bytes(*first), u64::from_le_bytes(second)))
    }

    /// Finds the count and the latest anchor.
    pub fn find<E: From<Error>>(&self, lookup: &mut Lookup<'_, E>) -> Result<CounterState, E> {
        let mut state = CounterState::default();
        if let Some(null) = lookup(self.anchor_id(0))? {
            let (number, count) = self.read(null.as_document())?;
            state.null_anchor = Some(number);
            (state.anchor, state.anchored) = (number, count);
        }
        let first = state.anchor;
        state.anchor = last_after(first, |number| {
            Ok::<_, E>(lookup(self.anchor_id(number))?.is_some())
        })?;
        if state.anchor > first {
            let latest = lookup(self.anchor_id(state.anchor))?;
            let latest = latest.ok_or_else(|| Error::damaged("an anchor has disappeared"))?;
            (_, state.anchored) = self.read(latest.as_document())?;
        }
        state.count = last_after(state.anchored, |count| {
            Ok::<_, E>(lookup(self.insertion_id(count))?.is_some())
        })?;
        Ok(state)
    }
}

/// Returns the last number that exists. All numbers from `start + 1` up to it exist, and none after
/// it. Returns `start` if there are none.
fn last_after<E: From<Error>>(
    start: u64,
    mut exists: impl FnMut(u64) -> Result<bool, E>,
) -> Result<u64, E> {
    let too_large = || E::from(Error::damaged(format!("a counter is at {start}")));
    let at = |step: u64| start.checked_add(step).ok_or_else(too_large);
    let (mut below, mut step) = (0, 1_u64);
    while exists(at(step)?)? {
        below = step;
        step = step.checked_mul(2).ok_or_else(too_large)?;
    }
    let mut above = step;
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if exists(at(middle)?)? {
            below = middle;
        } else {
            above = middle;
        }
    }
    at(below)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A state collection in memory.
    #[derive(Default)]
    pub(crate) struct State(pub(crate) BTreeMap<StateId, DocumentBuf>);

    impl State {
        pub(crate) fn insert(&mut self, document: DocumentBuf) {
            let Some(ValueRef::Binary { bytes, .. }) = document.get("_id") else {
                panic!("{document}");
            };
            let id = StateId(bytes.try_into().unwrap());
            self.0.insert(id, document);
        }

        pub(crate) fn find(&self, counter: &Counter) -> Result<CounterState, Error> {
            counter.find(&mut |id| Ok(self.0.get(&id).cloned()))
        }
    }

    fn counter() -> Counter {
        Counter::new(&Token::new([3; 32]))
    }

    #[test]
    fn the_last_number_is_found_with_few_lookups() {
        for last in (0..70).chain([1_000, 1_023, 1_024, 1_025, 1_000_000]) {
            for start in [0, 5] {
                let mut lookups = 0;
                let found = last_after(start, |number| {
                    lookups += 1;
                    Ok::<_, Error>(number <= start + last)
                });
                assert_eq!(found, Ok(start + last));
                assert!(lookups <= 2 + 2 * last.max(1).ilog2(), "{last}: {lookups}");
            }
        }
        let endless = last_after(1, |_| Ok::<_, Error>(true));
        assert!(matches!(endless, Err(Error::Damaged(_))));
    }

    #[test]
    fn counters_are_found_in_every_state() {
        let counter = counter();
        let mut state = State::default();
        assert_eq!(state.find(&counter), Ok(CounterState::default()));
        for count in 1..=5 {
            state.insert(counter.insertion(count));
        }
        let found = state.find(&counter).unwrap();
        assert_eq!((found.count, found.anchor, found.anchored), (5, 0, 0));
        state.insert(counter.anchor(1, 5).unwrap());
        for count in 1..=5 {
            state.0.remove(&counter.insertion_id(count));
        }
        let found = state.find(&counter).unwrap();
        assert_eq!((found.count, found.anchor, found.anchored), (5, 1, 5));
        state.insert(counter.insertion(6));
        let found = state.find(&counter).unwrap();
        assert_eq!((found.count, found.anchor, found.anchored), (6, 1, 5));
        state.insert(counter.null_anchor(1, 6).unwrap());
        state.0.remove(&counter.anchor_id(1));
        let found = state.find(&counter).unwrap();
        assert_eq!((found.count, found.anchor, found.anchored), (6, 1, 6));
        assert_eq!(found.null_anchor, Some(1));
        state.insert(counter.anchor(2, 9).unwrap());
        let found = state.find(&counter).unwrap();
        assert_eq!((found.count, found.anchor, found.anchored), (9, 2, 9));
        let other = Counter::new(&Token::new([4; 32]));
        assert_eq!(state.find(&other), Ok(CounterState::default()));
    }

    #[test]
    fn damaged_anchors_are_errors() {
        let counter = counter();
        for value in [
            Value::from(1),
            Value::Binary {
                subtype: 0,
                bytes: vec![1; 20],
            },
        ] {
            let mut state = State::default();
            state.insert(doc! { "_id": (counter.anchor_id(0).to_value()), "value": value });
            assert!(matches!(state.find(&counter), Err(Error::Damaged(_))));
        }
        let mut state = State::default();
        state.insert(doc! { "_id": (counter.anchor_id(1).to_value()) });
        assert!(matches!(state.find(&counter), Err(Error::Damaged(_))));
    }
}
