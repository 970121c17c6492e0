//! How an evaluation on one document learns that its operation must stop.
//!
//! A document with a long array, or a `$range`, can keep one expression busy for as long as a query
//! likes. A command sets the check for its thread ([`while_asking`]). Whatever goes through elements,
//! characters or alternatives counts its work ([`count_work`]), and the check runs once for many units
//! of work. The check belongs to the thread because it is no part of what an expression means, and
//! every function between the two would have to pass it on.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::sync::Arc;

use crate::Error;

/// Returns an error if the evaluation must stop.
pub type Ask = Arc<dyn Fn() -> Result<(), Error> + Send + Sync>;

thread_local! {
    static ASKED: RefCell<Option<Ask>> = const { RefCell::new(None) };
    static WORK: Cell<usize> = const { Cell::new(0) };
}

/// Runs `run`; evaluations on this thread call `ask` meanwhile.
pub fn while_asking<T>(ask: Ask, run: impl FnOnce() -> T) -> T {
    let _reset = Reset(ASKED.replace(Some(ask)));
    run()
}

/// The check of this thread, for threads that help it.
#[derive(Clone)]
pub struct Asked(Option<Ask>);

impl Asked {
    /// The check of the current thread.
    pub fn here() -> Asked {
        Asked(ASKED.with_borrow(Option::clone))
    }

    /// Runs `run` with this check.
    pub fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(ask) => while_asking(Arc::clone(ask), run),
            None => run(),
        }
    }
}

/// Restores the previous check, after a panic too.
struct Reset(Option<Ask>);

impl Drop for Reset {
    fn drop(&mut self) {
        ASKED.replace(self.0.take());
    }
}

/// Work between two checks: about a millisecond.
pub(crate) const UNITS_PER_CHECK: usize = 1 << 15;

/// Bytes that are read in about the time of one unit.
const BYTES_PER_UNIT: usize = 128;

/// Counts work on this thread, and checks once for many units. A unit is about 30 ns: an element, a
/// call of an operator.
#[inline]
pub fn count_work(units: usize) -> Result<(), Error> {
    let work = WORK.get() + units;
    if work < UNITS_PER_CHECK {
        WORK.set(work);
        return Ok(());
    }
    WORK.set(0);
    check()
}

/// [`count_work`] for shapes of the crate `windrow_geo`.
pub fn proceed(units: usize) -> Result<(), windrow_geo::Error> {
    count_work(units).map_err(|error| windrow_geo::Error::new(error.code, error.message))
}

/// Runs `run` without a check. This is for work that serves other operations too, and must not fail
/// because one of them ends.
pub fn without_check<T>(run: impl FnOnce() -> T) -> T {
    let _reset = Reset(ASKED.take());
    run()
}

/// Counts the work of reading so many bytes.
#[inline]
pub fn count_bytes(bytes: usize) -> Result<(), Error> {
    count_work(bytes / BYTES_PER_UNIT)
}

/// Returns an error if evaluations on this thread must stop.
#[cold]
pub fn check() -> Result<(), Error> {
    let ask = ASKED.with_borrow(Option::clone);
    ask.map_or(Ok(()), |ask| ask())
}

/// Returns the error of an evaluation if values or constants caused it. Fails if a bug or an
/// interrupt did. Code that continues after an error of the data calls this first: it must not
/// continue after the others.
#[cold]
pub fn data_error(error: Error) -> Result<Error, Error> {
    if error.bug().is_some() {
        return Err(error);
    }
    check().map(|()| error)
}

/// The length of the pieces that are sorted without a check.
const SORTED_AT_ONCE: usize = 8192;

/// Sorts as the standard library's stable sort does, and checks in between.
///
/// Pieces are sorted, then merged pair by pair: the standard library's sort finds the two sorted runs
/// of a pair and merges them.
pub fn sort_by<T>(
    values: &mut [T],
    mut compare: impl FnMut(&T, &T) -> Ordering,
) -> Result<(), Error> {
    let mut length = SORTED_AT_ONCE;
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

    fn stop() -> Ask {
        Arc::new(|| Err(Error::new(50, "time is over")))
    }

    /// A validator took a document for invalid if a bug or an interrupt had ended its evaluation.
    #[test]
    fn only_errors_of_the_data_are_continued_after() {
        let error = Error::new(2, "a value");
        assert_eq!(data_error(error.clone()), Ok(error.clone()));
        let stopped = while_asking(stop(), || data_error(error));
        assert_eq!(stopped, Err(Error::new(50, "time is over")));
        let bug = Error::from(tolerate_bugs(|| Bug::new("a test")));
        assert_eq!(data_error(bug.clone()), Err(bug));
    }

    #[test]
    fn work_is_stopped_by_the_check_of_its_thread() {
        assert_eq!(many(), Ok(()));
        let stopped = Err(Error::new(50, "time is over"));
        assert_eq!(while_asking(stop(), many), stopped);
        assert_eq!(many(), Ok(()));
        let helped = while_asking(stop(), || {
            let asked = Asked::here();
            std::thread::scope(|scope| scope.spawn(|| asked.run(many)).join().unwrap())
        });
        assert_eq!(helped, stopped);
        let long = || (0..10).try_for_each(|_| count_bytes(1 << 20));
        assert_eq!(while_asking(stop(), long), stopped);
    }

    #[test]
    fn work_without_a_check_is_not_stopped() {
        let stopped = while_asking(stop(), || {
            assert_eq!(without_check(many), Ok(()));
            many()
        });
        assert!(stopped.is_err());
    }

    #[test]
    fn a_long_sort_is_stable_and_can_be_stopped() {
        for count in [0, 1, 8192, 8193, 100_000] {
            let pair = |number: usize| (number * 7919 % 1000, number);
            let mut values: Vec<_> = (0..count).map(pair).collect();
            let mut expected = values.clone();
            expected.sort();
            sort_by(&mut values, |one, other| one.0.cmp(&other.0)).unwrap();
            assert_eq!(values, expected);
        }
        let mut values: Vec<_> = (0..100_000).rev().collect();
        let stopped = while_asking(stop(), || sort_by(&mut values, i32::cmp));
        assert!(stopped.is_err());
    }
}
