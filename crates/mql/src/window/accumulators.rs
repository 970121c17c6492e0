//! Accumulators over windows.

use windrow_document::Value;

use super::Partition;
use super::bounds::{Bounds, Window, outside};
use super::sliding::{self, SlidingWindow};
use crate::Error;
use crate::accumulator::{Accumulator, AccumulatorState, InputDependence};
use crate::interrupt::{count_bytes, count_work};
use crate::memory::{check_window_values, heap_bytes};

/// An accumulator state and the window whose documents it contains.
struct AccumulatedWindow {
    window: Window,
    state: AccumulatorState,
}

/// Shorter windows are accumulated again if their start moves.
const SLIDING_DOCUMENTS_MIN: usize = 32;
/// Sliding needs windows with this many times the documents that a state can hold, because merging
/// states of many values is as slow as accumulating them again.
const SLIDING_STATES_MIN: usize = 4;
/// The error code of a state that is too large.
const STATE_TOO_LARGE: i32 = 146;

/// The evaluation of an accumulator over the windows of a partition.
struct Windows<'s, 'a> {
    accumulator: &'s Accumulator,
    partition: &'s Partition<'a>,
    input_dependence: InputDependence,
    /// The state of the last window that grew, or that did not slide.
    accumulated: Option<AccumulatedWindow>,
    /// `None` if the states need too much memory for sliding.
    sliding: Option<SlidingWindow<'s, 'a>>,
}

/// Computes an accumulator over the windows of a partition.
///
/// - A window that only grows at its end keeps its state.
/// - If only the first or the last documents of a window matter, only those are accumulated.
/// - A short window with a moving start is accumulated again for each document.
/// - A long one slides if two states can be merged cheaply.
pub(super) fn compute<'a>(
    accumulator: &Accumulator,
    bounds: &Bounds,
    partition: &Partition<'a>,
) -> Result<Vec<Option<Value>>, Error> {
    let mut windows = Windows::new(accumulator, bounds, partition)?;
    let mut last: Option<(Window, Value)> = None;
    let mut values = Vec::with_capacity(partition.documents.len());
    // The windows of a partition overlap, so their values can be much larger than its documents.
    let mut bytes = 0;
    for window in bounds.windows(partition)? {
        count_work(1)?;
        let window = windows.narrowed(window);
        let value = match last.take() {
            Some((known, value)) if known == window => value,
            _ => windows.value(window)?,
        };
        let value_bytes = heap_bytes(value.as_ref());
        count_bytes(value_bytes)?;
        bytes += value_bytes;
        check_window_values(bytes)?;
        values.push(Some(value.clone()));
        last = Some((window, value));
    }
    Ok(values)
}

impl<'s, 'a> Windows<'s, 'a> {
    fn new(
        accumulator: &'s Accumulator,
        bounds: &Bounds,
        partition: &'s Partition<'a>,
    ) -> Result<Windows<'s, 'a>, Error> {
        let input_dependence = if bounds.has_moving_start() {
            sliding::empty_state(accumulator, partition)?.input_dependence()
        } else {
            InputDependence::All
        };
        Ok(Windows {
            accumulator,
            partition,
            input_dependence,
            accumulated: None,
            sliding: Some(SlidingWindow::new(accumulator, partition)?),
        })
    }

    /// Returns the documents of a window that its value depends on.
    fn narrowed(&self, window: Window) -> Window {
        let Window { start, end } = window;
        match self.input_dependence {
            InputDependence::First(count) => Window {
                start,
                end: end.min(start.saturating_add(count)),
            },
            InputDependence::Last(count) => Window {
                start: start.max(end.saturating_sub(count)),
                end,
            },
            InputDependence::All | InputDependence::Bounded(_) => window,
        }
    }

    fn value(&mut self, window: Window) -> Result<Value, Error> {
        let grown = self
            .accumulated
            .take()
            .filter(|accumulated| accumulated.grows_to(window));
        if grown.is_none()
            && let Some(state) = self.sliding_state(window)?
        {
            return Ok(state.finish());
        }
        let mut current = match grown {
            Some(grown) => grown,
            None => AccumulatedWindow::empty_state(self.accumulator, self.partition, window.start)?,
        };
        current.grow(self.accumulator, self.partition, window.end)?;
        let value = current.state.clone().finish();
        self.accumulated = Some(current);
        Ok(value)
    }

