//! Parallel processing of rows, for operators that must read all rows before they return the first
//! one.
//!
//! An operator that maps each input row to at most one row can produce its rows in parts
//! ([`Operator::parts`]). [`fold_parts`] processes the parts with several threads. Each thread
//! starts with a queue of consecutive parts. A thread without parts takes the second half of the
//! largest remaining queue. Consecutive parts of a thread go into one state. So the states, in
//! order, have seen the rows in order.
//!
//! All queries together use no more threads than there are cores. If no core is free, a query uses
//! only its own thread.

use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use windrow_interrupt::{Interrupt, Interrupted};
use windrow_mql::interrupt::ThreadInterrupt;

use super::operator::{BoxOperator, Counters, Operator, Part};
use crate::Error;
use crate::row::Row;

/// The number of parts for each thread, so that a thread that has finished finds other parts.
const PARTS_PER_THREAD: u64 = 16;

/// The largest number of parts.
pub(super) fn parts_max() -> u64 {
    *THREADS as u64 * PARTS_PER_THREAD
}

/// The largest number of threads that process rows.
pub(crate) fn threads() -> usize {
    *THREADS
}

static THREADS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// The number of threads at work in addition to the threads of the queries.
static BUSY_THREADS: AtomicUsize = AtomicUsize::new(0);

/// A permit to start this many threads. The threads count as busy until it is dropped.
pub(super) struct ThreadPermit(usize);

impl ThreadPermit {
    /// Takes as many free threads as there are, up to `threads_max`.
    pub(super) fn take(threads_max: usize) -> ThreadPermit {
        let free = |busy: usize| THREADS.saturating_sub(1 + busy).min(threads_max);
        let taken = BUSY_THREADS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |busy| {
            Some(busy + free(busy))
        });
        ThreadPermit(taken.map_or(0, free))
    }

    /// The number of threads that may be started.
    pub(super) fn count(&self) -> usize {
        self.0
    }
}

impl Drop for ThreadPermit {
    fn drop(&mut self) {
        BUSY_THREADS.fetch_sub(self.0, Ordering::AcqRel);
    }
}

/// A consumer of rows.
pub(crate) trait RowConsumer: Send {
    fn take(&mut self, row: Row) -> Result<(), Error>;

    /// Called after the last row if there are several consumers. It still runs in parallel with the
    /// others.
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl RowConsumer for u64 {
    fn take(&mut self, _: Row) -> Result<(), Error> {
        *self += 1;
        Ok(())
    }
}

/// Counts the rows.
pub(crate) fn count_rows(input: &mut BoxOperator, interrupt: &dyn Interrupt) -> Result<u64, Error> {
    if let Some(count) = input.count_known(interrupt)? {
        return Ok(count);
    }
    match fold_parts(input, interrupt, &|_| 0u64, |counts| {
        Ok(counts.into_iter().sum())
    })? {
        Some(count) => Ok(count),
        None => fold_alone(input, interrupt, 0),
    }
}

/// Passes all rows to one consumer.
pub(crate) fn fold_alone<S: RowConsumer>(
    input: &mut BoxOperator,
    interrupt: &dyn Interrupt,
    mut state: S,
) -> Result<S, Error> {
    while let Some(row) = input.next(interrupt)? {
        state.take(row)?;
    }
    Ok(state)
}

/// Passes each row to one of the states that `begin` creates, with several threads, and then the
/// states to `join`. Together the states have seen all rows, and each has seen only rows that come
/// before those of the next state. The argument of `begin` grows from state to state. Returns
/// `None`, and does not change the input, if the rows have no parts or no other thread is free. The
/// input does not change after an error either, including an error of `join`.
pub(crate) fn fold_parts<S: RowConsumer, J>(
    input: &mut BoxOperator,
    interrupt: &dyn Interrupt,
    begin: &(impl Fn(usize) -> S + Sync),
    join: impl FnOnce(Vec<S>) -> Result<J, Error>,
) -> Result<Option<J>, Error> {
    let Some(interrupt) = interrupt.across_threads().filter(|_| *THREADS > 1) else {
        return Ok(None);
    };
    let parts = input.parts()?;
    let permit = ThreadPermit::take(parts.len().saturating_sub(1));
    if permit.0 == 0 {
        return Ok(None);
    }
    let fold = ParallelFold::new(&parts, permit.0 + 1, interrupt, begin).run()?;
    let joined = join(fold.states)?;
    let counters = fold.counters.iter();
    counters.for_each(|counts| input.absorb(counts));
    Ok(Some(joined))
}

/// A fold by several threads.
struct ParallelFold<'w, S, B> {
    parts: &'w [Part],
    /// The remaining parts in the queue of each thread.
    queues: Mutex<Vec<Range<usize>>>,
    interrupt: &'w (dyn Interrupt + Sync),
    /// The first part that failed. Later parts are no longer needed.
    failed_part: AtomicUsize,
    failed: Mutex<Option<(usize, Error)>>,
    /// The states, with the number of the first part that each has seen.
    states: Mutex<Vec<(usize, S)>>,
    counters: Mutex<Vec<Vec<Counters>>>,
    begin: &'w B,
}

