//! Records that are in at least a minimum number of some lists.

use super::Disjunction;
use crate::matches::Matches;
use crate::postings::END;

/// Records that are in at least `minimum` of the lists.
///
/// If a record is in at least `n` of `m` lists, then it is in at least one of any `m - n + 1`
/// lists. The `m - n + 1` lists with the fewest records are therefore enumerated, and the other
/// lists are only probed for those records.
#[derive(Clone, Debug)]
pub struct AtLeast<M> {
    lead: Disjunction<M>,
    /// The other lists, in increasing order of their number of records.
    others: Vec<M>,
    /// The locations of the lists in the order of the query, in which scores are added.
    query_order: Vec<ListLocation>,
    minimum: usize,
    id: u64,
}

/// The location of a list of the query.
#[derive(Clone, Copy, Debug)]
enum ListLocation {
    /// The list with this index in `lead`.
    Lead(usize),
    /// The list with this index in `others`.
    Other(usize),
}

impl<M: Matches> AtLeast<M> {
    /// Creates the list of the records that are in at least `minimum` of the lists. A minimum of 0
    /// is the same as 1.
    pub fn new(lists: Vec<M>, minimum: usize) -> AtLeast<M> {
        let minimum = minimum.max(1);
        let lead_count = (lists.len() + 1).saturating_sub(minimum);
        let mut lists: Vec<(u64, usize, M)> = lists
            .into_iter()
            .enumerate()
            .map(|(number, mut list)| (list.count_at_most(), number, list))
            .collect();
        lists.sort_by_key(|(count, ..)| *count);
        let mut locations: Vec<(usize, ListLocation)> = lists
            .iter()
            .enumerate()
            .map(|(at, (_, number, _))| match at.checked_sub(lead_count) {
                None => (*number, ListLocation::Lead(at)),
                Some(at) => (*number, ListLocation::Other(at)),
            })
            .collect();
        locations.sort_by_key(|(number, _)| *number);
        let mut lead: Vec<M> = lists.into_iter().map(|(.., list)| list).collect();
        let others = lead.split_off(lead_count);
        let mut operator = AtLeast {
            lead: Disjunction::new(lead),
            others,
            query_order: locations
                .into_iter()
                .map(|(_, location)| location)
                .collect(),
            minimum,
            id: END,
        };
        let first = operator.lead.id();
        operator.find(first);
        operator
    }

    /// Moves to the first record at or after `id` that is in enough lists.
    fn find(&mut self, mut id: u64) -> u64 {
        while id != END && !self.is_in_enough(id) {
            id = self.lead.next();
        }
        self.id = id;
        id
    }

    fn is_in_enough(&mut self, id: u64) -> bool {
        let mut count = self.lead.matching_count();
        let mut rest = self.others.len();
        for other in &mut self.others {
            if count >= self.minimum || count + rest < self.minimum {
                break;
            }
            rest -= 1;
            count += usize::from(other.probe(id) == id);
        }
        count >= self.minimum
    }
}

impl<M: Matches> Matches for AtLeast<M> {
    fn id(&self) -> u64 {
        self.id
    }

    fn next(&mut self) -> u64 {
        if self.id == END {
            return END;
        }
        let id = self.lead.next();
        self.find(id)
    }

    fn seek(&mut self, id: u64) -> u64 {
        if self.id >= id {
            return self.id;
        }
        let id = self.lead.seek(id);
        self.find(id)
    }

    fn score(&mut self) -> f64 {
        let mut sum = 0.0;
        for location in &self.query_order {
            sum += match location {
                ListLocation::Lead(number) => self.lead.matching(*number).map_or(0.0, M::score),
                ListLocation::Other(number) => {
                    let other = self.others.get_mut(*number);
                    other.map_or(0.0, |other| score_in(other, self.id))
                }
            };
        }
        sum
    }

    fn count_at_most(&mut self) -> u64 {
        self.lead.count_at_most()
    }

    fn bound(&mut self) -> f64 {
        let mut sum = 0.0;
        for location in &self.query_order {
            let list = match location {
                ListLocation::Lead(number) => self.lead.lists_mut().get_mut(*number),
                ListLocation::Other(number) => self.others.get_mut(*number),
            };
            sum += list.map_or(0.0, M::bound);
        }
        sum
    }

    fn postings_read(&self) -> u64 {
        let others = self.others.iter().map(M::postings_read);
        self.lead.postings_read() + others.sum::<u64>()
    }

    fn postings(&mut self) -> u64 {
        let others = self.others.iter_mut().map(M::postings);
        self.lead.postings() + others.sum::<u64>()
    }
}

/// Returns the score of a record in a list; 0 if the list does not have it.
fn score_in<M: Matches>(list: &mut M, id: u64) -> f64 {
    if list.probe(id) == id {
        list.score()
    } else {
        0.0
    }
}
