//! An interrupt for loops whose steps are short.

use crate::{Interrupt, Interrupted};

/// Counts steps, and checks an interrupt once in [`STEPS_PER_CHECK`](Self::STEPS_PER_CHECK) steps.
///
/// ```
/// use windrow_interrupt::{Interrupted, PacedInterrupt};
///
/// let killed = || Err(Interrupted::new("operation was interrupted"));
/// let mut interrupt = PacedInterrupt::new(&killed);
/// let steps = (1..).find(|_| interrupt.step().is_err());
/// assert_eq!(steps, Some(PacedInterrupt::STEPS_PER_CHECK));
/// ```
pub struct PacedInterrupt<'i> {
    interrupt: &'i dyn Interrupt,
    steps_left: u32,
}

impl<'i> PacedInterrupt<'i> {
    /// The number of steps between two checks.
    pub const STEPS_PER_CHECK: u32 = 1_000;

    /// Creates the interrupt. Its first steps are not checked.
    pub fn new(interrupt: &'i dyn Interrupt) -> PacedInterrupt<'i> {
        PacedInterrupt {
            interrupt,
            steps_left: Self::STEPS_PER_CHECK,
        }
    }

    /// Counts a step. Fails if the work has to stop.
    #[inline]
    pub fn step(&mut self) -> Result<(), Interrupted> {
        self.steps(1)
    }

    /// Counts some steps. Fails if the work has to stop.
    #[inline]
    pub fn steps(&mut self, count: u32) -> Result<(), Interrupted> {
        if self.steps_left > count {
            self.steps_left -= count;
            return Ok(());
        }
        self.check()
    }

    /// Checks the interrupt now. Fails if the work has to stop.
    #[cold]
    pub fn check(&mut self) -> Result<(), Interrupted> {
        self.steps_left = Self::STEPS_PER_CHECK;
        self.interrupt.check()
    }
}
