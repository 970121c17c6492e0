//! Claims: reservations of unique keys by commits that are not in the log yet.
//!
//! A commit claims all its unique keys at once, checks whether the index contains them, appends to
//! the log, and releases the claim. Two concurrent commits of one key conflict here; a commit and
//! an older one conflict in the index. `_id`s above all earlier ones need no check: one comparison
//! decides for a whole batch.
//!
//! Keys are identified by their hashes. A collision makes two commits wait for each other
//! needlessly, without other effects.

use std::collections::HashMap;

use parking_lot::{Condvar, Mutex};
use windrow_fold::HashedKey;

use crate::ids::MapId;
use crate::lock_order::{HeldRank, Rank};
use crate::unique_keys::key_set::IdentityHasherBuilder;

/// The claimed keys of one commit. Dropping it releases them.
#[derive(Debug)]
pub struct Claim<'c> {
    claims: &'c Claims,
    id: ClaimId,
    keys: Vec<KeyHash>,
    /// The number of distinct hashes in `keys`.
    distinct: usize,
    /// The claim has a range of increasing `_id`s.
    has_range: bool,
    /// Set while the claim holds a key or a range.
    rank: Option<HeldRank>,
}

#[derive(Debug, Default)]
pub struct Claims {
    state: Mutex<ClaimsState>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct ClaimsState {
    last_id: ClaimId,
    keys: HashMap<KeyHash, ClaimId, IdentityHasherBuilder>,
    ranges: Vec<ClaimedRange>,
    /// The largest `_id` key that was ever claimed or is stored.
    largest: Vec<u8>,
}

/// Identifies a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ClaimId(u64);

/// The hash of a key and its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct KeyHash(u64);

/// The `_id` keys from `first` to `last`, of a batch of increasing ones.
#[derive(Debug)]
struct ClaimedRange {
    claim: ClaimId,
    first: Vec<u8>,
    last: Vec<u8>,
}

/// A key to claim, and its index.
#[derive(Clone, Copy, Debug)]
pub struct ClaimedKey<'k> {
    pub key: HashedKey<'k>,
    pub map: MapId,
    pub is_of_ids: bool,
}

impl ClaimedKey<'_> {
    fn hash(&self) -> KeyHash {
        KeyHash(self.key.hash ^ self.map.0.wrapping_mul(MAP_FACTOR))
    }
}

/// Distributes the ids of maps over the hashes: an odd number with irregular bits, from the golden
/// ratio.
const MAP_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The result of a claim.
#[derive(Debug)]
pub struct ClaimResult {
    /// Two of the keys have the same hash.
    pub has_duplicates: bool,
    /// The indexes of `_id`s that are above all earlier ones, so no document can have them.
    pub new_ids: Vec<usize>,
}

/// Clearing a table of up to this many entries takes no longer than removing one.
const CLEARED_FOR_ONE: usize = 64;

impl ClaimsState {
    /// Returns `true` if no claim exists.
    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty()
    }

    /// Returns [`ClaimResult::new_ids`], and records these keys as the largest.
    fn new_ids(&mut self, keys: &[ClaimedKey<'_>]) -> Vec<usize> {
        let is_new_id = |it: &ClaimedKey<'_>| it.is_of_ids && it.key.key > self.largest.as_slice();
        let numbered = keys.iter().enumerate();
        let new_ids = numbered.filter(|(_, it)| is_new_id(it));
        let new_ids: Vec<usize> = new_ids.map(|(number, _)| number).collect();
        let keys = new_ids.iter().map(|number| keys[*number].key.key);
        if let Some(largest) = keys.max() {
            self.largest = largest.to_vec();
        }
        new_ids
    }

    /// Removes the keys of one claim, of which `distinct` are distinct.
    fn release(&mut self, keys: &[KeyHash], distinct: usize) {
        debug_assert!(self.keys.len() >= distinct);
        let has_no_others = self.keys.len() == distinct;
        if has_no_others && self.keys.capacity() <= CLEARED_FOR_ONE * distinct {
            debug_assert!(keys.iter().all(|key| self.keys.contains_key(key)));
            self.keys.clear();
            return;
        }
        let before = self.keys.len();
        for key in keys {
            self.keys.remove(key);
        }
        debug_assert_eq!(
            self.keys.len() + distinct,
            before,
            "a claim is released that was not held, or twice"
        );
    }

    /// Returns `true` if a claim other than `own` holds the key.
    fn is_held(&self, own: ClaimId, claimed: &ClaimedKey<'_>) -> bool {
        let holder = self.keys.get(&claimed.hash());
        if holder.is_some_and(|holder| *holder != own) {
            return true;
        }
        let key = claimed.key.key;
        let holds = |range: &ClaimedRange| {
            range.claim != own && range.first.as_slice() <= key && key <= range.last.as_slice()
        };
        claimed.is_of_ids && self.ranges.iter().any(holds)
    }
}

impl Claims {
    /// Records that an `_id` key is stored.
    pub fn record_stored(&self, key: &[u8]) {
        let mut state = self.state.lock();
        if key > state.largest.as_slice() {
            state.largest = key.to_vec();
        }
    }

    /// Returns an empty claim, to which keys are added.
    pub fn begin(&self) -> Claim<'_> {
        let mut state = self.state.lock();
        state.last_id.0 += 1;
        Claim {
            claims: self,
            id: state.last_id,
            keys: Vec::new(),
            distinct: 0,
            has_range: false,
            rank: None,
        }
    }
}

