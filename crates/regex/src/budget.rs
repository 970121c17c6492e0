//! The memory that all compiled patterns of the process share.
//!
//! A client can send 100,000 patterns in one list. A compiled pattern with Unicode classes takes
//! 100 KB. The budget belongs to the process, because the lists of several clients add up.

use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::MatchError;

/// The budget: the most bytes that all compiled patterns may take together.
const COMPILED_BYTES_MAX: usize = 256 << 20;

/// Parts that are built on first use are only added while less than this is in use. The other half
/// of the budget stays free for patterns.
const BUILT_BYTES_MAX: usize = COMPILED_BYTES_MAX / 2;

static COMPILED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A value whose bytes count towards the budget until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<T> {
    value: T,
    bytes: usize,
}

impl<T> Reservation<T> {
    /// Reserves `bytes` for the value. Fails, and returns the value, if the budget has fewer bytes
    /// left.
    pub(crate) fn new(value: T, bytes: usize) -> Result<Reservation<T>, T> {
        Reservation::within(COMPILED_BYTES_MAX, value, bytes)
    }

    fn within(bytes_max: usize, value: T, bytes: usize) -> Result<Reservation<T>, T> {
        // `Relaxed` suffices, because the counter guards no other memory.
        let order = Ordering::Relaxed;
        let reserved = COMPILED_BYTES.fetch_update(order, order, |before| {
            let after = before.checked_add(bytes)?;
            (after <= bytes_max).then_some(after)
        });
        match reserved {
            Ok(_) => Ok(Reservation { value, bytes }),
            Err(_) => Err(value),
        }
    }

    /// Returns the number of reserved bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<T> Deref for Reservation<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for Reservation<T> {
    fn drop(&mut self) {
        COMPILED_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A part of a compiled pattern that few searches need. The first such search builds it and stores
/// it for the later ones. While the budget is used up, each search builds its own.
pub(crate) struct LazyPart<T>(OnceLock<Reservation<T>>);

impl<T> LazyPart<T> {
    pub(crate) const fn new() -> LazyPart<T> {
        LazyPart(OnceLock::new())
    }

    /// Runs `search` with the value, and builds the value first if it is not stored. `bytes`
    /// returns the memory that a value takes. Fails if `build` or `search` fails.
    pub(crate) fn with<R>(
        &self,
        build: impl FnOnce() -> Result<T, MatchError>,
        bytes: impl FnOnce(&T) -> usize,
        search: impl FnOnce(&T) -> Result<R, MatchError>,
    ) -> Result<R, MatchError> {
        if let Some(value) = self.0.get() {
            return search(value);
        }
        let value = build()?;
        let bytes = bytes(&value);
        match Reservation::within(BUILT_BYTES_MAX, value, bytes) {
            Ok(value) => search(self.0.get_or_init(|| value)),
            Err(value) => search(&value),
        }
    }
}
