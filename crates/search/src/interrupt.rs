//! Asks from time to time whether to stop.

use std::fmt;

/// A search was stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the search was interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// So many steps are between two questions.
const STEPS: u32 = 1_000;

/// So many steps are counted for each list that is read in a window of 4,096 ids.
pub(crate) const STEPS_PER_LIST: u32 = 64;

/// Counts steps, and asks `should_stop` after each 1,000 of them.
///
/// It is asked between records. What happens within one move of an operator is bounded only if the
/// lists of postings end when they are to stop: see [`Postings`](crate::Postings).
#[derive(Debug)]
pub(crate) struct Interrupt<A> {
    should_stop: A,
    steps_left: u32,
}

impl<A: FnMut() -> bool> Interrupt<A> {
    pub fn new(should_stop: A) -> Interrupt<A> {
        Interrupt {
            should_stop,
            steps_left: STEPS,
        }
    }

    /// Counts a step.
    #[inline]
    pub fn step(&mut self) -> Result<(), Interrupted> {
        self.steps(1)
    }

    /// Counts some steps.
    #[inline]
    pub fn steps(&mut self, count: u32) -> Result<(), Interrupted> {
        if self.steps_left > count {
            self.steps_left -= count;
            return Ok(());
        }
        self.ask()
    }

    #[cold]
    fn ask(&mut self) -> Result<(), Interrupted> {
        self.steps_left = STEPS;
        if (self.should_stop)() {
            Err(Interrupted)
        } else {
            Ok(())
        }
    }
}
