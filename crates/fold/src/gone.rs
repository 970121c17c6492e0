//! Stretches of a map of which nothing is left: who takes things out at one end, as from a queue, leaves
//! what is gone there, and whoever looks for the first that is left would go through all of it each time.
//!
//! Who has gone through many entries that are gone notes it, with the position at which he read. Who reads
//! at that position or a later one seeks behind the stretch in all sources that have nothing newer: what
//! came there since is in the others, and what they have was deleted by them alone, since younger sources
//! have younger entries. So what is noted stays true whatever is written, folded and merged.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::cursor::Direction;
use crate::entry::compare_keys;

/// See the module. One for a map.
#[derive(Debug, Default)]
pub struct Gone {
    any: AtomicBool,
    /// Those noted last stand last.
    stretches: RwLock<Vec<Stretch>>,
}

/// A key and an id.
pub(crate) type Place = (Vec<u8>, u64);

/// Going from one place, nothing was left before another one, or at all.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub direction: Direction,
    pub from: Place,
    pub to: Option<Place>,
    /// At this position of the log.
    pub position: u64,
}

/// So many are remembered: a queue has one, one with priorities or of several owners some.
const STRETCHES_MAX: usize = 16;
/// Longer keys are not worth it.
const KEY_BYTES_MAX: usize = 1 << 10;

impl Stretch {
    /// Whether a place is in it.
    fn has(&self, key: &[u8], id: u64) -> bool {
        let compare = |place: &Place| compare_keys(key, &place.0).then(id.cmp(&place.1));
        let (is_behind, is_before) = match self.direction {
            Direction::Forward => (
                compare(&self.from).is_ge(),
                self.to.as_ref().is_none_or(|to| compare(to).is_lt()),
            ),
            Direction::Backward => (
                compare(&self.from).is_le(),
                self.to.as_ref().is_none_or(|to| compare(to).is_gt()),
            ),
        };
        is_behind && is_before
    }
}

impl Gone {
    /// The newest stretch that a place is in, for who reads at a position.
    pub(crate) fn around(
        &self,
        direction: Direction,
        key: &[u8],
        id: u64,
        position: u64,
    ) -> Option<Stretch> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let stretches = self.stretches.read();
        let mut known = stretches.iter().rev();
        let found = known
            .find(|it| it.direction == direction && it.position <= position && it.has(key, id));
        found.cloned()
    }

    pub(crate) fn note(&self, new: Stretch) {
        let ends = std::iter::once(&new.from).chain(&new.to);
        if ends.map(|place| place.0.len()).max() > Some(KEY_BYTES_MAX) {
            return;
        }
        let mut stretches = self.stretches.write();
        // What began at the same place was shorter, or is older.
        stretches.retain(|it| it.direction != new.direction || it.from != new.from);
        if stretches.len() == STRETCHES_MAX {
            stretches.remove(0);
        }
        stretches.push(new);
        self.any.store(true, Ordering::Release);
    }

    /// Forgets all: what was wrong in the map is made right.
    pub fn forget(&self) {
        self.stretches.write().clear();
        self.any.store(false, Ordering::Release);
    }
}