/// The result of a fold.
struct FoldResult<S> {
    /// The states, in the order of the rows.
    states: Vec<S>,
    /// The counters of the operators of each part.
    counters: Vec<Vec<Counters>>,
}

impl<'w, S: RowConsumer, B: Fn(usize) -> S + Sync> ParallelFold<'w, S, B> {
    fn new(
        parts: &'w [Part],
        threads: usize,
        interrupt: &'w (dyn Interrupt + Sync),
        begin: &'w B,
    ) -> Self {
        let cut = |thread: usize| thread * parts.len() / threads;
        let queues = (0..threads).map(|thread| cut(thread)..cut(thread + 1));
        ParallelFold {
            parts,
            queues: Mutex::new(queues.collect()),
            interrupt,
            failed_part: AtomicUsize::new(usize::MAX),
            failed: Mutex::new(None),
            states: Mutex::default(),
            counters: Mutex::default(),
            begin,
        }
    }

    fn run(self) -> Result<FoldResult<S>, Error> {
        let threads = self.queues.lock().len();
        let work = &self;
        // An expression can run for a long time within one document, on any of the threads.
        let interrupt = &ThreadInterrupt::current();
        thread::scope(|scope| {
            for number in 1..threads {
                let thread_builder = thread::Builder::new().name("query".to_owned());
                // If no thread can be started, the other threads process its queue.
                let _ = thread_builder
                    .spawn_scoped(scope, move || interrupt.run(|| work.process_parts(number)));
            }
            work.process_parts(0);
        });
        if let Some((_, error)) = self.failed.into_inner() {
            return Err(error);
        }
        let mut states = self.states.into_inner();
        states.sort_by_key(|(first, _)| *first);
        let states = states.into_iter().map(|(_, state)| state).collect();
        Ok(FoldResult {
            states,
            counters: self.counters.into_inner(),
        })
    }

    /// Processes parts until none are left.
    fn process_parts(&self, thread: usize) {
        let mut current = None;
        while let Some(next) = self.next_part(thread) {
            let part = next.number;
            if !next.follows_previous {
                self.end(current.take());
            }
            let (_, state) = current.get_or_insert_with(|| (part, (self.begin)(part)));
            if let Err(error) = self.take_part(part, state) {
                self.fail(part, error);
            }
        }
        self.end(current);
    }

    fn end(&self, state: Option<(usize, S)>) {
        if let Some((first, mut state)) = state {
            match state.end() {
                Ok(()) => self.states.lock().push((first, state)),
                Err(error) => self.fail(first, error),
            }
        }
    }

