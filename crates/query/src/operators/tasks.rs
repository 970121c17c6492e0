//! Runs independent tasks on all free cores.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use windrow_interrupt::Interrupt;
use windrow_mql::interrupt::ThreadInterrupt;

use super::parallel::ThreadPermit;
use crate::Error;

/// Runs the tasks `0..count` once each, and returns their results in order. Returns the error of a
/// task if one fails. Tasks that have not been started are then left out.
pub(crate) fn run_tasks<T: Send>(
    count: usize,
    interrupt: &dyn Interrupt,
    task: &(impl Fn(usize, &dyn Interrupt) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let permit = ThreadPermit::take(count.saturating_sub(1));
    match interrupt.across_threads().filter(|_| permit.count() > 0) {
        None => (0..count).map(|number| task(number, interrupt)).collect(),
        Some(interrupt) => run_with(permit.count(), count, interrupt, task),
    }
}

/// Runs the tasks in this thread and `more_threads` others.
fn run_with<T: Send>(
    more_threads: usize,
    count: usize,
    interrupt: &(dyn Interrupt + Sync),
    task: &(impl Fn(usize, &dyn Interrupt) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<(usize, Result<T, Error>)>> = Mutex::default();
    let work = || {
        while !has_failed.load(Ordering::Acquire) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = task(number, interrupt);
            if result.is_err() {
                has_failed.store(true, Ordering::Release);
            }
            results.lock().push((number, result));
        }
    };
    let thread_interrupt = &ThreadInterrupt::current();
    thread::scope(|scope| {
        for _ in 0..more_threads {
            let thread_builder = thread::Builder::new().name("query".to_owned());
            // If the machine has no thread left, the other threads do all tasks.
            let _ = thread_builder.spawn_scoped(scope, || thread_interrupt.run(work));
        }
        work();
    });
    let mut results = results.into_inner();
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uninterrupted;

    #[test]
    fn results_are_in_order_and_errors_are_returned() {
        for more_threads in 1..4 {
            let square = |number: usize, _: &dyn Interrupt| Ok(number * number);
            let squares = run_with(more_threads, 50, &Uninterrupted, &square).unwrap();
            assert_eq!(squares, (0..50).map(|n| n * n).collect::<Vec<_>>());
            let failing = |number: usize, _: &dyn Interrupt| match number {
                7 => Err(Error::new(5, "seven")),
                number => Ok(number),
            };
            let error = run_with(more_threads, 50, &Uninterrupted, &failing).unwrap_err();
            assert_eq!(error.code(), Some(5));
        }
        assert!(
            run_tasks(0, &Uninterrupted, &|_, _| Ok(()))
                .unwrap()
                .is_empty()
        );
    }
}
