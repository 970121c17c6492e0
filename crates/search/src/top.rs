//! The best k records of a query, without scoring all of them.
//!
//! Blocks of postings have upper bounds of their scores. As soon as k records are known, a block
//! whose bound does not exceed the worst of them is skipped.
//!
//! - A disjunction is searched by MaxScore in windows: `max_score`.
//! - Any other query is searched block by block: a block is skipped as a whole, or read.
//!
//! Sources: Turtle and Flood, "Query evaluation: strategies and optimizations", 1995 (MaxScore);
//! Ding and Suel, "Faster top-k document retrieval using block-max indexes", 2011; Mallia and
//! others, "Faster BlockMax WAND with variable-sized blocks", 2017.

mod collector;
mod max_score;

pub use collector::{Hit, TieOrder};

pub(crate) use collector::Collector;

use windrow_interrupt::{Interrupt, Interrupted, PacedInterrupt};

use crate::batch::Batch;
use crate::ids::Ids;
use crate::matches::Matches;
use crate::operators::{Conjunction, Node};
use crate::postings::{END, Postings};
use crate::score::Scorer;

/// What [`best`] looks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestOptions {
    /// The number of records at most.
    pub k: usize,
    /// Which of two records with the same score is the better one.
    pub ties: TieOrder,
    /// Only records that come after this one are wanted: the last record of the page before.
    pub after: Option<Hit>,
    /// Only records with a greater score are wanted. Use it if better ones are known already.
    pub above: Option<f64>,
}

impl BestOptions {
    /// Looks for the best k records, without further conditions.
    pub fn new(k: usize, ties: TieOrder) -> BestOptions {
        BestOptions {
            k,
            ties,
            after: None,
            above: None,
        }
    }
}

/// What [`best`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The records, the best one first.
    pub hits: Vec<Hit>,
    /// The number of postings that were read.
    pub postings_read: u64,
    /// The number of postings of the query's lists that were not read.
    pub postings_skipped: u64,
}

/// Returns the best k records of a query. The query is used up.
///
/// `interrupt` is checked about every 1,000 postings or blocks.
///
/// ```
/// use windrow_interrupt::{Interrupted, Uninterrupted};
/// use windrow_search::memory::{MemoryPosting, MemoryPostings};
/// use windrow_search::{BestOptions, Ids, IdRange, Node, Term, TextScore, TieOrder, best};
///
/// let posting = |id| MemoryPosting {
///     id,
///     frequency: 1,
///     length: 2 + id as u32,
///     ..MemoryPosting::default()
/// };
/// let term = Term::new(MemoryPostings::new((0..500).map(posting)), TextScore);
/// let mut query: Node<_, _, IdRange> = Node::Term(Box::new(term));
/// let best = best(&mut query, &BestOptions::new(1, TieOrder::LowestId), &Uninterrupted)?;
/// assert_eq!((best.hits[0].id, best.hits[0].score), (0, 0.75));
/// assert_eq!(best.postings_skipped, 371);
/// # Ok::<(), Interrupted>(())
/// ```
///
/// # Errors
/// Fails if the search is interrupted.
pub fn best<P: Postings, S: Scorer, F: Ids>(
    query: &mut Node<P, S, F>,
    options: &BestOptions,
    interrupt: &dyn Interrupt,
) -> Result<Best, Interrupted> {
    let postings = query.postings();
    let mut collector = Collector::new(options);
    let mut interrupt = PacedInterrupt::new(interrupt);
    if options.k > 0 {
        search(query, &mut collector, &mut interrupt)?;
    }
    Ok(collector.into_best(postings, query.postings_read()))
}

