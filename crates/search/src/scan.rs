//! All records of a query: how many there are, also beside the best ones, and each one with its
//! score.

use windrow_interrupt::{Interrupt, Interrupted, PacedInterrupt};

use crate::batch::Batch;
use crate::bits::{STEPS_PER_LIST, WINDOW_IDS, WINDOW_WORDS};
use crate::ids::{IdSet, Ids};
use crate::matches::Matches;
use crate::operators::Node;
use crate::postings::{END, Postings};
use crate::score::Scorer;
use crate::sums::Sums;
use crate::top::{Best, BestOptions, Collector, Hit, best};

/// Returns how many records a query has. The query is used up.
///
/// `interrupt` is checked about every 1,000 postings.
///
/// # Errors
/// Fails if the search is interrupted.
pub fn count<P: Postings, S: Scorer, F: Ids>(
    query: &mut Node<P, S, F>,
    interrupt: &dyn Interrupt,
) -> Result<u64, Interrupted> {
    if let Some(count) = query.count() {
        return Ok(count);
    }
    let mut interrupt = PacedInterrupt::new(interrupt);
    match query {
        Node::AnyTerm(lists) => count_any(lists.lists_mut(), &mut interrupt),
        Node::Any(lists) => count_any(lists.lists_mut(), &mut interrupt),
        Node::AllTerms(lists) => count_all(lists.lists_mut(), &mut interrupt),
        other => count_any(std::slice::from_mut(other), &mut interrupt),
    }
}