    /// Returns the state of a sliding window, or `None` if the window cannot slide. If states need
    /// too much memory, sliding ends for the partition.
    fn sliding_state(&mut self, window: Window) -> Result<Option<AccumulatorState>, Error> {
        let length = window.length();
        let (InputDependence::Bounded(count), Some(sliding)) =
            (self.input_dependence, &mut self.sliding)
        else {
            return Ok(None);
        };
        if length < SLIDING_DOCUMENTS_MIN.max(count.saturating_mul(SLIDING_STATES_MIN)) {
            return Ok(None);
        }
        let state = match sliding.state(window) {
            // A state of the sliding structure can contain documents that the window itself does
            // not.
            Err(error) if error.code == STATE_TOO_LARGE => None,
            state => state?,
        };
        if state.is_none() {
            self.sliding = None;
        }
        Ok(state)
    }
}

impl AccumulatedWindow {
    fn empty_state(
        accumulator: &Accumulator,
        partition: &Partition<'_>,
        start: usize,
    ) -> Result<AccumulatedWindow, Error> {
        Ok(AccumulatedWindow {
            window: Window { start, end: start },
            state: sliding::empty_state(accumulator, partition)?,
        })
    }

    fn grows_to(&self, window: Window) -> bool {
        self.window.start == window.start && self.window.end <= window.end
    }

