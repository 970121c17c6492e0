//! Locks that are taken in one order, so that threads cannot wait for each other in a circle. Where
//! assertions are on, each thread checks the order when it takes one.

#[cfg(debug_assertions)]
use std::cell::RefCell;

use parking_lot::{Mutex, MutexGuard};

/// Where a lock stands in the order of ARCHITECTURE.md. A thread takes only locks of higher ranks than
/// all that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Naming,
    /// Folds and merges: no thread holds the locks of both.
    Maintenance,
    CatalogChange,
}

/// A lock with its rank.
pub(crate) struct OrderedLock {
    rank: Rank,
    lock: Mutex<()>,
}

/// Holds an [`OrderedLock`] until it is dropped.
pub(crate) struct OrderedGuard<'l> {
    _guard: MutexGuard<'l, ()>,
    _held: Held,
}

impl OrderedLock {
    pub fn new(rank: Rank) -> OrderedLock {
        OrderedLock {
            rank,
            lock: Mutex::default(),
        }
    }

    pub fn lock(&self) -> OrderedGuard<'_> {
        // Checked before the wait: otherwise a circle would stop the thread before it is found.
        let held = Held::new(self.rank);
        OrderedGuard {
            _guard: self.lock.lock(),
            _held: held,
        }
    }

    /// Does not wait, so that any order will do.
    pub fn try_lock(&self) -> Option<OrderedGuard<'_>> {
        let guard = self.lock.try_lock()?;
        Some(OrderedGuard {
            _guard: guard,
            _held: Held::unchecked(self.rank),
        })
    }

    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// The ranks of the locks that this thread holds.
    static RANKS: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
}

/// A rank among those that this thread holds; nothing where assertions are off.
struct Held {
    #[cfg(debug_assertions)]
    rank: Rank,
}

#[cfg(debug_assertions)]
impl Held {
    fn new(rank: Rank) -> Held {
        let highest = RANKS.with_borrow(|ranks| ranks.iter().max().copied());
        assert!(
            highest < Some(rank),
            "the lock {rank:?} is taken by a thread that holds {highest:?}"
        );
        Held::unchecked(rank)
    }

    fn unchecked(rank: Rank) -> Held {
        RANKS.with_borrow_mut(|ranks| ranks.push(rank));
        Held { rank }
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        RANKS.with_borrow_mut(|ranks| {
            let place = ranks.iter().rposition(|rank| *rank == self.rank);
            debug_assert!(place.is_some(), "a lock is released by another thread");
            if let Some(place) = place {
                ranks.remove(place);
            }
        });
    }
}

/// Does what another thread could do meanwhile, as a simulation does within a fold: the locks of this
/// thread do not count.
#[cfg(debug_assertions)]
pub(crate) fn as_another_thread(work: impl FnOnce()) {
    let ranks = RANKS.take();
    work();
    RANKS.set(ranks);
}

#[cfg(not(debug_assertions))]
pub(crate) fn as_another_thread(work: impl FnOnce()) {
    work();
}

#[cfg(not(debug_assertions))]
impl Held {
    fn new(_: Rank) -> Held {
        Held {}
    }

    fn unchecked(_: Rank) -> Held {
        Held {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(debug_assertions)]
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    #[cfg(debug_assertions)]
    fn locks_are_taken_in_order() {
        let ranks = [Rank::Naming, Rank::Maintenance, Rank::CatalogChange];
        let [naming, folding, changing] = ranks.map(OrderedLock::new);
        let merging = OrderedLock::new(Rank::Maintenance);
        let is_refused =
            |lock: &OrderedLock| catch_unwind(AssertUnwindSafe(|| drop(lock.lock()))).is_err();
        let held = (naming.lock(), folding.lock());
        assert!(is_refused(&merging));
        let last = changing.lock();
        for lock in [&naming, &folding, &merging, &changing] {
            assert!(is_refused(lock), "{:?}", lock.rank);
        }
        as_another_thread(|| drop(merging.lock()));
        drop(held);
        assert!(is_refused(&folding));
        assert!(folding.try_lock().is_some());
        drop(last);
        assert!(!is_refused(&folding) && !is_refused(&naming) && !is_refused(&changing));
    }
}
