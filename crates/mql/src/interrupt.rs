//! Stops an evaluation whose operation was killed or ran out of time.
//!
//! One expression can be busy for as long as a query likes, for example with a long array or a
//! `$range`. A command sets an interrupt for its thread ([`with_interrupt`]). Loops over elements,
//! characters or alternatives count their work ([`count_work`]), and the interrupt is called once
//! for many units of work. It belongs to the thread because it is not part of an expression's
//! meaning: otherwise every function between the two would have to pass it on.
//!
//! ```
//! use std::sync::Arc;
//! use windrow_interrupt::Interrupted;
//! use windrow_mql::interrupt::{count_work, with_interrupt};
//! let killed = Arc::new(|| Err(Interrupted::new("operation was interrupted")));
//! let outcome = with_interrupt(killed, || (0..1_000_000).try_for_each(|_| count_work(1)));
//! assert_eq!(outcome.unwrap_err().code, 11601);
//! ```

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::sync::Arc;

use windrow_interrupt::{Interrupt, Interrupted};

use crate::Error;

/// The interrupt of an operation, for all threads that work for it.
pub type SharedInterrupt = Arc<dyn Interrupt + Send + Sync>;

thread_local! {
    static INTERRUPT: RefCell<Option<SharedInterrupt>> = const { RefCell::new(None) };
    static WORK: Cell<usize> = const { Cell::new(0) };
}

/// Runs `run`. Evaluations on this thread check `interrupt` in between.
pub fn with_interrupt<T>(interrupt: SharedInterrupt, run: impl FnOnce() -> T) -> T {
    let _reset = Reset(INTERRUPT.replace(Some(interrupt)));
    run()
}

/// The interrupt of a thread, or none, for other threads that work for the same operation.
#[derive(Clone)]
pub struct ThreadInterrupt(Option<SharedInterrupt>);

impl ThreadInterrupt {
    /// Returns the interrupt of the current thread.
    pub fn current() -> ThreadInterrupt {
        ThreadInterrupt(INTERRUPT.with_borrow(Option::clone))
    }

    /// Runs `run` with this interrupt.
    pub fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(interrupt) => with_interrupt(Arc::clone(interrupt), run),
            None => run(),
        }
    }
}

/// Restores the previous interrupt when it is dropped, also after a panic.
struct Reset(Option<SharedInterrupt>);

impl Drop for Reset {
    fn drop(&mut self) {
        INTERRUPT.replace(self.0.take());
    }
}

/// Units of work between two calls of the interrupt. They take about a millisecond.
pub(crate) const UNITS_PER_CHECK: usize = 1 << 15;

/// The number of bytes that are read in about the time of one unit of work.
const BYTES_PER_UNIT: usize = 128;

/// Counts work on this thread and calls the interrupt once for many units. A unit takes about 30
/// ns: an element of an array, or a call of an operator.
///
/// # Errors
///
/// Returns the error of the interrupt if the evaluation must stop.
#[inline]
pub fn count(units: usize) -> Result<(), Interrupted> {
    let work = WORK.get() + units;
    if work < UNITS_PER_CHECK {
        WORK.set(work);
        return Ok(());
    }
    WORK.set(0);
    check()
}

/// [`count`] with the error type of evaluations.
///
/// # Errors
///
/// Returns the error of the interrupt if the evaluation must stop.
#[inline]
pub fn count_work(units: usize) -> Result<(), Error> {
    Ok(count(units)?)
}

/// Runs `run` without an interrupt. This is for work that also serves other operations and must not
/// fail if one of them ends.
pub fn without_interrupt<T>(run: impl FnOnce() -> T) -> T {
    let _reset = Reset(INTERRUPT.take());
    run()
}

/// Counts the work of reading this many bytes. Fails as [`count_work`] does.
#[inline]
pub fn count_bytes(bytes: usize) -> Result<(), Error> {
    count_work(bytes / BYTES_PER_UNIT)
}

