//! The best records so far.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Best, BestOptions};

/// A record with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The record id.
    pub id: u64,
    /// The score.
    pub score: f64,
}

/// The order of records with the same score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieOrder {
    /// The record with the lowest id first, as in `$search`.
    LowestId,
    /// The record with the highest id first, as in `$text`. Blocks whose bound equals the worst
    /// score cannot be skipped in this order.
    HighestId,
}

/// A hit as a number: the better the hit, the greater the number. Scores are not negative, so their
/// bits are in the order of their values.
type Rank = u128;

impl TieOrder {
    fn rank(self, hit: Hit) -> Rank {
        let id = match self {
            TieOrder::LowestId => !hit.id,
            TieOrder::HighestId => hit.id,
        };
        Rank::from(hit.score.to_bits()) << 64 | Rank::from(id)
    }

    fn hit(self, rank: Rank) -> Hit {
        let id = rank as u64;
        Hit {
            id: match self {
                TieOrder::LowestId => !id,
                TieOrder::HighestId => id,
            },
            score: f64::from_bits((rank >> 64) as u64),
        }
    }
}

/// Collects hits in the order of their ids, and keeps the best k.
#[derive(Debug)]
pub(crate) struct Collector {
    k: usize,
    ties: TieOrder,
    /// Only hits of a lower rank are wanted.
    after: Option<Rank>,
    /// The worst first.
    best: BinaryHeap<Reverse<Rank>>,
    /// Only scores above this are wanted.
    floor: f64,
}

impl Collector {
    pub fn new(options: &BestOptions) -> Collector {
        Collector {
            k: options.k,
            ties: options.ties,
            after: options.after.map(|hit| options.ties.rank(hit)),
            best: BinaryHeap::new(),
            floor: options.above.unwrap_or(f64::NEG_INFINITY),
        }
    }

    /// Returns `true` if a record with this score may be among the best.
    #[inline]
    pub fn is_competitive(&self, score: f64) -> bool {
        score > self.floor
    }

    /// Takes a record, if it is among the best.
    #[inline]
    pub fn offer(&mut self, id: u64, score: f64) {
        if self.is_competitive(score) {
            self.insert(Hit { id, score });
        }
    }

    fn insert(&mut self, hit: Hit) {
        let rank = self.ties.rank(hit);
        if self.after.is_some_and(|after| rank >= after) {
            return;
        }
        if self.best.len() < self.k {
            self.best.push(Reverse(rank));
        } else if let Some(mut worst) = self.best.peek_mut()
            && worst.0 < rank
        {
            *worst = Reverse(rank);
        }
        if self.best.len() == self.k
            && let Some(worst) = self.best.peek()
        {
            let score = self.ties.hit(worst.0).score;
            let floor = match self.ties {
                TieOrder::LowestId => score,
                TieOrder::HighestId => score.next_down(),
            };
            self.floor = self.floor.max(floor);
        }
    }

    /// Returns the hits of a query whose lists have `postings` postings.
    pub fn into_best(self, postings: u64, postings_read: u64) -> Best {
        let ties = self.ties;
        let ranks = self.best.into_sorted_vec().into_iter();
        let postings_read = postings_read.min(postings);
        Best {
            hits: ranks.map(|Reverse(rank)| ties.hit(rank)).collect(),
            postings_read,
            postings_skipped: postings - postings_read,
        }
    }
}
