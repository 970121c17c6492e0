//! Claims: which unique keys are on their way into the log.
//!
//! A commit claims its unique keys, all at once, then looks whether they are there already, then
//! appends, then lets go. Two commits that want the same key meet here; a commit and an older one meet
//! in the map. `_id`s that are larger than every one before need no look: one comparison settles a
//! whole batch.
//!
//! Keys are known by their hashes. Two with one hash wait for each other for nothing, and that is all.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::{Condvar, Mutex};
use windrow_fold::HashedKey;

use crate::keys::ByHash;

/// The keys of one commit, held until it drops them.
#[derive(Debug)]
pub struct Claim<'c> {
    claims: &'c Claims,
    ticket: u64,
    places: Vec<u64>,
    /// The first and last key of a batch of growing `_id`s.
    range: Option<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug, Default)]
pub struct Claims {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_ticket: u64,
    /// Place → ticket.
    places: HashMap<u64, u64, ByHash>,
    ranges: Vec<(u64, Vec<u8>, Vec<u8>)>,
    /// The largest `_id` key that was ever claimed or is stored.
    largest: Vec<u8>,
}

/// A key of a map that is to be claimed.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'k> {
    pub key: HashedKey<'k>,
    pub map: u64,
    pub is_of_ids: bool,
}

impl Wanted<'_> {
    fn place(&self) -> u64 {
        self.key.hash ^ self.map.wrapping_mul(ODD)
    }
}

/// Spreads the numbers of maps.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

impl State {
    /// Whether another commit holds the key.
    fn is_held(&self, ticket: u64, wanted: &Wanted<'_>) -> bool {
        let holder = self.places.get(&wanted.place());
        if holder.is_some_and(|holder| *holder != ticket) {
            return true;
        }
        let key = wanted.key.key;
        let holds = |(holder, first, last): &(u64, Vec<u8>, Vec<u8>)| {
            *holder != ticket && first.as_slice() <= key && key <= last.as_slice()
        };
        wanted.is_of_ids && self.ranges.iter().any(holds)
    }
}

impl Claims {
    /// Tells of an `_id` key that is stored.
    pub fn note_stored(&self, key: &[u8]) {
        let mut state = self.state.lock();
        if key > state.largest.as_slice() {
            state.largest = key.to_vec();
        }
    }

    /// An empty claim, to which keys are added.
    pub fn begin(&self) -> Claim<'_> {
        let mut state = self.state.lock();
        state.next_ticket += 1;
        Claim {
            claims: self,
            ticket: state.next_ticket,
            places: Vec::new(),
            range: None,
        }
    }
}

impl Claim<'_> {
    /// Claims `_id` keys from the first to the last, which grow, where all are larger than every
    /// `_id` before: then none of them can be there. False where that is not so.
    pub fn grow(&mut self, first: &[u8], last: &[u8]) -> bool {
        let mut state = self.claims.state.lock();
        if first <= state.largest.as_slice() && !state.largest.is_empty() {
            return false;
        }
        state.largest.clear();
        state.largest.extend_from_slice(last);
        state
            .ranges
            .push((self.ticket, first.to_vec(), last.to_vec()));
        self.range = Some((first.to_vec(), last.to_vec()));
        true
    }

    /// Claims keys, which are in order, all at once, as the last thing that is claimed: waits while
    /// another commit holds one of them, and holds none of them meanwhile, so that commits cannot wait
    /// for each other in a circle. `_id`s come first. Returns which of them are larger than every one
    /// before: nobody can have these.
    pub fn add(&mut self, wanted: &[Wanted<'_>]) -> Range<usize> {
        let mut state = self.claims.state.lock();
        while wanted.iter().any(|it| state.is_held(self.ticket, it)) {
            self.claims.released.wait(&mut state);
        }
        self.places.extend(wanted.iter().map(Wanted::place));
        let held = self.places.iter().map(|place| (*place, self.ticket));
        state.places.extend(held);
        let ids = wanted.partition_point(|it| it.is_of_ids);
        let largest = state.largest.as_slice();
        let first = wanted.partition_point(|it| it.is_of_ids && it.key.key <= largest);
        if let Some(last) = wanted.get(first..ids).and_then(<[_]>::last) {
            state.largest = last.key.key.to_vec();
        }
        first..ids
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.range.is_none() && self.places.is_empty() {
            return;
        }
        let mut state = self.claims.state.lock();
        if self.range.is_some() {
            state.ranges.retain(|(ticket, ..)| *ticket != self.ticket);
        }
        for place in &self.places {
            state.places.remove(place);
        }
        drop(state);
        self.claims.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(key: &[u8], map: u64, is_of_ids: bool) -> Wanted<'_> {
        let key = HashedKey::of(key);
        Wanted {
            key,
            map,
            is_of_ids,
        }
    }

    #[test]
    fn growing_ids_need_no_look() {
        let claims = Claims::default();
        claims.note_stored(b"b");
        let mut one = claims.begin();
        assert!(!one.grow(b"a", b"c"));
        assert!(one.grow(b"c", b"f"));
        drop(one);
        let mut two = claims.begin();
        let id = |key| wanted(key, 1, true);
        let keys = [
            id(b"e"),
            id(b"f"),
            id(b"g"),
            id(b"h"),
            wanted(b"z", 2, false),
        ];
        assert_eq!(two.add(&keys), 2..4);
        drop(two);
        assert_eq!(claims.begin().add(&[id(b"h"), id(b"i")]), 1..2);
        assert_eq!(claims.begin().add(&[wanted(b"z", 2, false)]), 0..0);
    }

    #[test]
    fn keys_that_are_held_are_waited_for() {
        let claims = Claims::default();
        let keys = [wanted(b"j", 2, false), wanted(b"k", 2, false)];
        let mut one = claims.begin();
        one.add(&keys[1..]);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| claims.begin().add(&keys));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished());
            // Who waits holds nothing.
            claims.begin().add(&keys[..1]);
            claims.begin().add(&[wanted(b"k", 3, false)]);
            drop(one);
            waiting.join().unwrap();
        });
        assert!(claims.state.lock().places.is_empty());
    }

    #[test]
    fn a_range_is_waited_for() {
        let claims = Claims::default();
        let mut one = claims.begin();
        assert!(one.grow(b"b", b"d"));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| claims.begin().add(&[wanted(b"c", 1, true)]));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished());
            drop(one);
            assert!(waiting.join().unwrap().is_empty());
        });
    }
}