/// Checks the interrupt of this thread. Fails if evaluations have to stop.
#[cold]
pub fn check() -> Result<(), Interrupted> {
    let interrupt = INTERRUPT.with_borrow(Option::clone);
    interrupt.map_or(Ok(()), |interrupt| interrupt.check())
}

/// Returns the error of an evaluation if values or constants caused it. Fails if a bug or an
/// interrupt caused it. Code that continues after an error of the data calls this first, because it
/// must not continue after the others.
#[cold]
pub fn data_error(error: Error) -> Result<Error, Error> {
    if error.bug().is_some() {
        return Err(error);
    }
    check()?;
    Ok(error)
}

/// The length of the slices that are sorted without calling the interrupt.
const SLICE_LENGTH: usize = 8192;

/// Sorts as the standard library's stable sort does, and calls the interrupt in between.
///
/// Slices are sorted, then merged in pairs: the standard library's sort finds the two sorted runs
/// of a pair and merges them.
///
/// # Errors
///
/// Returns the error of the interrupt. The order of the values is then unspecified.
pub fn sort_by<T>(
    values: &mut [T],
    mut compare: impl FnMut(&T, &T) -> Ordering,
) -> Result<(), Error> {
    let mut length = SLICE_LENGTH;
    loop {
        for piece in values.chunks_mut(length) {
            piece.sort_by(&mut compare);
            count_work(piece.len() * 4)?;
        }
        if length >= values.len() {
            return Ok(());
        }
        length = length.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_invariant::{Bug, tolerate_bugs};

    fn many() -> Result<(), Error> {
        (0..100_000).try_for_each(|_| count_work(1))
    }

    fn stop() -> SharedInterrupt {
        Arc::new(|| Err(Interrupted::with_code(50, "time is over")))
    }

    /// If a bug or an interrupt ended the evaluation of a validator, the document used to count as
    /// invalid.
    #[test]
    fn data_error_returns_only_errors_of_the_data() {
        let error = Error::new(2, "a value");
        assert_eq!(data_error(error.clone()), Ok(error.clone()));
        let stopped = with_interrupt(stop(), || data_error(error));
        assert_eq!(stopped, Err(Error::new(50, "time is over")));
        let bug = Error::from(tolerate_bugs(|| Bug::new("a test")));
        assert_eq!(data_error(bug.clone()), Err(bug));
    }

    #[test]
    fn the_interrupt_of_a_thread_stops_its_work() {
        assert_eq!(many(), Ok(()));
        let stopped = Err(Error::new(50, "time is over"));
        assert_eq!(with_interrupt(stop(), many), stopped);
        assert_eq!(many(), Ok(()));
        let helped = with_interrupt(stop(), || {
            let inherited = ThreadInterrupt::current();
            std::thread::scope(|scope| scope.spawn(|| inherited.run(many)).join().unwrap())
        });
        assert_eq!(helped, stopped);
        let long = || (0..10).try_for_each(|_| count_bytes(1 << 20));
        assert_eq!(with_interrupt(stop(), long), stopped);
    }

    #[test]
    fn work_without_an_interrupt_is_not_stopped() {
        let stopped = with_interrupt(stop(), || {
            assert_eq!(without_interrupt(many), Ok(()));
            many()
        });
        assert!(stopped.is_err());
    }

    #[test]
    fn a_long_sort_is_stable_and_can_be_interrupted() {
        for count in [0, 1, 8192, 8193, 100_000] {
            let pair = |number: usize| (number * 7919 % 1000, number);
            let mut values: Vec<_> = (0..count).map(pair).collect();
            let mut expected = values.clone();
            expected.sort();
            sort_by(&mut values, |one, other| one.0.cmp(&other.0)).unwrap();
            assert_eq!(values, expected);
        }
        let mut values: Vec<_> = (0..100_000).rev().collect();
        let stopped = with_interrupt(stop(), || sort_by(&mut values, i32::cmp));
        assert!(stopped.is_err());
    }
}