impl Claim<'_> {
    /// Claims the `_id` keys from `first` to `last`, of a batch with increasing `_id`s, if all are
    /// above all earlier `_id`s. Then none of them can exist. Returns `false` otherwise.
    pub fn add_range(&mut self, first: &[u8], last: &[u8]) -> bool {
        let mut state = self.claims.state.lock();
        debug_assert!(first <= last && !self.has_range);
        if first <= state.largest.as_slice() && !state.largest.is_empty() {
            return false;
        }
        state.largest.clear();
        state.largest.extend_from_slice(last);
        state.ranges.push(ClaimedRange {
            claim: self.id,
            first: first.to_vec(),
            last: last.to_vec(),
        });
        self.has_range = true;
        self.hold_rank();
        true
    }

    /// Claims all keys at once, as the last step of the claim. Waits while another commit holds one
    /// of them. It holds none of them while it waits, so commits cannot deadlock.
    pub fn add(&mut self, keys: &[ClaimedKey<'_>]) -> ClaimResult {
        let mut state = self.claims.state.lock();
        while !state.is_empty() && keys.iter().any(|it| state.is_held(self.id, it)) {
            // The claim's own range contains no key for which another commit waits while it holds
            // keys.
            if self.rank.is_none() {
                HeldRank::check(Rank::Claim);
            }
            self.claims.released.wait(&mut state);
        }
        let before = state.keys.len();
        let hashes = keys.iter().map(ClaimedKey::hash);
        self.keys.extend(hashes.clone());
        state.keys.extend(hashes.map(|hash| (hash, self.id)));
        let distinct = state.keys.len() - before;
        self.distinct += distinct;
        let new_ids = state.new_ids(keys);
        drop(state);
        if !self.keys.is_empty() {
            self.hold_rank();
        }
        ClaimResult {
            has_duplicates: distinct < keys.len(),
            new_ids,
        }
    }

    /// Records that this thread holds a claim, for the check of the order of locks.
    fn hold_rank(&mut self) {
        self.rank
            .get_or_insert_with(|| HeldRank::unchecked(Rank::Claim));
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.has_range && self.keys.is_empty() {
            return;
        }
        let mut state = self.claims.state.lock();
        if self.has_range {
            let before = state.ranges.len();
            state.ranges.retain(|range| range.claim != self.id);
            debug_assert_eq!(state.ranges.len() + 1, before, "a claim has one range");
        }
        state.release(&self.keys, self.distinct);
        drop(state);
        self.claims.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(key: &[u8], map: MapId, is_of_ids: bool) -> ClaimedKey<'_> {
        let key = HashedKey::new(key);
        ClaimedKey {
            key,
            map,
            is_of_ids,
        }
    }

    #[test]
    fn increasing_ids_need_no_lookup() {
        let claims = Claims::default();
        claims.record_stored(b"b");
        let mut one = claims.begin();
        assert!(!one.add_range(b"a", b"c"));
        assert!(one.add_range(b"c", b"f"));
        drop(one);
        let mut two = claims.begin();
        let id = |key| claimed(key, MapId(1), true);
        let keys = [
            id(b"e"),
            id(b"f"),
            id(b"g"),
            id(b"h"),
            claimed(b"z", MapId(2), false),
        ];
        assert_eq!(two.add(&keys).new_ids, [2, 3]);
        drop(two);
        let new_ids = |keys: &[ClaimedKey<'_>]| claims.begin().add(keys).new_ids;
        assert_eq!(new_ids(&[id(b"k"), id(b"h"), id(b"i")]), [0, 2]);
        assert_eq!(new_ids(&[id(b"j"), id(b"l")]), [1]);
        assert!(new_ids(&[claimed(b"z", MapId(2), false)]).is_empty());
    }

    #[test]
    fn a_claimed_key_is_waited_for() {
        let claims = Claims::default();
        let keys = [
            claimed(b"j", MapId(2), false),
            claimed(b"k", MapId(2), false),
        ];
        let mut one = claims.begin();
        one.add(&keys[1..]);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| claims.begin().add(&keys));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished());
            // A waiting claim holds nothing.
            claims.begin().add(&keys[..1]);
            claims.begin().add(&[claimed(b"k", MapId(3), false)]);
            drop(one);
            waiting.join().unwrap();
        });
        assert!(claims.state.lock().keys.is_empty());
    }

    #[test]
    fn equal_keys_in_one_claim_are_reported_and_released_once() {
        let claims = Claims::default();
        let key = |key| claimed(key, MapId(2), false);
        let mut one = claims.begin();
        assert!(one.add(&[key(b"a"), key(b"b"), key(b"a")]).has_duplicates);
        let mut two = claims.begin();
        assert!(
            !two.add(&[key(b"c"), claimed(b"a", MapId(3), false)])
                .has_duplicates
        );
        drop(one);
        assert_eq!(claims.state.lock().keys.len(), 2);
        assert!(!claims.begin().add(&[key(b"a")]).has_duplicates);
        drop(two);
        assert!(claims.state.lock().keys.is_empty());
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_thread_with_a_claim_does_not_wait_for_another() {
        let claims = Claims::default();
        let mut one = claims.begin();
        one.add(&[claimed(b"a", MapId(2), false)]);
        let wait = || drop(claims.begin().add(&[claimed(b"a", MapId(2), false)]));
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait));
        assert!(waited.is_err());
        drop(one);
        wait();
    }

    #[test]
    fn a_claimed_range_is_waited_for() {
        let claims = Claims::default();
        let mut one = claims.begin();
        assert!(one.add_range(b"b", b"d"));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| claims.begin().add(&[claimed(b"c", MapId(1), true)]));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished());
            drop(one);
            assert!(waiting.join().unwrap().new_ids.is_empty());
        });
    }
}
