//! Records that are in any of some lists.

use crate::matches::Matches;
use crate::postings::END;

/// Records that are in any of the lists. A heap orders the lists by their current records.
///
/// The heap is used if the disjunction is inside another operator. `best`, `count` and `all` read
/// the lists of a disjunction directly, in windows of ids, which is faster.
#[derive(Clone, Debug)]
pub struct Disjunction<M> {
    lists: Vec<M>,
    heap: Heap,
    block: Option<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    end: u64,
    bound: f64,
}

/// With more lists than this, the disjunction counts as one block. Its blocks would be so short,
/// and their bounds so high, that reading the bounds costs more than it saves.
const LISTS_WITH_BLOCKS_MAX: usize = 64;

impl<M: Matches> Disjunction<M> {
    /// Creates the list of the records that are in any of the lists.
    pub fn new(lists: Vec<M>) -> Disjunction<M> {
        Disjunction {
            heap: Heap::new(lists.iter().map(Matches::id)),
            lists,
            block: None,
        }
    }

    /// Returns the lists in the order of the query. If one of them is moved, the disjunction itself
    /// must not be used any more.
    pub(crate) fn lists_mut(&mut self) -> &mut [M] {
        &mut self.lists
    }

    /// Returns the list with this number, if it has the current record.
    pub(super) fn matching(&mut self, number: usize) -> Option<&mut M> {
        let id = self.id();
        let list = self.lists.get_mut(number)?;
        (list.id() == id).then_some(list)
    }

    /// Returns the number of lists that have the current record.
    pub(super) fn matching_count(&self) -> usize {
        self.heap.count_of_first()
    }

    /// Moves each list that is before `id` with `step`, until none is. Returns the new current
    /// record.
    #[inline]
    fn move_lists(&mut self, id: u64, mut step: impl FnMut(&mut M) -> u64) -> u64 {
        loop {
            let first = self.heap.first();
            if first.id >= id {
                return first.id;
            }
            let moved = self
                .lists
                .get_mut(first.list as usize)
                .map_or(END, &mut step);
            self.heap.replace_first(moved);
        }
    }
}

impl<M: Matches> Matches for Disjunction<M> {
    #[inline]
    fn id(&self) -> u64 {
        self.heap.first().id
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let after = self.id().saturating_add(1);
        self.move_lists(after, M::next)
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        self.move_lists(id, |list| list.seek(id))
    }

    fn score(&mut self) -> f64 {
        let id = self.id();
        let mut sum = 0.0;
        for list in &mut self.lists {
            if list.id() == id {
                sum += list.score();
            }
        }
        sum
    }

    fn count_at_most(&mut self) -> u64 {
        let counts = self.lists.iter_mut().map(Matches::count_at_most);
        counts.fold(0, u64::saturating_add)
    }

    fn block_end(&mut self, id: u64) -> u64 {
        if let Some(block) = self.block
            && id <= block.end
        {
            return block.end;
        }
        if self.lists.len() > LISTS_WITH_BLOCKS_MAX {
            let bound = self.bound();
            self.block = Some(Block { end: END, bound });
            return END;
        }
        let (mut end, mut bound) = (END, 0.0);
        for list in &mut self.lists {
            end = end.min(list.block_end(id));
            bound += list.block_bound();
        }
        self.block = Some(Block { end, bound });
        end
    }

    fn block_bound(&mut self) -> f64 {
        self.block.map_or(f64::INFINITY, |block| block.bound)
    }

    fn bound(&mut self) -> f64 {
        self.lists.iter_mut().map(Matches::bound).sum()
    }

    fn postings_read(&self) -> u64 {
        self.lists.iter().map(Matches::postings_read).sum()
    }

    fn postings(&mut self) -> u64 {
        self.lists.iter_mut().map(Matches::postings).sum()
    }

    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        for list in &mut self.lists {
            list.fill(first, bits);
        }
        self.heap = Heap::new(self.lists.iter().map(Matches::id));
        self.id()
    }
}

/// A binary heap of lists, the smallest id first.
#[derive(Clone, Debug)]
struct Heap {
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u64,
    list: u32,
}

const ENDED: Entry = Entry { id: END, list: 0 };

impl Heap {
    fn new(ids: impl Iterator<Item = u64>) -> Heap {
        let mut entries: Vec<Entry> = ids.zip(0..).map(|(id, list)| Entry { id, list }).collect();
        // A sorted sequence is a heap.
        entries.sort_by_key(|entry| entry.id);
        Heap { entries }
    }

    #[inline]
    fn first(&self) -> Entry {
        self.entries.first().copied().unwrap_or(ENDED)
    }

    /// Changes the id of the first entry.
    #[inline]
    fn replace_first(&mut self, id: u64) {
        let Some(first) = self.entries.first_mut() else {
            return;
        };
        first.id = id;
        let mut at = 0;
        loop {
            let left = self.id_at(2 * at + 1);
            let right = self.id_at(2 * at + 2);
            let (least, child) = if right < left {
                (right, 2 * at + 2)
            } else {
                (left, 2 * at + 1)
            };
            if least >= id {
                return;
            }
            self.entries.swap(at, child);
            at = child;
        }
    }

    #[inline]
    fn id_at(&self, at: usize) -> u64 {
        self.entries.get(at).map_or(END, |entry| entry.id)
    }

    /// Returns the number of entries with the smallest id. In a heap, they form a tree with the
    /// same root.
    fn count_of_first(&self) -> usize {
        let id = self.first().id;
        if id == END {
            return 0;
        }
        self.count_from(0, id)
    }

    fn count_from(&self, at: usize, id: u64) -> usize {
        if self.id_at(at) != id {
            return 0;
        }
        1 + self.count_from(2 * at + 1, id) + self.count_from(2 * at + 2, id)
    }
}
