//! States of windows that move on at both ends, without taking a long window in anew for each document.
//!
//! Of the documents up to a middle there is a state from each of them to the middle, and of those behind
//! it one state of all. A window is one of the former and the latter together. Where its begin passes the
//! middle, that becomes its end. So each document is taken in twice, however long the windows are.
//!
//! ```text
//! begin   middle    end
//!   | | | | |         |
//!   |-------|                 suffixes
//!     |-----|---------|       one of them, and what is behind
//! ```

use windrow_document::Document;

use super::bounds::Window;
use super::{Check, Partition};
use crate::Error;
use crate::accumulator::{Accumulator, AccumulatorState};

pub(super) struct Sliding<'s, 'a> {
    accumulator: &'s Accumulator,
    partition: &'s Partition<'a>,
    /// From each document to the middle, the nearest to the middle first.
    suffixes: Vec<AccumulatorState>,
    middle: usize,
    /// From the middle to the end.
    behind: AccumulatorState,
    end: usize,
}

impl<'s, 'a> Sliding<'s, 'a> {
    pub fn new(
        accumulator: &'s Accumulator,
        partition: &'s Partition<'a>,
    ) -> Result<Sliding<'s, 'a>, Error> {
        Ok(Sliding {
            accumulator,
            partition,
            suffixes: Vec::new(),
            middle: 0,
            behind: nothing(accumulator, partition)?,
            end: 0,
        })
    }

    /// The state of a window, which does not begin before the last one.
    pub fn state(
        &mut self,
        (begin, end): Window,
        check: &mut Check<'_>,
    ) -> Result<AccumulatorState, Error> {
        let first = self.middle - self.suffixes.len();
        if begin < first || begin >= self.middle || end < self.end {
            self.begin_anew((begin, end), check)?;
        }
        self.suffixes.truncate(self.middle - begin);
        for place in self.end..end {
            check()?;
            add(self.accumulator, self.partition, place, &mut self.behind)?;
        }
        self.end = end;
        let Some(suffix) = self.suffixes.last() else {
            return Ok(self.behind.clone());
        };
        let mut state = suffix.clone();
        // The last of nothing would be nothing.
        if self.end > self.middle {
            state.merge(self.behind.clone(), self.partition.context.collation)?;
        }
        Ok(state)
    }

    fn begin_anew(&mut self, (begin, end): Window, check: &mut Check<'_>) -> Result<(), Error> {
        self.suffixes.clear();
        for place in (begin..end).rev() {
            check()?;
            let mut state = nothing(self.accumulator, self.partition)?;
            add(self.accumulator, self.partition, place, &mut state)?;
            if let Some(suffix) = self.suffixes.last() {
                state.merge(suffix.clone(), self.partition.context.collation)?;
            }
            self.suffixes.push(state);
        }
        (self.middle, self.end) = (end, end);
        self.behind = nothing(self.accumulator, self.partition)?;
        Ok(())
    }
}

/// The state of no documents.
pub(super) fn nothing(
    accumulator: &Accumulator,
    partition: &Partition<'_>,
) -> Result<AccumulatorState, Error> {
    accumulator.start(&partition.context.with_root(Document::EMPTY))
}

fn add(
    accumulator: &Accumulator,
    partition: &Partition<'_>,
    place: usize,
    state: &mut AccumulatorState,
) -> Result<(), Error> {
    match partition.documents.get(place) {
        Some(document) => accumulator.add(state, &partition.context_of(*document)),
        None => Ok(()),
    }
}
