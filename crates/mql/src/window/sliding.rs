//! States of windows that move at both ends, without accumulating a long window again for each
//! document.
//!
//! The partition is split at a middle. There are states from documents before the middle up to the
//! middle, and one state of all documents from the middle to the end of the window. The state of a
//! window is the merge of one of the former and the latter. When the start of the window passes the
//! middle, the current end becomes the new middle. So each document is accumulated only a few
//! times, however long the windows are.
//!
//! The states up to the middle do not all exist at the same time. The documents before the middle
//! are divided into blocks, with about as many blocks as documents in a block. There is a state
//! from the start of each block, and one from each document of the block in which the window
//! starts: 200 states for 10,000 documents. A long value is in many states. If the states need too
//! much memory, windows do not slide.
//!
//! ```text
//! start         middle      end
//!   | | | . . | . . |         |
//!         |-----|---|            states from the starts of blocks
//!   |-|-|-----------|            states from the documents of one block
//!     |-------------|---------|  one of them, and the state after the middle
//! ```

use windrow_document::Document;

use super::Partition;
use super::bounds::Window;
use crate::Error;
use crate::accumulator::{Accumulator, AccumulatorState};
use crate::interrupt::count_work;

/// Maximum bytes of the states from the starts of blocks, and of those within one block.
const STATES_BYTES_MAX: usize = 32 << 20;

pub(super) struct SlidingWindow<'s, 'a> {
    accumulator: &'s Accumulator,
    partition: &'s Partition<'a>,
    /// The states from the start of each block to the middle.
    blocks: Suffixes,
    /// The states from each document of the current block to the middle. The window starts in this
    /// block.
    suffixes: Suffixes,
    start: usize,
    middle: usize,
    /// The state from the middle to the end.
    after_middle: AccumulatorState,
    end: usize,
}

/// States from an index to the middle. The last one has the smallest index.
#[derive(Default)]
struct Suffixes {
    states: Vec<(usize, AccumulatorState)>,
    bytes: usize,
}

impl<'s, 'a> SlidingWindow<'s, 'a> {
    pub fn new(
        accumulator: &'s Accumulator,
        partition: &'s Partition<'a>,
    ) -> Result<SlidingWindow<'s, 'a>, Error> {
        Ok(SlidingWindow {
            accumulator,
            partition,
            blocks: Suffixes::default(),
            suffixes: Suffixes::default(),
            start: 0,
            middle: 0,
            after_middle: empty_state(accumulator, partition)?,
            end: 0,
        })
    }

    /// Returns the state of a window. It must not be empty, nor start before the previous window.
    /// Returns `None` if the states would need too much memory.
    pub fn state(&mut self, window: Window) -> Result<Option<AccumulatorState>, Error> {
        let Window { start, end } = window;
        let continues = start >= self.start && start < self.middle && end >= self.end;
        if !continues && !self.restart(window)? {
            return Ok(None);
        }
        self.start = start;
        self.suffixes.remove_before(start);
        if self.suffixes.last().is_none() && !self.enter_block()? {
            return Ok(None);
        }
        for index in self.end..end {
            count_work(1)?;
            add(
                self.accumulator,
                self.partition,
                index,
                &mut self.after_middle,
            )?;
        }
        self.end = end;
        let Some((_, suffix)) = self.suffixes.last() else {
            return Ok(None);
        };
        let mut state = suffix.clone();
        if self.end > self.middle {
            state.merge(self.after_middle.clone(), self.partition.context.collation)?;
        }
        Ok(Some(state))
    }

    /// Starts again with the end of the window as the middle. Returns `false` if the states of the
    /// blocks need too much memory.
    fn restart(&mut self, window: Window) -> Result<bool, Error> {
        let Window { start, end } = window;
        (self.blocks, self.suffixes) = Default::default();
        let size = window.length().isqrt().max(1);
        let mut state = None;
        for index in (start..end).rev() {
            count_work(1)?;
            let with_document = self.with_document(index, state)?;
            if (end - index).is_multiple_of(size) && !self.blocks.push(index, with_document.clone())
            {
                return Ok(false);
            }
            state = Some(with_document);
        }
        (self.middle, self.end) = (end, end);
        self.after_middle = empty_state(self.accumulator, self.partition)?;
        Ok(true)
    }