fn count_any<M: Matches>(
    lists: &mut [M],
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<u64, Interrupted> {
    let mut bits = [0_u64; WINDOW_WORDS];
    let mut count = 0;
    loop {
        let first = lists.iter().map(M::id).min().unwrap_or(END);
        if first == END {
            return Ok(count);
        }
        interrupt.steps(STEPS_PER_LIST * lists.len() as u32)?;
        for list in &mut *lists {
            list.fill(first, &mut bits);
        }
        for word in &mut bits {
            count += u64::from(std::mem::take(word).count_ones());
        }
    }
}

/// The maximum span in ids of blocks of 128 postings that are intersected as bits. A sparser list
/// costs less if the others seek its records.
const DENSE_BLOCK_IDS: u64 = 2 * WINDOW_IDS;
/// The maximum number of records of the other lists, in multiples of those of the first one.
const DENSE_RATIO: u64 = 8;

fn count_all<M: Matches>(
    lists: &mut [M],
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<u64, Interrupted> {
    let Some((lead, others)) = lists.split_first_mut() else {
        return Ok(0);
    };
    let most = lead.count_at_most().saturating_mul(DENSE_RATIO);
    let may_use_bits = others.iter_mut().all(|other| other.count_at_most() <= most);
    let mut count = 0;
    let mut id = lead.id();
    while id != END {
        let end = lead.block_end(id);
        if may_use_bits && end - id <= DENSE_BLOCK_IDS {
            interrupt.steps(STEPS_PER_LIST)?;
            count += count_window(lead, others, id);
            id = lead.id();
            continue;
        }
        while id <= end && id != END {
            interrupt.step()?;
            let mut found = others.iter_mut().map(|other| other.probe(id));
            match found.find(|found| *found != id) {
                None => {
                    count += 1;
                    id = lead.next();
                }
                Some(END) => return Ok(count),
                Some(found) => id = lead.seek(found),
            }
        }
    }
    Ok(count)
}

/// Counts the records that are in all lists, in a window of ids, and moves the lists behind it.
fn count_window<M: Matches>(lead: &mut M, others: &mut [M], first: u64) -> u64 {
    let mut bits = [0_u64; WINDOW_WORDS];
    lead.fill(first, &mut bits);
    for other in others {
        let mut found = [0_u64; WINDOW_WORDS];
        other.seek(first);
        other.fill(first, &mut found);
        for (bits, found) in bits.iter_mut().zip(found) {
            *bits &= found;
        }
    }
    bits.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Returns the best k records of a query and how many records it has. The query is used up.
///
/// Terms and their combinations are read twice: to count their records costs little, and the best
/// are found without scoring all. Every other query is read once, since it has to check each
/// record, as a phrase checks positions.
///
/// `interrupt` is checked about every 1,000 postings or blocks.
///
/// # Errors
/// Fails if the search is interrupted.
pub fn best_and_count<P, S, F>(
    query: &mut Node<P, S, F>,
    options: &BestOptions,
    interrupt: &dyn Interrupt,
) -> Result<(Best, u64), Interrupted>
where
    P: Postings + Clone,
    S: Scorer + Clone,
    F: Ids + Clone,
{
    use Node::{AllTerms, Any, AnyTerm, Empty, Term, Union};
    let known = query.count();
    if known.is_some()
        || matches!(
            query,
            Empty | Term(_) | AllTerms(_) | AnyTerm(_) | Any(_) | Union(_)
        )
    {
        let total = match known {
            Some(total) => total,
            None => count(&mut query.clone(), interrupt)?,
        };
        return Ok((best(query, options, interrupt)?, total));
    }
    let postings = query.postings();
    let mut collector = Collector::new(options);
    let mut total = 0;
    all(query, interrupt, |hit| {
        total += 1;
        collector.offer(hit.id, hit.score);
    })?;
    let best = collector.into_best(postings, query.postings_read());
    Ok((best, total))
}

/// Returns the records of a query. The query is used up.
///
/// `interrupt` is checked about every 1,000 postings.
///
/// # Errors
/// Fails if the search is interrupted.
pub fn collect<P: Postings, S: Scorer, F: Ids>(
    query: &mut Node<P, S, F>,
    interrupt: &dyn Interrupt,
) -> Result<IdSet, Interrupted> {
    let mut interrupt = PacedInterrupt::new(interrupt);
    match query {
        Node::AnyTerm(lists) => collect_any(lists.lists_mut(), &mut interrupt),
        Node::Any(lists) => collect_any(lists.lists_mut(), &mut interrupt),
        other => collect_any(std::slice::from_mut(other), &mut interrupt),
    }
}

fn collect_any<M: Matches>(
    lists: &mut [M],
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<IdSet, Interrupted> {
    let mut found = IdSet::default();
    loop {
        let least = lists.iter().map(M::id).min().unwrap_or(END);
        if least == END {
            return Ok(found);
        }
        interrupt.steps(STEPS_PER_LIST * lists.len() as u32)?;
        let number = least / WINDOW_IDS;
        let window = found.window(number);
        for list in &mut *lists {
            list.fill(number * WINDOW_IDS, window);
        }
    }
}

/// Passes on all records of a query in the order of their ids, with their scores. The query is used
/// up.
///
/// `interrupt` is checked about every 1,000 postings.
///
/// # Errors
/// Fails if the search is interrupted.
pub fn all<P: Postings, S: Scorer, F: Ids>(
    query: &mut Node<P, S, F>,
    interrupt: &dyn Interrupt,
    mut take: impl FnMut(Hit),
) -> Result<(), Interrupted> {
    let mut interrupt = PacedInterrupt::new(interrupt);
    match query {
        Node::AnyTerm(lists) => any(lists.lists_mut(), &mut interrupt, take),
        Node::Any(lists) => any(lists.lists_mut(), &mut interrupt, take),
        list => {
            let mut batch = Batch::default();
            loop {
                list.read(END, &mut batch);
                if batch.count == 0 {
                    return Ok(());
                }
                interrupt.steps(batch.count as u32)?;
                batch
                    .scored()
                    .for_each(|(id, score)| take(Hit { id, score }));
            }
        }
    }
}

fn any<M: Matches>(
    lists: &mut [M],
    interrupt: &mut PacedInterrupt<'_>,
    mut take: impl FnMut(Hit),
) -> Result<(), Interrupted> {
    let mut sums = Sums::default();
    loop {
        let first = lists.iter().map(M::id).min().unwrap_or(END);
        if first == END {
            return Ok(());
        }
        interrupt.steps(STEPS_PER_LIST * lists.len() as u32)?;
        sums.read(lists, first, END, |id, score| take(Hit { id, score }));
    }
}
