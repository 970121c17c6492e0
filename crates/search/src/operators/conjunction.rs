//! Records that are in all of some lists.

use crate::batch::Batch;
use crate::matches::Matches;
use crate::postings::END;
use crate::sums::sum_slack;

/// Records that are in all lists. The records of the list with the fewest records, the *lead*, are
/// enumerated, and the other lists are probed for them.
#[derive(Clone, Debug)]
pub struct Conjunction<M> {
    /// The lists in increasing order of their number of records. The first one is the lead.
    lists: Vec<M>,
    /// The indexes of the lists in the order of the query, in which scores are added.
    query_order: Vec<usize>,
    id: u64,
    block: Option<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    end: u64,
    bound: f64,
    /// The bound of the sum of scores in the lists other than the lead.
    bound_of_others: f64,
}

/// If a list has more than this many times the records of the lead, the bound of the whole list is
/// used in place of the bounds of its blocks. In such a list, one block of the lead covers so many
/// blocks that reading their bounds costs more than it saves.
const BLOCKS_READ_MAX: u64 = 8;

impl<M: Matches> Conjunction<M> {
    /// Creates the list of the records that are in all lists. It is empty if there are no lists.
    pub fn new(lists: Vec<M>) -> Conjunction<M> {
        let mut lists: Vec<(u64, usize, M)> = lists
            .into_iter()
            .enumerate()
            .map(|(number, mut list)| (list.count_at_most(), number, list))
            .collect();
        lists.sort_by_key(|(count, ..)| *count);
        let mut query_order: Vec<usize> = (0..lists.len()).collect();
        query_order.sort_by_key(|at| lists.get(*at).map(|(_, number, _)| *number));
        let mut conjunction = Conjunction {
            lists: lists.into_iter().map(|(.., list)| list).collect(),
            query_order,
            id: END,
            block: None,
        };
        let first = conjunction.lists.first().map_or(END, Matches::id);
        conjunction.align(first);
        conjunction
    }

    /// Returns the lists in increasing order of their number of records. If one of them is moved,
    /// the conjunction itself must not be used any more.
    pub(crate) fn lists_mut(&mut self) -> &mut [M] {
        &mut self.lists
    }

    /// Reads the records of the lead up to `last`, at most 128, with their scores in the lead, and
    /// moves the lead to the record after them. The records need not be in the other lists.
    /// Afterwards the conjunction may only be read with this function, or after a
    /// [`seek`](Matches::seek).
    pub(crate) fn read_leading(&mut self, last: u64, batch: &mut Batch) {
        match self.lists.first_mut() {
            Some(lead) => {
                lead.read(last, batch);
                self.id = lead.id();
            }
            None => batch.clear(),
        }
    }

    /// Returns an upper bound of the score of a record that has `leading_score` in the lead and is
    /// in the current block of the block cursor.
    #[inline]
    pub(crate) fn bound_with(&self, leading_score: f64) -> f64 {
        let others = self.block.map_or(f64::INFINITY, |it| it.bound_of_others);
        (leading_score + others) * sum_slack(self.lists.len())
    }

    /// Returns `id`, which is a record of the lead, if the other lists have it as well. Otherwise
    /// returns a greater id such that no record from `id` up to that one is in all lists.
    #[inline]
    pub(crate) fn probe_others(&mut self, id: u64) -> u64 {
        for other in self.lists.iter_mut().skip(1) {
            let found = other.probe(id);
            if found != id {
                return found;
            }
        }
        id
    }

    /// Returns the score of a record that has `leading_score` in the lead and is the current record
    /// of the other lists.
    #[inline]
    pub(crate) fn score_with(&mut self, leading_score: f64) -> f64 {
        let mut sum = 0.0;
        for at in &self.query_order {
            sum += match at {
                0 => leading_score,
                _ => self.lists.get_mut(*at).map_or(0.0, Matches::score),
            };
        }
        sum
    }

    /// Moves to the first record at or after `id` that all lists have. `id` is the current record
    /// of the lead.
    #[inline]
    fn align(&mut self, mut id: u64) -> u64 {
        let Some((lead, others)) = self.lists.split_first_mut() else {
            return END;
        };
        'records: while id != END {
            for other in &mut *others {
                let found = other.probe(id);
                if found != id {
                    id = if found == END { END } else { lead.seek(found) };
                    continue 'records;
                }
            }
            break;
        }
        self.id = id;
        id
    }
}

impl<M: Matches> Matches for Conjunction<M> {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.id == END {
            return END;
        }
        let id = self.lists.first_mut().map_or(END, Matches::next);
        self.align(id)
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        if self.id >= id {
            return self.id;
        }
        let id = self.lists.first_mut().map_or(END, |lead| lead.seek(id));
        self.align(id)
    }

    #[inline]
    fn score(&mut self) -> f64 {
        let mut sum = 0.0;
        for at in &self.query_order {
            sum += self.lists.get_mut(*at).map_or(0.0, Matches::score);
        }
        sum
    }

    fn count_at_most(&mut self) -> u64 {
        self.lists.first_mut().map_or(0, Matches::count_at_most)
    }

    fn block_end(&mut self, id: u64) -> u64 {
        if let Some(block) = self.block
            && id <= block.end
        {
            return block.end;
        }
        let Some(lead) = self.lists.first_mut() else {
            return END;
        };
        let end = lead.block_end(id);
        let near = lead.count_at_most().saturating_mul(BLOCKS_READ_MAX);
        let (mut bound, mut bound_of_others) = (0.0, 0.0);
        for at in &self.query_order {
            let Some(list) = self.lists.get_mut(*at) else {
                continue;
            };
            if *at == 0 {
                bound += list.block_bound();
                continue;
            }
            let in_block = if end == END || list.count_at_most() > near {
                list.bound()
            } else {
                list.bound_between(id, end)
            };
            bound += in_block;
            bound_of_others += in_block;
        }
        self.block = Some(Block {
            end,
            bound,
            bound_of_others,
        });
        end
    }

    fn block_bound(&mut self) -> f64 {
        self.block.map_or(f64::INFINITY, |block| block.bound)
    }

    fn bound(&mut self) -> f64 {
        let mut sum = 0.0;
        for at in &self.query_order {
            sum += self.lists.get_mut(*at).map_or(0.0, Matches::bound);
        }
        sum
    }

    fn postings_read(&self) -> u64 {
        self.lists.iter().map(Matches::postings_read).sum()
    }

    fn postings(&mut self) -> u64 {
        self.lists.iter_mut().map(Matches::postings).sum()
    }
}
