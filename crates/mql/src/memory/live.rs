//! The bytes of the values that evaluations on a thread hold.

use std::cell::Cell;
use std::marker::PhantomData;

use super::limits::{LIVE_BYTES_MAX, check_document, check_limit};
use crate::Error;

/// A growing value is counted again each time that it has grown by this many bytes.
const COUNT_STEP_BYTES: usize = 4096;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that count as live on this thread until this guard is dropped. It cannot be sent to
/// another thread.
#[derive(Debug)]
pub(crate) struct LiveBytes {
    bytes: usize,
    not_send: PhantomData<*const ()>,
}

impl LiveBytes {
    /// Counts `bytes` as live.
    #[inline]
    pub fn new(bytes: usize) -> LiveBytes {
        if bytes > 0 {
            LIVE.set(LIVE.get() + bytes);
        }
        LiveBytes {
            bytes,
            not_send: PhantomData,
        }
    }

    /// Sets the number of bytes to `bytes`. Fails with 146 if all live values of the thread are too
    /// large.
    #[inline]
    pub fn grow_to(&mut self, bytes: usize, operator: &str) -> Result<(), Error> {
        if bytes < self.bytes + COUNT_STEP_BYTES {
            return Ok(());
        }
        *self = LiveBytes::new(bytes);
        check_live(operator)
    }

    /// Returns all live bytes of this thread.
    #[cfg(test)]
    pub fn current_thread() -> usize {
        LIVE.get()
    }
}

impl Drop for LiveBytes {
    #[inline]
    fn drop(&mut self) {
        if self.bytes > 0 {
            LIVE.set(LIVE.get() - self.bytes);
        }
    }
}

impl Clone for LiveBytes {
    fn clone(&self) -> LiveBytes {
        LiveBytes::new(self.bytes)
    }
}

/// Fails with 146 if all live values of this thread are too large.
pub(crate) fn check_live(operator: &str) -> Result<(), Error> {
    check_limit(operator, LIVE.get(), LIVE_BYTES_MAX)
}

/// Fails with 13548 if the live values, which are parts of a document that is written next, are too
/// large for one document.
pub(crate) fn check_written() -> Result<(), Error> {
    check_document(LIVE.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_as_live_until_they_are_dropped() {
        let before = LIVE.get();
        let one = LiveBytes::new(LIVE_BYTES_MAX);
        check_live("a test").unwrap();
        let other = one.clone();
        assert_eq!(check_live("a test").unwrap_err().code, 146);
        drop(one);
        check_live("a test").unwrap();
        drop(other);
        assert_eq!(LIVE.get(), before);
    }
}