    fn take_part(&self, number: usize, state: &mut S) -> Result<(), Error> {
        let Some(part) = self.parts.get(number) else {
            return Ok(());
        };
        let interrupt = PartInterrupt {
            part: number,
            failed_part: &self.failed_part,
            interrupt: self.interrupt,
        };
        let mut rows = part()?;
        while let Some(row) = rows.next(&interrupt)? {
            state.take(row)?;
        }
        let counts = counts_of(&*rows);
        self.counters.lock().push(counts);
        Ok(())
    }

    /// The error of the earliest part counts, as if the rows were processed in sequence.
    fn fail(&self, part: usize, error: Error) {
        let mut failed = self.failed.lock();
        if failed.as_ref().is_none_or(|(first, _)| part < *first) {
            self.failed_part.store(part, Ordering::Release);
            *failed = Some((part, error));
        }
    }

    /// Returns the next part for a thread.
    fn next_part(&self, thread: usize) -> Option<NextPart> {
        let mut queues = self.queues.lock();
        let own = queues.get_mut(thread)?;
        let next = match own.next() {
            Some(number) => NextPart {
                number,
                follows_previous: true,
            },
            None => {
                let stolen = steal(&mut queues)?;
                let own = queues.get_mut(thread)?;
                *own = stolen;
                NextPart {
                    number: own.next()?,
                    follows_previous: false,
                }
            }
        };
        (next.number < self.failed_part.load(Ordering::Acquire)).then_some(next)
    }
}

/// The part that a thread processes next.
struct NextPart {
    number: usize,
    /// `true` if the thread has processed the part before it last.
    follows_previous: bool,
}

/// Takes the second half of the largest queue.
fn steal(queues: &mut [Range<usize>]) -> Option<Range<usize>> {
    let largest = queues.iter_mut().max_by_key(|queue| queue.len())?;
    let middle = largest.start + largest.len() / 2;
    let stolen = middle..largest.end;
    largest.end = middle;
    (!stolen.is_empty()).then_some(stolen)
}

/// Interrupts parts that come after a failed part.
struct PartInterrupt<'w> {
    part: usize,
    failed_part: &'w AtomicUsize,
    interrupt: &'w (dyn Interrupt + Sync),
}

impl Interrupt for PartInterrupt<'_> {
    fn check(&self) -> Result<(), Interrupted> {
        if self.failed_part.load(Ordering::Acquire) < self.part {
            return Err(Interrupted::new("an earlier row failed"));
        }
        self.interrupt.check()
    }
}

/// Returns the counters of an operator and of the operators below it, each with one input.
fn counts_of(operator: &dyn Operator) -> Vec<Counters> {
    let mut counts = vec![operator.counters()];
    let mut inputs = operator.inputs();
    while let Some(input) = inputs.first().copied() {
        counts.push(input.counters());
        inputs = input.inputs();
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_processed_once_and_in_order_within_a_state() {
        let parts: Vec<Part> = (0..100).map(|_| nothing()).collect();
        for threads in 1..6 {
            let work = ParallelFold::new(&parts, threads, &crate::Uninterrupted, &|_| 0);
            let mut taken: Vec<(usize, Vec<usize>)> = Vec::new();
            // The threads take turns unevenly.
            for thread in (0..).map(|turn: usize| turn * turn % 31 % threads) {
                let Some(next) = work.next_part(thread) else {
                    break;
                };
                match taken.iter_mut().rev().find(|(of, _)| *of == thread) {
                    Some((_, run)) if next.follows_previous => run.push(next.number),
                    _ => taken.push((thread, vec![next.number])),
                }
            }
            assert!(taken.iter().all(|(_, run)| run.is_sorted()));
            taken.sort_by_key(|(_, run)| run.first().copied());
            let all: Vec<usize> = taken.into_iter().flat_map(|(_, run)| run).collect();
            assert_eq!(all, (0..100).collect::<Vec<_>>(), "{threads} threads");
        }
    }

    fn nothing() -> Part {
        Box::new(|| Ok(Box::new(super::super::Eof::default()) as BoxOperator))
    }
}
