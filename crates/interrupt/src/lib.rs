//! How running work learns that it has to stop, for example because its operation was killed or
//! has exceeded its time limit.
//!
//! Loops over user data call [`Interrupt::check`] from time to time and return its error. How often
//! they call it is their own decision, because they know how long a step takes. [`PacedInterrupt`]
//! counts their steps.
//!
//! Not for: background work that only makes room for others and continues later, and the side that
//! interrupts, such as `killOp`.
//!
//! ```
//! use windrow_interrupt::{Interrupt, Interrupted, Uninterrupted};
//!
//! fn sum(numbers: &[u64], interrupt: &dyn Interrupt) -> Result<u64, Interrupted> {
//!     let mut sum = 0;
//!     for chunk in numbers.chunks(1_000) {
//!         interrupt.check()?;
//!         sum += chunk.iter().sum::<u64>();
//!     }
//!     Ok(sum)
//! }
//!
//! let numbers = [1; 10_000];
//! assert_eq!(sum(&numbers, &Uninterrupted), Ok(10_000));
//! let killed = || Err(Interrupted::new("operation was interrupted"));
//! assert_eq!(sum(&numbers, &killed).unwrap_err().code(), 11601);
//! ```
#![deny(missing_docs)]

mod paced;

use std::fmt;

pub use paced::PacedInterrupt;

/// Tells running work to stop.
///
/// Functions that return `Result<(), Interrupted>` are interrupts, too.
pub trait Interrupt {
    /// Fails if the work has to stop. From then on, each call fails.
    fn check(&self) -> Result<(), Interrupted>;

    /// The interrupt for use in other threads. `None` if only one thread may use it.
    fn across_threads(&self) -> Option<&(dyn Interrupt + Sync)> {
        None
    }
}

impl<F: Fn() -> Result<(), Interrupted>> Interrupt for F {
    fn check(&self) -> Result<(), Interrupted> {
        self()
    }
}

/// An interrupt that never stops the work.
#[derive(Clone, Copy, Debug)]
pub struct Uninterrupted;

impl Interrupt for Uninterrupted {
    fn check(&self) -> Result<(), Interrupted> {
        Ok(())
    }

    fn across_threads(&self) -> Option<&(dyn Interrupt + Sync)> {
        Some(self)
    }
}

/// Counts work, and fails if it has to stop. The argument is the amount of work since the last call
/// or until the next one, in units of about 30 ns. At most about 100 ms pass between two calls.
///
/// The caller decides after how many units it checks an [`Interrupt`], and can add up the work of
/// many calls that are short.
pub type WorkCounter<'c> = &'c dyn Fn(usize) -> Result<(), Interrupted>;

/// A [`WorkCounter`] that never stops the work.
pub const UNCOUNTED: WorkCounter<'static> = &|_| Ok(());

/// The error of work that was stopped before its end.
///
/// It has the size of a pointer, because inner loops return it in the result of each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted(Box<Reason>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Reason {
    code: i32,
    message: String,
}

/// MongoDB's code `Interrupted`.
const INTERRUPTED: i32 = 11601;

impl Interrupted {
    /// Creates the error with MongoDB's code `Interrupted`. `message` is the reason, as a sentence.
    pub fn new(message: impl Into<String>) -> Interrupted {
        Interrupted::with_code(INTERRUPTED, message)
    }

    /// Creates the error with another code of MongoDB, such as that of an exceeded time limit.
    pub fn with_code(code: i32, message: impl Into<String>) -> Interrupted {
        let message = message.into();
        Interrupted(Box::new(Reason { code, message }))
    }

    /// MongoDB's code for the reason.
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// The reason, as a sentence.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the reason, as a sentence.
    pub fn into_message(self) -> String {
        self.0.message
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl std::error::Error for Interrupted {}