    fn grow(
        &mut self,
        accumulator: &Accumulator,
        partition: &Partition<'_>,
        end: usize,
    ) -> Result<(), Error> {
        let (from, to) = (self.window.end, end.max(self.window.end));
        let documents = partition.documents.get(from..to);
        for document in documents.ok_or_else(|| outside(from..to, partition.documents.len()))? {
            count_work(1)?;
            accumulator.add(&mut self.state, &partition.context_of(*document))?;
        }
        self.window.end = to;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_document::{Decimal128, Document, DocumentBuf, ValueRef, array, doc};
    use windrow_interrupt::Interrupted;

    use super::super::{FunctionKind, WindowFunction};
    use super::*;
    use crate::expression::{Context, Scope};
    use crate::interrupt::with_interrupt;
    use crate::sort::Sort;

    /// The values are the same as if each window is accumulated separately.
    fn assert_alike(documents: &[DocumentBuf], output: &DocumentBuf, ends: (i64, i64)) {
        let mut specification = output.clone();
        specification.push("window", doc! { "documents": (array![ends.0, ends.1]) });
        let order = doc! { "_id": 1 };
        let sort = Sort::parse(order.as_document()).unwrap();
        let specification = ValueRef::Document(specification.as_document());
        let function = WindowFunction::parse(specification, Some(&sort), &Scope::new()).unwrap();
        let FunctionKind::Accumulate(accumulator) = &function.kind else {
            panic!("{output:?} is no accumulator");
        };
        let documents: Vec<_> = documents.iter().map(DocumentBuf::as_document).collect();
        let partition = Partition {
            documents: &documents,
            keys: &[],
            sort: Some(&sort),
            context: Context::new(Document::EMPTY),
        };
        let found = function.compute(&partition).unwrap();
        let windows = function.bounds.windows(&partition).unwrap();
        assert_eq!(found.len(), windows.len());
        for (window, found) in windows.into_iter().zip(found) {
            let mut alone =
                AccumulatedWindow::empty_state(accumulator, &partition, window.start).unwrap();
            let end = window.end;
            alone.grow(accumulator, &partition, end).unwrap();
            let expected = alone.state.finish();
            assert!(
                is_about(found.as_ref(), &expected),
                "{output:?} {window:?}: {found:?}, alone {expected:?}"
            );
        }
    }

    /// Equality up to rounding: merged deviations are rounded.
    fn is_about(found: Option<&Value>, expected: &Value) -> bool {
        match (found, expected) {
            (Some(Value::Double(found)), Value::Double(expected)) => {
                (found - expected).abs() <= expected.abs() * 1e-9
            }
            _ => found == Some(expected),
        }
    }

    const ENDS: [(i64, i64); 5] = [(-60, 0), (-40, 45), (20, 90), (-90, -20), (0, 1000)];

    fn outputs(count: i32) -> Vec<DocumentBuf> {
        let select_n = doc! { "n": count, "input": "$v" };
        let first = doc! { "sortBy": { "w": 1 }, "output": "$v" };
        let ranked = doc! { "n": count, "sortBy": { "w": 1 }, "output": "$v" };
        vec![
            doc! { "$sum": "$v" },
            doc! { "$avg": "$v" },
            doc! { "$count": {} },
            doc! { "$stdDevPop": "$v" },
            doc! { "$stdDevSamp": "$v" },
            doc! { "$min": "$v" },
            doc! { "$max": "$v" },
            doc! { "$first": "$v" },
            doc! { "$last": "$v" },
            doc! { "$minN": (select_n.clone()) },
            doc! { "$maxN": (select_n.clone()) },
            doc! { "$firstN": (select_n.clone()) },
            doc! { "$lastN": select_n },
            doc! { "$top": (first.clone()) },
            doc! { "$bottom": first },
            doc! { "$topN": (ranked.clone()) },
            doc! { "$bottomN": ranked },
        ]
    }

    /// 200 documents with `v`, which some of them lack, and `w`, which has many equal values.
    fn documents(value: impl Fn(i32) -> Option<Value>) -> Vec<DocumentBuf> {
        let document = |id: i32| {
            let mut document = doc! { "_id": id, "w": (id * 31 % 11) };
            if let Some(value) = value(id) {
                document.push("v", value);
            }
            document
        };
        (0..200).map(document).collect()
    }

    fn assert_all_alike(documents: &[DocumentBuf], count: i32) {
        for output in outputs(count) {
            for ends in ENDS {
                assert_alike(documents, &output, ends);
            }
        }
    }

    /// A window used to count as one unit of work, however large its value was. A `$push` over
    /// windows of 10,000 documents continued for a quarter of a second after its interrupt.
    #[test]
    fn large_values_of_windows_are_counted_as_work() {
        let text = "x".repeat(10_000);
        let documents = documents(|_| Some(text.as_str().into()));
        let documents: Vec<_> = documents.iter().map(DocumentBuf::as_document).collect();
        let window = doc! { "documents": (array![-100, 100]) };
        let output = doc! { "$push": "$v", "window": window };
        let order = doc! { "_id": 1 };
        let sort = Sort::parse(order.as_document()).unwrap();
        let specification = ValueRef::Document(output.as_document());
        let function = WindowFunction::parse(specification, Some(&sort), &Scope::new()).unwrap();
        let partition = Partition {
            documents: &documents,
            keys: &[],
            sort: Some(&sort),
            context: Context::new(Document::EMPTY),
        };
        let reason = || Interrupted::with_code(50, "time is over");
        let stopped = with_interrupt(Arc::new(move || Err(reason())), || {
            function.compute(&partition).map(|values| values.len())
        });
        assert_eq!(stopped, Err(reason().into()));
    }

    #[test]
    fn windows_of_values_of_many_types() {
        let mixed = |id: i32| match id * 7 % 10 {
            0 => None,
            1 => Some(Value::Null),
            2 => Some("text".into()),
            3 => Some(array![id, "x"].into()),
            4 => Some(doc! { "a": id }.into()),
            5 => Some(Value::Bool(id % 3 == 0)),
            6 => Some(Value::Decimal128(Decimal128::from_i64(i64::from(id)))),
            7 => Some(Value::Int64(i64::from(id) << 40)),
            _ => Some(Value::Int32(id * 37 % 101)),
        };
        assert_all_alike(&documents(mixed), 4);
    }

    #[test]
    fn windows_whose_states_hold_many_values() {
        let numbers = documents(|id| Some(Value::Int32(id * 7919 % 1009)));
        for count in [1, 12, 25, 70, 500] {
            assert_all_alike(&numbers, count);
        }
    }

    #[test]
    fn equal_numbers_have_no_deviation_in_any_window() {
        let tenths = documents(|id| (id % 7 != 0).then_some(Value::Double(0.1)));
        let huge = documents(|id| match id {
            150 => Some(Value::Double(1e200)),
            _ => Some("x".into()),
        });
        for documents in [tenths, huge] {
            assert_alike(&documents, &doc! { "$stdDevPop": "$v" }, (-40, 0));
            assert_alike(&documents, &doc! { "$stdDevSamp": "$v" }, (-40, 60));
        }
    }

    /// The average is exact although a double would round intermediate sums.
    #[test]
    fn averages_of_longs_that_cancel() {
        let longs = documents(|id| {
            Some(Value::Int64(match id % 4 {
                0 => i64::MAX - 5,
                2 => -i64::MAX,
                _ => i64::from(id),
            }))
        });
        for ends in ENDS.into_iter().chain([(-3, 0), (-10, 9)]) {
            assert_alike(&longs, &doc! { "$avg": "$v" }, ends);
        }
    }

    /// One long value is in the states of all documents before it.
    #[test]
    fn windows_with_a_long_value() {
        for letter in ["A", "z"] {
            let long = documents(|id| match id {
                20 => Some(letter.repeat(5 << 20).into()),
                _ => Some(char::from(b'a' + (id % 26) as u8).to_string().into()),
            });
            for output in outputs(2).into_iter().skip(5) {
                assert_alike(&long, &output, (0, 1000));
            }
        }
    }
}
