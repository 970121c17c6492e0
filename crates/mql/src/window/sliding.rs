//! States of windows that move on at both ends, without taking a long window in anew for each document.
//!
//! Of the documents up to a middle there are states from each of them to the middle, and of those behind
//! it one state of all. A window is one of the former and the latter together. Where its begin passes the
//! middle, that becomes its end. So a document is taken in a few times, however long the windows are.
//!
//! Not all states up to the middle are there at one time. The documents before it are in blocks, about as
//! many as each has documents; there are the states from the begin of each block, and those from each
//! document of the block that the window begins in: of 10,000 documents 200 states. Long values are in
//! many of them, and where they would take too much, windows do not slide.
//!
//! ```text
//! begin         middle      end
//!   | | | . . | . . |         |
//!         |-----|---|            from the begins of blocks
//!   |-|-|-----------|            from the documents of one block
//!     |-------------|---------|  one of them, and what is behind
//! ```

use windrow_document::Document;

use super::bounds::Window;
use super::{Check, Partition};
use crate::Error;
use crate::accumulator::{Accumulator, AccumulatorState};

/// Bytes that the states from the begins of blocks may take, and as many those within one block.
const STATES_BYTES_MAX: usize = 32 << 20;

pub(super) struct Sliding<'s, 'a> {
    accumulator: &'s Accumulator,
    partition: &'s Partition<'a>,
    /// From the begin of each block.
    blocks: Suffixes,
    /// From each document of the block that the window begins in.
    suffixes: Suffixes,
    begin: usize,
    middle: usize,
    /// From the middle to the end.
    behind: AccumulatorState,
    end: usize,
}

/// States from places to the middle, the nearest to the middle first.
#[derive(Default)]
struct Suffixes {
    states: Vec<(usize, AccumulatorState)>,
    bytes: usize,
}

impl<'s, 'a> Sliding<'s, 'a> {
    pub fn new(
        accumulator: &'s Accumulator,
        partition: &'s Partition<'a>,
    ) -> Result<Sliding<'s, 'a>, Error> {
        Ok(Sliding {
            accumulator,
            partition,
            blocks: Suffixes::default(),
            suffixes: Suffixes::default(),
            begin: 0,
            middle: 0,
            behind: nothing(accumulator, partition)?,
            end: 0,
        })
    }

    /// The state of a window, which does not begin before the last one and is not empty. None where
    /// states would take too many bytes.
    pub fn state(
        &mut self,
        (begin, end): Window,
        check: &mut Check<'_>,
    ) -> Result<Option<AccumulatorState>, Error> {
        let is_behind = begin >= self.begin && begin < self.middle && end >= self.end;
        if !is_behind && !self.begin_anew((begin, end), check)? {
            return Ok(None);
        }
        self.begin = begin;
        self.suffixes.drop_before(begin);
        if self.suffixes.last().is_none() && !self.enter_block(check)? {
            return Ok(None);
        }
        for place in self.end..end {
            check()?;
            add(self.accumulator, self.partition, place, &mut self.behind)?;
        }
        self.end = end;
        let Some((_, suffix)) = self.suffixes.last() else {
            return Ok(None);
        };
        let mut state = suffix.clone();
        if self.end > self.middle {
            state.merge(self.behind.clone(), self.partition.context.collation)?;
        }
        Ok(Some(state))
    }

    /// Whether the states of blocks take few enough bytes.
    fn begin_anew(&mut self, (begin, end): Window, check: &mut Check<'_>) -> Result<bool, Error> {
        (self.blocks, self.suffixes) = Default::default();
        let size = end.saturating_sub(begin).isqrt().max(1);
        let mut state = None;
        for place in (begin..end).rev() {
            check()?;
            let joined = self.joined(place, state)?;
            if (end - place).is_multiple_of(size) && !self.blocks.push(place, joined.clone()) {
                return Ok(false);
            }
            state = Some(joined);
        }
        (self.middle, self.end) = (end, end);
        self.behind = nothing(self.accumulator, self.partition)?;
        Ok(true)
    }

    /// Makes the states from the begin to the next block. Whether they take few enough bytes.
    fn enter_block(&mut self, check: &mut Check<'_>) -> Result<bool, Error> {
        self.blocks.drop_before(self.begin + 1);
        let (block_end, mut state) = match self.blocks.last() {
            Some((place, state)) => (*place, Some(state.clone())),
            None => (self.middle, None),
        };
        for place in (self.begin..block_end).rev() {
            check()?;
            let joined = self.joined(place, state)?;
            if !self.suffixes.push(place, joined.clone()) {
                return Ok(false);
            }
            state = Some(joined);
        }
        Ok(true)
    }

    /// The state of the document at the place, and of those behind it.
    fn joined(
        &self,
        place: usize,
        behind: Option<AccumulatorState>,
    ) -> Result<AccumulatorState, Error> {
        let mut state = nothing(self.accumulator, self.partition)?;
        add(self.accumulator, self.partition, place, &mut state)?;
        if let Some(behind) = behind {
            state.merge(behind, self.partition.context.collation)?;
        }
        Ok(state)
    }
}

impl Suffixes {
    /// Whether they take few enough bytes.
    fn push(&mut self, place: usize, state: AccumulatorState) -> bool {
        self.bytes += state.bytes();
        self.states.push((place, state));
        self.bytes <= STATES_BYTES_MAX
    }

    fn last(&self) -> Option<&(usize, AccumulatorState)> {
        self.states.last()
    }

    fn drop_before(&mut self, place: usize) {
        while let Some((_, state)) = self.states.pop_if(|(begin, _)| *begin < place) {
            self.bytes -= state.bytes();
        }
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

#[cfg(test)]
mod tests {
    use windrow_document::{DocumentBuf, Value, ValueRef, doc};

    use super::*;
    use crate::expression::{Context, Scope};

    /// Slides over 1,000 documents, of which the last has a string so long, and gives how many states
    /// and bytes are held at most; None where it ends for their bytes.
    fn slide(length: usize) -> Option<(usize, usize)> {
        let source = doc! { "$max": "$v" };
        let operand = ValueRef::Document(source.as_document());
        let accumulator = Accumulator::parse("v", operand, &Scope::new()).unwrap();
        let text = |number| "x".repeat(if number == 999 { length } else { 1 });
        let documents: Vec<DocumentBuf> = (0..1000)
            .map(|number| doc! { "v": (text(number)) })
            .collect();
        let documents: Vec<_> = documents.iter().map(DocumentBuf::as_document).collect();
        let partition = Partition {
            documents: &documents,
            keys: &[],
            sort: None,
            context: Context::new(Document::EMPTY),
        };
        let mut sliding = Sliding::new(&accumulator, &partition).unwrap();
        let (mut states, mut bytes) = (0, 0);
        for begin in 0..1000 {
            let state = sliding.state((begin, 1000), &mut || Ok(())).unwrap();
            let (blocks, suffixes) = (&sliding.blocks, &sliding.suffixes);
            states = states.max(blocks.states.len() + suffixes.states.len());
            bytes = bytes.max(blocks.bytes + suffixes.bytes);
            assert!(bytes <= 2 * (STATES_BYTES_MAX + length + 1000));
            assert_eq!(state?.finish(), Value::String(text(999)));
        }
        Some((states, bytes))
    }

    #[test]
    fn few_states_are_held_however_long_the_window_is() {
        let (states, bytes) = slide(1000).unwrap();
        assert!(states < 70, "{states}");
        assert!(bytes < 2000 * states, "{bytes}");
    }

    #[test]
    fn states_that_hold_too_much_end_the_sliding() {
        assert_eq!(slide(4 << 20), None);
    }
}
