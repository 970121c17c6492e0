//! Records that are in all of some lists.

use crate::batch::Batch;
use crate::matches::Matches;
use crate::postings::END;
use crate::sums::sum_slack;

/// Records that are in all lists. The list with the fewest records leads; the others seek its
/// records.
#[derive(Clone, Debug)]
pub struct Conjunction<M> {
    /// The list with the fewest records first.
    lists: Vec<M>,
    /// The places of the lists in the order of the query, in which scores are added.
    query_order: Vec<usize>,
    id: u64,
    block: Option<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    end: u64,
    bound: f64,
    /// The bound of the lists that do not lead.
    bound_of_others: f64,
}

/// The bounds of a list's blocks are read if the list has at most so many times the records of the
/// list that leads. Otherwise so many blocks are in one of the leading list that reading their
/// bounds costs more than it saves, and the bound of the whole list is used.
const BLOCKS_READ_MAX: u64 = 8;

impl<M: Matches> Conjunction<M> {
    /// Creates the list of the records that are in all lists. Without lists there are none.
    pub fn new(lists: Vec<M>) -> Conjunction<M> {
        let mut lists: Vec<(u64, usize, M)> = lists
            .into_iter()
            .enumerate()
            .map(|(number, mut list)| (list.count_at_most(), number, list))
            .collect();
        lists.sort_by_key(|(count, ..)| *count);
        let mut query_order: Vec<usize> = (0..lists.len()).collect();
        query_order.sort_by_key(|place| lists.get(*place).map(|(_, number, _)| *number));
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

    /// Returns the lists, the one with the fewest records first. The conjunction itself may not be
    /// used any more if they are moved.
    pub(crate) fn lists_mut(&mut self) -> &mut [M] {
        &mut self.lists
    }

    /// Reads the records of the leading list up to `last`, 128 at most, with their scores in that list,
    /// and moves it behind them. They need not be in the other lists. Afterwards the conjunction may only
    /// be read by this function and [`seek`](Matches::seek).
    pub(crate) fn read_leading(&mut self, last: u64, batch: &mut Batch) {
        match self.lists.first_mut() {
            Some(lead) => {
                lead.read(last, batch);
                self.id = lead.id();
            }
            None => batch.clear(),
        }
    }

    /// Returns a bound of the score of a record that has this score in the leading list, in the block
    /// that [`block_end`](Matches::block_end) went to.
    #[inline]
    pub(crate) fn bound_with(&self, leading_score: f64) -> f64 {
        let others = self.block.map_or(f64::INFINITY, |it| it.bound_of_others);
        (leading_score + others) * sum_slack(self.lists.len())
    }

    /// Returns `id` if the other lists have this record of the leading list. Otherwise returns a greater
    /// id such that no record before it is in all lists.
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

    /// Returns the score of the record that the other lists stand on.
    #[inline]
    pub(crate) fn score_with(&mut self, leading_score: f64) -> f64 {
        let mut sum = 0.0;
        for place in &self.query_order {
            sum += match place {
                0 => leading_score,
                _ => self.lists.get_mut(*place).map_or(0.0, Matches::score),
            };
        }
        sum
    }

    /// Moves to the first record of all lists, given that the leading list stands on this id.
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
        for place in &self.query_order {
            sum += self.lists.get_mut(*place).map_or(0.0, Matches::score);
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
        for place in &self.query_order {
            let Some(list) = self.lists.get_mut(*place) else {
                continue;
            };
            if *place == 0 {
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
        for place in &self.query_order {
            sum += self.lists.get_mut(*place).map_or(0.0, Matches::bound);
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
