//! How an evaluation on one document is told to stop.
//!
//! A document with a long array, or a `$range`, can keep one expression busy for as long as a query
//! likes. Whoever runs a command says for its thread what to ask now and then ([`while_asking`]);
//! expressions that go through elements ask it ([`Pace`]). It stands with the thread, since it is no
//! part of what an expression means, and every caller between would have to hand it on.

use std::cell::RefCell;
use std::sync::Arc;

use crate::Error;

/// An error where the evaluation is to stop.
pub type Ask = Arc<dyn Fn() -> Result<(), Error> + Send + Sync>;

thread_local! {
    static ASKED: RefCell<Option<Ask>> = const { RefCell::new(None) };
}

/// Runs something whose evaluations on this thread ask `ask` whether to go on.
pub fn while_asking<T>(ask: Ask, run: impl FnOnce() -> T) -> T {
    let _reset = Reset(ASKED.replace(Some(ask)));
    run()
}

/// What evaluations on this thread ask, for threads that help it.
#[derive(Clone)]
pub struct Asked(Option<Ask>);

impl Asked {
    pub fn here() -> Asked {
        Asked(ASKED.with_borrow(Option::clone))
    }

    /// Runs something whose evaluations ask the same as those of the thread that this comes from.
    pub fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(ask) => while_asking(Arc::clone(ask), run),
            None => run(),
        }
    }
}

/// Puts back what was asked before, also where what ran has panicked.
struct Reset(Option<Ask>);

impl Drop for Reset {
    fn drop(&mut self) {
        ASKED.replace(self.0.take());
    }
}

/// Elements between two questions.
const ELEMENTS_PER_QUESTION: u32 = 128;

/// Counts elements, and asks now and then.
#[derive(Debug, Default)]
pub(crate) struct Pace(u32);

impl Pace {
    #[inline]
    pub fn step(&mut self) -> Result<(), Error> {
        self.0 += 1;
        if self.0 < ELEMENTS_PER_QUESTION {
            return Ok(());
        }
        self.0 = 0;
        check()
    }
}

/// An error where evaluations on this thread are to stop.
pub fn check() -> Result<(), Error> {
    let ask = ASKED.with_borrow(Option::clone);
    ask.map_or(Ok(()), |ask| ask())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many() -> Result<(), Error> {
        let mut pace = Pace::default();
        (0..1000).try_for_each(|_| pace.step())
    }

    #[test]
    fn what_is_asked_stops_and_ends_with_its_run() {
        assert_eq!(many(), Ok(()));
        let stop = Error::new(50, "time is over");
        let ask: Ask = Arc::new({
            let stop = stop.clone();
            move || Err(stop.clone())
        });
        assert_eq!(while_asking(ask, many), Err(stop.clone()));
        assert_eq!(many(), Ok(()));
        let ask: Ask = Arc::new({
            let stop = stop.clone();
            move || Err(stop.clone())
        });
        let helped = while_asking(ask, || {
            let asked = Asked::here();
            std::thread::scope(|scope| scope.spawn(|| asked.run(many)).join().unwrap())
        });
        assert_eq!(helped, Err(stop));
    }
}
