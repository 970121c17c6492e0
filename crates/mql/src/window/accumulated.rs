//! Accumulators over windows.

use windrow_document::{Document, Value};

use super::bounds::{Bounds, Window};
use super::{Check, Partition};
use crate::Error;
use crate::accumulator::{Accumulator, AccumulatorState};
use crate::memory::{check_windows, heap_bytes};

/// A state with the window that it has taken in.
struct Taken {
    window: Window,
    state: AccumulatorState,
}

/// Windows that only grow at their end are taken in once; where the begin moves on, the window is
/// taken in anew.
pub(super) fn compute<'a>(
    accumulator: &Accumulator,
    bounds: &Bounds,
    partition: &Partition<'a>,
    check: &mut Check<'_>,
) -> Result<Vec<Option<Value>>, Error> {
    let mut taken: Option<Taken> = None;
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
        let mut current = match taken.take() {
            Some(taken) if taken.window.0 == window.0 && taken.window.1 <= window.1 => taken,
            _ => start(accumulator, partition, window.0)?,
        };
        let (from, to) = (current.window.1, window.1.max(current.window.1));
        for document in partition.documents.get(from..to).unwrap_or_default() {
            check()?;
            let context = partition.context_of(*document);
            accumulator.add(&mut current.state, &context)?;
        }
        current.window.1 = to;
        let value = current.state.clone().finish();
        hold(&value)?;
        last = Some((window, value.clone()));
        values.push(Some(value));
        taken = Some(current);
    }
    Ok(values)
}

fn start(
    accumulator: &Accumulator,
    partition: &Partition<'_>,
    begin: usize,
) -> Result<Taken, Error> {
    let context = partition.context.with_root(Document::EMPTY);
    Ok(Taken {
        window: (begin, begin),
        state: accumulator.start(&context)?,
    })
}
