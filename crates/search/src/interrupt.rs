//! An interrupt that loops over postings can check at each step.

use windrow_interrupt::{Interrupt, Interrupted};

/// The number of steps between two checks.
const STEPS_PER_CHECK: u32 = 1_000;

/// The number of steps that reading a list in a window of 4,096 ids counts as.
pub(crate) const STEPS_PER_LIST: u32 = 64;

/// Counts steps, and checks an interrupt once in [`STEPS_PER_CHECK`] steps.
///
/// Steps are counted between records. One move of an operator takes a bounded time only if the
/// lists of postings end when the search has to stop: see [`Postings`](crate::Postings).
pub(crate) struct PacedInterrupt<'i> {
    interrupt: &'i dyn Interrupt,
    steps_left: u32,
}

impl<'i> PacedInterrupt<'i> {
    pub fn new(interrupt: &'i dyn Interrupt) -> PacedInterrupt<'i> {
        PacedInterrupt {
            interrupt,
            steps_left: STEPS_PER_CHECK,
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
        self.check()
    }

    #[cold]
    fn check(&mut self) -> Result<(), Interrupted> {
        self.steps_left = STEPS_PER_CHECK;
        self.interrupt.check()
    }
}
