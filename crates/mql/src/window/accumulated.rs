//! Accumulators over windows.

use windrow_document::Value;

use super::bounds::{Bounds, Window};
use super::sliding::{self, Sliding};
use super::{Check, Partition};
use crate::Error;
use crate::accumulator::{Accumulator, AccumulatorState};
use crate::memory::{check_windows, heap_bytes};

/// A state with the window that it has taken in.
struct Taken {
    window: Window,
    state: AccumulatorState,
}

/// Shorter windows are taken in anew where their begin moves on.
const LONG: usize = 32;

/// Windows that only grow at their end are taken in once; where the begin moves on, a short window is taken
/// in anew, and a long one slides where two states can be put together without much copying.
pub(super) fn compute<'a>(
    accumulator: &Accumulator,
    bounds: &Bounds,
    partition: &Partition<'a>,
    check: &mut Check<'_>,
) -> Result<Vec<Option<Value>>, Error> {
    let mut taken: Option<Taken> = None;
    let slides = accumulator.stays_small();
    let mut sliding = Sliding::new(accumulator, partition)?;
    let mut last: Option<(Window, Value)> = None;
    let mut values = Vec::with_capacity(partition.documents.len());
    // The windows of a partition overlap: their values may be far more than its documents.
    let mut bytes = 0;
    let mut hold = |value: &Value| {
        bytes += heap_bytes(value.as_ref());
        check_windows(bytes)
    };
    for window in bounds.windows(partition, check)? {
        check()?;
        if let Some((_, value)) = last.as_ref().filter(|(known, _)| *known == window) {
            hold(value)?;
            values.push(Some(value.clone()));
            continue;
        }
        let grown = taken.take().filter(|taken| taken.grows_to(window));
        let value = match grown {
            None if slides && window.1.saturating_sub(window.0) >= LONG => {
                sliding.state(window, check)?.finish()
            }
            grown => {
                let mut current = match grown {
                    Some(grown) => grown,
                    None => Taken::nothing(accumulator, partition, window.0)?,
                };
                current.grow(accumulator, partition, window.1, check)?;
                let value = current.state.clone().finish();
                taken = Some(current);
                value
            }
        };
        hold(&value)?;
        last = Some((window, value.clone()));
        values.push(Some(value));
    }
    Ok(values)
}

impl Taken {
    fn nothing(
        accumulator: &Accumulator,
        partition: &Partition<'_>,
        begin: usize,
    ) -> Result<Taken, Error> {
        Ok(Taken {
            window: (begin, begin),
            state: sliding::nothing(accumulator, partition)?,
        })
    }

    fn grows_to(&self, window: Window) -> bool {
        self.window.0 == window.0 && self.window.1 <= window.1
    }

    fn grow(
        &mut self,
        accumulator: &Accumulator,
        partition: &Partition<'_>,
        end: usize,
        check: &mut Check<'_>,
    ) -> Result<(), Error> {
        let (from, to) = (self.window.1, end.max(self.window.1));
        for document in partition.documents.get(from..to).unwrap_or_default() {
            check()?;
            accumulator.add(&mut self.state, &partition.context_of(*document))?;
        }
        self.window.1 = to;
        Ok(())
    }
}