fn search<P: Postings, S: Scorer, F: Ids>(
    query: &mut Node<P, S, F>,
    collector: &mut Collector,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<(), Interrupted> {
    match query {
        Node::Without(parts) => {
            let (included, excluded) = parts.parts_mut();
            search_filtered(
                included,
                |id| excluded.probe(id) != id,
                collector,
                interrupt,
            )
        }
        Node::All(lists) => match split_filters(lists.lists_mut()) {
            Some(Filtered {
                scored,
                before,
                after,
            }) => {
                let passes_filters = |id| {
                    let mut filters = before.iter_mut().chain(after.iter_mut());
                    filters.all(|filter| filter.probe(id) == id)
                };
                search_filtered(scored, passes_filters, collector, interrupt)
            }
            None => by_blocks(lists.as_mut(), |_| true, collector, interrupt),
        },
        other => search_filtered(other, |_| true, collector, interrupt),
    }
}

/// Searches the records of a query that pass the filters. `passes_filters` is called for records that would be
/// among the best, in the order of their ids.
fn search_filtered<P: Postings, S: Scorer, F: Ids>(
    query: &mut Node<P, S, F>,
    passes_filters: impl FnMut(u64) -> bool,
    collector: &mut Collector,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<(), Interrupted> {
    match query {
        Node::AnyTerm(lists) => {
            max_score::search(lists.lists_mut(), passes_filters, collector, interrupt)
        }
        Node::Any(lists) => {
            max_score::search(lists.lists_mut(), passes_filters, collector, interrupt)
        }
        Node::Term(list) => by_blocks(list.as_mut(), passes_filters, collector, interrupt),
        Node::AllTerms(list) => all_terms(list.as_mut(), passes_filters, collector, interrupt),
        other => by_blocks(other, passes_filters, collector, interrupt),
    }
}

/// A conjunction of one list with scores and of filters.
struct Filtered<'l, N> {
    scored: &'l mut N,
    before: &'l mut [N],
    after: &'l mut [N],
}

/// The list with scores leads if it has at most this many times the records of the rarest filter.
/// Otherwise the filter leads.
const SCORED_RATIO_MAX: u64 = 8;

/// Splits a conjunction, if the list with scores should lead: its blocks can be skipped, and only
/// records that would be among the best have to be sought in the filters.
fn split_filters<P: Postings, S: Scorer, F: Ids>(
    lists: &mut [Node<P, S, F>],
) -> Option<Filtered<'_, Node<P, S, F>>> {
    let mut scored = None;
    for (place, list) in lists.iter_mut().enumerate() {
        if list.bound() > 0.0 && scored.replace(place).is_some() {
            return None;
        }
    }
    let rarest = lists.first_mut()?.count_at_most();
    let (before, rest) = lists.split_at_mut_checked(scored?)?;
    let (scored, after) = rest.split_first_mut()?;
    let may_lead = scored.count_at_most() <= rarest.saturating_mul(SCORED_RATIO_MAX);
    may_lead.then_some(Filtered {
        scored,
        before,
        after,
    })
}

/// Searches a list block by block.
fn by_blocks<M: Matches>(
    list: &mut M,
    mut passes_filters: impl FnMut(u64) -> bool,
    collector: &mut Collector,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<(), Interrupted> {
    let mut batch = Batch::default();
    while list.id() != END {
        let Some(end) = seek_block(list, collector, interrupt)? else {
            return Ok(());
        };
        while list.id() <= end && list.id() != END {
            list.read(end, &mut batch);
            if batch.count == 0 {
                return Ok(());
            }
            interrupt.steps(batch.count as u32)?;
            for (id, score) in batch.scored() {
                if collector.is_competitive(score) && passes_filters(id) {
                    collector.offer(id, score);
                }
            }
            if !collector.is_competitive(list.block_bound()) {
                break;
            }
        }
    }
    Ok(())
}

/// Seeks the first block that may have a record among the best, and returns its end. Returns `None`
/// if no block has.
fn seek_block<M: Matches>(
    list: &mut M,
    collector: &Collector,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<Option<u64>, Interrupted> {
    let mut from = list.id();
    let mut end = list.block_end(from);
    while !collector.is_competitive(list.block_bound()) {
        interrupt.step()?;
        if end == END {
            return Ok(None);
        }
        from = end + 1;
        end = list.block_end(from);
    }
    list.seek(from);
    Ok(Some(end))
}

/// Searches a conjunction block by block. The postings of the list that leads are scored first:
/// most of them need not be sought in the other lists.
fn all_terms<M: Matches>(
    list: &mut Conjunction<M>,
    mut passes_filters: impl FnMut(u64) -> bool,
    collector: &mut Collector,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<(), Interrupted> {
    let mut batch = Batch::default();
    while list.id() != END {
        let Some(end) = seek_block(list, collector, interrupt)? else {
            return Ok(());
        };
        while list.id() <= end && list.id() != END {
            list.read_leading(end, &mut batch);
            interrupt.steps(batch.count as u32)?;
            let mut least = 0;
            for (id, leading_score) in batch.scored() {
                if id < least || !collector.is_competitive(list.bound_with(leading_score)) {
                    continue;
                }
                least = list.probe_others(id);
                if least == id {
                    let score = list.score_with(leading_score);
                    if collector.is_competitive(score) && passes_filters(id) {
                        collector.offer(id, score);
                    }
                }
            }
            if least == END || batch.count == 0 {
                return Ok(());
            }
            if !collector.is_competitive(list.block_bound()) {
                break;
            }
        }
    }
    Ok(())
}
