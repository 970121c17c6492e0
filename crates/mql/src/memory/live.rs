//! What lives on a thread.

use std::cell::Cell;
use std::marker::PhantomData;

use super::limits::{LIVE_BYTES_MAX, check_document, within};
use crate::Error;

/// What grows is counted anew each time that it has grown by so much.
const COUNTED_STEP: usize = 4096;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that live on this thread, until it is dropped. It cannot leave the thread.
#[derive(Debug)]
pub(crate) struct LiveBytes {
    bytes: usize,
    of_this_thread: PhantomData<*const ()>,
}

impl LiveBytes {
    #[inline]
    pub fn of(bytes: usize) -> LiveBytes {
        if bytes > 0 {
            LIVE.set(LIVE.get() + bytes);
        }
        LiveBytes {
            bytes,
            of_this_thread: PhantomData,
        }
    }

    /// Takes in that what lives has grown to so much; 146 where it is too much.
    #[inline]
    pub fn grow_to(&mut self, bytes: usize, what: &str) -> Result<(), Error> {
        if bytes < self.bytes + COUNTED_STEP {
            return Ok(());
        }
        *self = LiveBytes::of(bytes);
        check_live(what)
    }

    /// All that live on this thread.
    #[cfg(test)]
    pub fn all() -> usize {
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
        LiveBytes::of(self.bytes)
    }
}

/// 146 where all that lives on this thread is too much.
pub(crate) fn check_live(what: &str) -> Result<(), Error> {
    within(what, LIVE.get(), LIVE_BYTES_MAX)
}

/// 13548 where the parts of a document that are to be written come to so much.
pub(crate) fn check_written() -> Result<(), Error> {
    check_document(LIVE.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_is_counted_until_it_is_dropped() {
        let before = LIVE.get();
        let one = LiveBytes::of(LIVE_BYTES_MAX);
        check_live("a test").unwrap();
        let other = one.clone();
        assert_eq!(check_live("a test").unwrap_err().code, 146);
        drop(one);
        check_live("a test").unwrap();
        drop(other);
        assert_eq!(LIVE.get(), before);
    }
}