    /// Computes the states from the start of the window to the next block. Returns `false` if they
    /// need too much memory.
    fn enter_block(&mut self) -> Result<bool, Error> {
        self.blocks.remove_before(self.start + 1);
        let (block_end, mut state) = match self.blocks.last() {
            Some((index, state)) => (*index, Some(state.clone())),
            None => (self.middle, None),
        };
        for index in (self.start..block_end).rev() {
            count_work(1)?;
            let with_document = self.with_document(index, state)?;
            if !self.suffixes.push(index, with_document.clone()) {
                return Ok(false);
            }
            state = Some(with_document);
        }
        Ok(true)
    }

    /// Returns the state of the document at an index merged with the state of the documents after
    /// it.
    fn with_document(
        &self,
        index: usize,
        later: Option<AccumulatorState>,
    ) -> Result<AccumulatorState, Error> {
        let mut state = empty_state(self.accumulator, self.partition)?;
        add(self.accumulator, self.partition, index, &mut state)?;
        if let Some(later) = later {
            state.merge(later, self.partition.context.collation)?;
        }
        Ok(state)
    }
}

impl Suffixes {
    /// Adds a state. Returns `false` if the states need too much memory.
    fn push(&mut self, index: usize, state: AccumulatorState) -> bool {
        self.bytes += state.bytes();
        self.states.push((index, state));
        self.bytes <= STATES_BYTES_MAX
    }

    fn last(&self) -> Option<&(usize, AccumulatorState)> {
        self.states.last()
    }

    fn remove_before(&mut self, index: usize) {
        while let Some((_, state)) = self.states.pop_if(|(start, _)| *start < index) {
            self.bytes -= state.bytes();
        }
    }
}

/// Returns the state of an empty window.
pub(super) fn empty_state(
    accumulator: &Accumulator,
    partition: &Partition<'_>,
) -> Result<AccumulatorState, Error> {
    accumulator.start(&partition.context.with_root(Document::EMPTY))
}

fn add(
    accumulator: &Accumulator,
    partition: &Partition<'_>,
    index: usize,
    state: &mut AccumulatorState,
) -> Result<(), Error> {
    match partition.documents.get(index) {
        Some(document) => accumulator.add(state, &partition.context_of(*document)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use windrow_document::{DocumentBuf, Value, ValueRef, doc};

    use super::*;
    use crate::expression::{Context, Scope};

    /// Slides over 1,000 documents, the last of which has a string of `length` bytes. Returns the
    /// maximum numbers of states and of bytes, or `None` if sliding ended because of its memory.
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
        let mut sliding = SlidingWindow::new(&accumulator, &partition).unwrap();
        let (mut states, mut bytes) = (0, 0);
        for start in 0..1000 {
            let state = sliding.state(Window { start, end: 1000 }).unwrap();
            let (blocks, suffixes) = (&sliding.blocks, &sliding.suffixes);
            states = states.max(blocks.states.len() + suffixes.states.len());
            bytes = bytes.max(blocks.bytes + suffixes.bytes);
            assert!(bytes <= 2 * (STATES_BYTES_MAX + length + 1000));
            assert_eq!(state?.finish(), Value::String(text(999)));
        }
        Some((states, bytes))
    }

    #[test]
    fn the_number_of_states_does_not_grow_with_the_window() {
        let (states, bytes) = slide(1000).unwrap();
        assert!(states < 70, "{states}");
        assert!(bytes < 2000 * states, "{bytes}");
    }

    #[test]
    fn large_states_end_the_sliding() {
        assert_eq!(slide(4 << 20), None);
    }
}
