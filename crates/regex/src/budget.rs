//! The memory that all compiled patterns of the process share.
//!
//! A client can send 100,000 patterns in one list, and each with Unicode classes takes 100 KB when
//! compiled. The budget belongs to the process, because lists of several clients add up.

use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::MatchError;

/// The most bytes of compiled patterns.
const COMPILED_BYTES_MAX: usize = 256 << 20;

/// What searches build on the first use does not take the last half of the budget: patterns need it
/// more.
const BUILT_BYTES_MAX: usize = COMPILED_BYTES_MAX / 2;

static COMPILED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A value whose bytes count towards the budget until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<T> {
    value: T,
    bytes: usize,
}

impl<T> Reservation<T> {
    /// Returns the value if the budget has not so many bytes left.
    pub(crate) fn new(value: T, bytes: usize) -> Result<Reservation<T>, T> {
        Reservation::within(COMPILED_BYTES_MAX, value, bytes)
    }

    fn within(bytes_max: usize, value: T, bytes: usize) -> Result<Reservation<T>, T> {
        // No other memory depends on the number.
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

    /// The reserved bytes.
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

/// A part of a compiled pattern that few searches need. The first of them builds it; each of them
/// does while the budget is used up.
pub(crate) struct BuiltOnUse<T>(OnceLock<Reservation<T>>);

impl<T> BuiltOnUse<T> {
    pub(crate) const fn new() -> BuiltOnUse<T> {
        BuiltOnUse(OnceLock::new())
    }

    /// Runs a search with the value, which takes `bytes` of memory.
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
