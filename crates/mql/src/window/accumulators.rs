//! Accumulators over windows.

use windrow_document::Value;

use super::Partition;
use super::bounds::{Bounds, Window, outside};
use super::sliding::{self, Sliding};
use crate::Error;
use crate::accumulator::{Accumulator, AccumulatorState, Reach};
use crate::interrupt::count_work;
use crate::memory::{check_window_values, heap_bytes};

/// An accumulator state and the window whose documents it contains.
struct Taken {
    window: Window,
    state: AccumulatorState,
}

/// Shorter windows are accumulated again if their start moves.
const LONG: usize = 32;
/// Sliding needs windows with this many times the documents that a state can hold, because merging
/// states of many values is as slow as accumulating them again.
const STATE_TIMES: usize = 4;
/// The error code of a state that is too large.
const TOO_MUCH: i32 = 146;

/// The evaluation of an accumulator over the windows of a partition.
struct Windows<'s, 'a> {
    accumulator: &'s Accumulator,
    partition: &'s Partition<'a>,
    reach: Reach,
    /// The state of the last window that grew, or that did not slide.
    taken: Option<Taken>,
    /// `None` if the states need too much memory for sliding.
    sliding: Option<Sliding<'s, 'a>>,
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
        bytes += heap_bytes(value.as_ref());
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
        let reach = match bounds.begin_moves() {
            true => sliding::nothing(accumulator, partition)?.reach(),
            false => Reach::All,
        };
        Ok(Windows {
            accumulator,
            partition,
            reach,
            taken: None,
            sliding: Some(Sliding::new(accumulator, partition)?),
        })
    }

    /// The documents of a window that its value depends on.
    fn narrowed(&self, (begin, end): Window) -> Window {
        match self.reach {
            Reach::First(count) => (begin, end.min(begin.saturating_add(count))),
            Reach::Last(count) => (begin.max(end.saturating_sub(count)), end),
            Reach::All | Reach::Few(_) => (begin, end),
        }
    }

    fn value(&mut self, window: Window) -> Result<Value, Error> {
        let grown = self.taken.take().filter(|taken| taken.grows_to(window));
        if grown.is_none()
            && let Some(state) = self.slid(window)?
        {
            return Ok(state.finish());
        }
        let mut current = match grown {
            Some(grown) => grown,
            None => Taken::nothing(self.accumulator, self.partition, window.0)?,
        };
        current.grow(self.accumulator, self.partition, window.1)?;
        let value = current.state.clone().finish();
        self.taken = Some(current);
        Ok(value)
    }

    /// The state of a sliding window. Returns `None` if the window cannot slide. If states need too
    /// much memory, sliding ends for the partition.
    fn slid(&mut self, window: Window) -> Result<Option<AccumulatorState>, Error> {
        let length = window.1.saturating_sub(window.0);
        let (Reach::Few(count), Some(sliding)) = (self.reach, &mut self.sliding) else {
            return Ok(None);
        };
        if length < LONG.max(count.saturating_mul(STATE_TIMES)) {
            return Ok(None);
        }
        let state = match sliding.state(window) {
            // A state of the sliding structure can contain documents that the window itself does
            // not.
            Err(error) if error.code == TOO_MUCH => None,
            state => state?,
        };
        if state.is_none() {
            self.sliding = None;
        }
        Ok(state)
    }
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
    ) -> Result<(), Error> {
        let (from, to) = (self.window.1, end.max(self.window.1));
        let documents = partition.documents.get(from..to);
        for document in documents.ok_or_else(|| outside(from..to, partition.documents.len()))? {
            count_work(1)?;
            accumulator.add(&mut self.state, &partition.context_of(*document))?;
        }
        self.window.1 = to;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use windrow_document::{Decimal128, Document, DocumentBuf, ValueRef, array, doc};

    use super::super::{Kind, WindowFunction};
    use super::*;
    use crate::expression::{Context, Scope};
    use crate::sort::Sort;

    /// The values are the same as if each window is accumulated separately.
    fn assert_alike(documents: &[DocumentBuf], output: &DocumentBuf, ends: (i64, i64)) {
        let mut specification = output.clone();
        specification.push("window", doc! { "documents": (array![ends.0, ends.1]) });
        let order = doc! { "_id": 1 };
        let sort = Sort::parse(order.as_document()).unwrap();
        let specification = ValueRef::Document(specification.as_document());
        let function = WindowFunction::parse(specification, Some(&sort), &Scope::new()).unwrap();
        let Kind::Accumulate(accumulator) = &function.kind else {
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
            let mut alone = Taken::nothing(accumulator, &partition, window.0).unwrap();
            let end = window.1;
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
        let several = doc! { "n": count, "input": "$v" };
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
            doc! { "$minN": (several.clone()) },
            doc! { "$maxN": (several.clone()) },
            doc! { "$firstN": (several.clone()) },
            doc! { "$lastN": several },
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
