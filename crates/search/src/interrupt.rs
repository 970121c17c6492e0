//! Checks an interrupt at a fraction of the steps of a loop over postings.

use windrow_interrupt::{Interrupt, Interrupted};

/// The number of steps between two checks.
const STEPS_PER_CHECK: u32 = 1_000;

/// The number of steps that are counted for reading one list in a window of 4,096 ids.
pub(crate) const STEPS_PER_LIST: u32 = 64;

/// Counts steps, and checks an interrupt once in [`STEPS_PER_CHECK`] steps.
///
/// Steps are counted between records, so the interrupt is not checked while an operator moves to its
/// next record. The lists of postings check it too, and end early if they are interrupted: see
/// [`Postings`](crate::Postings).
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

    /// Counts `count` steps.
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
