//! Locks with a fixed order, so that threads cannot wait for each other in a circle. With debug
//! assertions, each thread checks the order when it takes one of them.

#[cfg(debug_assertions)]
use std::cell::RefCell;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The rank of a lock in the order of ARCHITECTURE.md. A thread waits only for a lock of a higher
/// rank than all that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// `Collections::naming`.
    Naming,
    /// `CappedInserts::inserting`.
    CappedInsert,
    /// `Core::folding` and `Core::merging`. No thread holds both.
    Maintenance,
    /// `Collection::document_locks`. A thread waits for one only while it holds none.
    Document,
    /// `Core::catalog_change`.
    CatalogChange,
    /// `Collection::schema`.
    Schema,
    /// A claim of unique keys.
    Claim,
}

/// A lock with its rank.
#[derive(Debug)]
pub(crate) struct OrderedLock {
    rank: Rank,
    lock: Mutex<()>,
}

/// Holds an [`OrderedLock`] until it is dropped.
pub(crate) struct OrderedGuard<'l> {
    _guard: MutexGuard<'l, ()>,
    _rank: HeldRank,
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
        let rank = HeldRank::new(self.rank);
        OrderedGuard {
            _guard: self.lock.lock(),
            _rank: rank,
        }
    }

    /// Takes the lock if it is free. It does not wait, so the order is not checked.
    pub fn try_lock(&self) -> Option<OrderedGuard<'_>> {
        let guard = self.lock.try_lock()?;
        Some(OrderedGuard {
            _guard: guard,
            _rank: HeldRank::unchecked(self.rank),
        })
    }

    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }
}

/// A lock with its rank that several readers hold at the same time.
#[derive(Debug)]
pub(crate) struct OrderedRwLock {
    rank: Rank,
    lock: RwLock<()>,
}

/// Holds an [`OrderedRwLock`] shared until it is dropped.
pub(crate) struct OrderedReadGuard<'l> {
    _guard: RwLockReadGuard<'l, ()>,
    _rank: HeldRank,
}

/// Holds an [`OrderedRwLock`] exclusively until it is dropped.
pub(crate) struct OrderedWriteGuard<'l> {
    _guard: RwLockWriteGuard<'l, ()>,
    _rank: HeldRank,
}

impl OrderedRwLock {
    pub fn new(rank: Rank) -> OrderedRwLock {
        OrderedRwLock {
            rank,
            lock: RwLock::default(),
        }
    }

    pub fn read(&self) -> OrderedReadGuard<'_> {
        let rank = HeldRank::new(self.rank);
        OrderedReadGuard {
            _guard: self.lock.read(),
            _rank: rank,
        }
    }

    /// Takes the lock if it is free. The order is checked all the same, because a caller that does
    /// not get the lock waits for it with [`read`](Self::read).
    pub fn try_read(&self) -> Option<OrderedReadGuard<'_>> {
        let rank = HeldRank::new(self.rank);
        Some(OrderedReadGuard {
            _guard: self.lock.try_read()?,
            _rank: rank,
        })
    }

    /// Locks like [`read`](Self::read), but before threads that wait to write.
    pub fn read_recursive(&self) -> OrderedReadGuard<'_> {
        let rank = HeldRank::new(self.rank);
        OrderedReadGuard {
            _guard: self.lock.read_recursive(),
            _rank: rank,
        }
    }

    /// Locks like [`try_read`](Self::try_read), but before threads that wait to write.
    pub fn try_read_recursive(&self) -> Option<OrderedReadGuard<'_>> {
        let rank = HeldRank::new(self.rank);
        Some(OrderedReadGuard {
            _guard: self.lock.try_read_recursive()?,
            _rank: rank,
        })
    }

    pub fn write(&self) -> OrderedWriteGuard<'_> {
        let rank = HeldRank::new(self.rank);
        OrderedWriteGuard {
            _guard: self.lock.write(),
            _rank: rank,
        }
    }

    /// Takes a second lock of the rank. The caller holds a lock that excludes all other threads
    /// that hold two of the rank, so the order among these does not matter.
    pub fn write_beside(&self, first: &OrderedWriteGuard<'_>) -> OrderedWriteGuard<'_> {
        debug_assert!(
            first._rank.is_of(self.rank),
            "not the rank of {:?}",
            self.rank
        );
        OrderedWriteGuard {
            _guard: self.lock.write(),
            _rank: HeldRank::unchecked(self.rank),
        }
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// The ranks of the locks that this thread holds.
    static RANKS: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
}

/// A rank that this thread holds. Empty without debug assertions.
#[derive(Debug)]
pub(crate) struct HeldRank {
    #[cfg(debug_assertions)]
    rank: Rank,
}

#[cfg(debug_assertions)]
impl HeldRank {
    fn new(rank: Rank) -> HeldRank {
        HeldRank::check(rank);
        HeldRank::unchecked(rank)
    }

    /// Panics if this thread must not wait for a lock of this rank.
    pub fn check(rank: Rank) {
        let highest = RANKS.with_borrow(|ranks| ranks.iter().max().copied());
        assert!(
            highest < Some(rank),
            "the lock {rank:?} is taken by a thread that holds {highest:?}"
        );
    }

    fn is_of(&self, rank: Rank) -> bool {
        self.rank == rank
    }

    /// Records a lock that was taken without a wait.
    pub fn unchecked(rank: Rank) -> HeldRank {
        RANKS.with_borrow_mut(|ranks| ranks.push(rank));
        HeldRank { rank }
    }
}

#[cfg(debug_assertions)]
impl Drop for HeldRank {
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

/// Runs work as if on another thread: the locks that this thread holds do not count. Simulations
/// use it to run concurrent work within a fold.
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
impl HeldRank {
    fn new(_: Rank) -> HeldRank {
        HeldRank {}
    }

    pub fn check(_: Rank) {}

    fn is_of(&self, _: Rank) -> bool {
        true
    }

    pub fn unchecked(_: Rank) -> HeldRank {
        HeldRank {}
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

    #[test]
    #[cfg(debug_assertions)]
    fn a_second_schema_is_taken_only_beside_the_first() {
        let panics = |work: &dyn Fn()| catch_unwind(AssertUnwindSafe(work)).is_err();
        let [one, other] = [Rank::Schema; 2].map(OrderedRwLock::new);
        let document = OrderedLock::new(Rank::Document);
        let read = one.read();
        assert!(panics(&|| drop(other.read())));
        assert!(panics(&|| drop(other.try_read())));
        assert!(panics(&|| drop(document.lock())));
        assert!(document.try_lock().is_some());
        drop(read);
        let written = one.write();
        assert!(panics(&|| drop(other.write())));
        let beside = other.write_beside(&written);
        assert!(panics(&|| drop(document.lock())));
        drop((written, beside));
        assert!(!panics(&|| drop(document.lock())));
    }
}
