//! Claims: which unique keys are on their way into the log.
//!
//! A commit claims its unique keys, then looks whether they are there already, then appends, then
//! lets go. Two commits that want the same key meet here; a commit and an older one meet in the map.
//! `_id`s that are larger than every one before need no look: one comparison settles a whole batch.

use std::collections::HashMap;

use parking_lot::{Condvar, Mutex};

/// The keys of one commit, held until it drops them.
#[derive(Debug)]
pub struct Claim<'c> {
    claims: &'c Claims,
    ticket: u64,
    keys: Vec<(u64, Vec<u8>)>,
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
    /// Map and key → ticket.
    keys: HashMap<(u64, Vec<u8>), u64>,
    ranges: Vec<(u64, Vec<u8>, Vec<u8>)>,
    /// The largest `_id` key that was ever claimed or is stored.
    largest: Vec<u8>,
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
            keys: Vec::new(),
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

    /// Claims one key of a map. Waits while another commit holds it: all commits add their keys in the
    /// order of map and key, so they cannot wait for each other in a circle.
    pub fn add(&mut self, map: u64, key: &[u8], is_of_ids: bool) -> Added {
        let mut state = self.claims.state.lock();
        let place = (map, key.to_vec());
        loop {
            let holder = state.keys.get(&place).copied();
            if holder == Some(self.ticket) {
                return Added::Before;
            }
            let in_range = |(ticket, first, last): &(u64, Vec<u8>, Vec<u8>)| {
                *ticket != self.ticket && first.as_slice() <= key && key <= last.as_slice()
            };
            let ranged = is_of_ids && state.ranges.iter().any(in_range);
            if holder.is_none() && !ranged {
                break;
            }
            self.claims.released.wait(&mut state);
        }
        state.keys.insert(place.clone(), self.ticket);
        self.keys.push(place);
        if is_of_ids && key > state.largest.as_slice() {
            state.largest.clear();
            state.largest.extend_from_slice(key);
            return Added::Unheard;
        }
        Added::LookUp
    }
}

/// What became of a key that was to be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is claimed, and nobody can have it.
    Unheard,
    /// It is claimed; whether somebody has it must be looked up.
    LookUp,
    /// This claim had it already.
    Before,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.claims.state.lock();
        if self.range.is_some() {
            state.ranges.retain(|(ticket, ..)| *ticket != self.ticket);
        }
        for place in self.keys.drain(..) {
            state.keys.remove(&place);
        }
        drop(state);
        self.claims.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_ids_need_no_look() {
        let claims = Claims::default();
        claims.note_stored(b"b");
        let mut one = claims.begin();
        assert!(!one.grow(b"a", b"c"));
        assert!(one.grow(b"c", b"f"));
        drop(one);
        let mut two = claims.begin();
        assert_eq!(two.add(1, b"e", true), Added::LookUp);
        assert_eq!(two.add(1, b"e", true), Added::Before);
        assert_eq!(two.add(1, b"g", true), Added::Unheard);
    }

    #[test]
    fn a_key_that_is_held_is_waited_for() {
        let claims = Claims::default();
        let mut one = claims.begin();
        assert_eq!(one.add(2, b"k", false), Added::LookUp);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| claims.begin().add(2, b"k", false));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished());
            drop(one);
            assert_eq!(waiting.join().unwrap(), Added::LookUp);
        });
    }
}
