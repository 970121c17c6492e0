//! The best records of a disjunction: MaxScore in windows.
//!
//! Record ids are searched in windows. A window ends where a block of an *essential* list ends. For
//! each list there is a bound of its scores in the window:
//!
//! 1. If the sum of all bounds does not exceed the worst of the best k scores, the window is
//!    skipped.
//! 2. Otherwise some lists whose bounds together do not exceed it are optional: a record that only
//!    they have is not among the best. The others are essential. Lists with many postings for their
//!    bound are made optional first, since the postings of optional lists are not all read.
//! 3. The essential lists are read. Optional lists seek those records that may still be among the
//!    best.
//!
//! Scores are added in the order of the query, since another order changes the last bits of the
//! sum.

use windrow_interrupt::{Interrupted, PacedInterrupt};

use super::collector::Collector;
use crate::batch::Batch;
use crate::bits::{STEPS_PER_LIST, WINDOW_IDS, WINDOW_WORDS, next_bit, set_bit};
use crate::matches::Matches;
use crate::postings::END;
use crate::sums::{Sums, sum_slack};

/// With more lists than this, their bounds are not looked at: all records are scored.
const LISTS_WITH_BOUNDS_MAX: usize = 64;
/// The bounds of an optional list's blocks are read if it has at most this many times the
/// records of the rarest essential list. Otherwise the bound of the whole list is used.
const BLOCKS_READ_MAX: u64 = 8;
/// The minimum number of ids of a window for each list.
const IDS_PER_LIST: u64 = 32;
/// The number of ids of a window without an end that are read before the essential lists are chosen
/// again.
const IDS_READ_MAX: u64 = 16 * WINDOW_IDS;
/// The number of scores in the table of a window.
const TABLE_SCORES: usize = 32_768;

/// Searches the best records of the disjunction of lists. `passes_filters` is called for records that
/// would be among the best, in the order of their ids.
pub(super) fn search<M: Matches, W: FnMut(u64) -> bool>(
    lists: &mut [M],
    passes_filters: W,
    collector: &mut Collector,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<(), Interrupted> {
    let count = lists.len();
    let mut output = Output {
        passes_filters,
        collector,
        slack: sum_slack(count),
    };
    let mut sums = Sums::default();
    if count > LISTS_WITH_BOUNDS_MAX {
        loop {
            let first = lists.iter().map(M::id).min().unwrap_or(END);
            if first == END {
                return Ok(());
            }
            interrupt.steps(STEPS_PER_LIST * count as u32)?;
            sums.read(lists, first, END, |id, sum| output.offer(id, sum));
        }
    }
    let mut search = Search {
        states: lists.iter_mut().map(State::new).collect(),
        lists,
        order: (0..count).collect(),
        sums,
        row: vec![0.0; count],
        table: Table::new(count),
        batch: Box::default(),
    };
    search.run(&mut output, interrupt)
}

/// Where records go.
struct Output<'c, W> {
    passes_filters: W,
    collector: &'c mut Collector,
    /// Bounds are added in another order than scores. Their sum times this is a bound nevertheless.
    slack: f64,
}

impl<W: FnMut(u64) -> bool> Output<'_, W> {
    #[inline]
    fn is_competitive(&self, bound: f64) -> bool {
        self.collector.is_competitive(bound * self.slack)
    }

    #[inline]
    fn offer(&mut self, id: u64, score: f64) {
        if self.collector.is_competitive(score) && (self.passes_filters)(id) {
            self.collector.offer(id, score);
        }
    }
}

struct Search<'l, M> {
    lists: &'l mut [M],
    states: Vec<State>,
    /// The lists by increasing bounds in the window for each of their postings.
    order: Vec<usize>,
    sums: Sums,
    /// The scores of a record, one for each list.
    row: Vec<f64>,
    table: Table,
    batch: Box<Batch>,
}

/// A range of record ids.
#[derive(Clone, Copy, Debug)]
struct Window {
    first: u64,
    last: u64,
}

/// What is known of a list.
#[derive(Clone, Copy, Debug)]
struct State {
    count: u64,
    bound_of_list: f64,
    /// The end and the bound of the block that was looked at last.
    block_end: Option<u64>,
    block_bound: f64,
    /// The bound in the current window.
    bound: f64,
}

impl State {
    fn new<M: Matches>(list: &mut M) -> State {
        State {
            count: list.count_at_most(),
            bound_of_list: list.bound(),
            block_end: None,
            block_bound: 0.0,
            bound: 0.0,
        }
    }

    /// Returns how many postings are read if the list is essential.
    #[inline]
    fn cost(&self) -> f64 {
        self.count.max(1) as f64
    }

    /// Looks at the block with the first record from `id` on, and returns its end.
    #[inline]
    fn look<M: Matches>(&mut self, list: &mut M, id: u64) -> u64 {
        match self.block_end {
            Some(end) if id <= end => end,
            _ => {
                let end = list.block_end(id);
                self.block_bound = list.block_bound();
                self.block_end = Some(end);
                end
            }
        }
    }

    /// Returns the bound of the scores from `first` to `last`.
    #[inline]
    fn bound_between<M: Matches>(&mut self, list: &mut M, first: u64, last: u64) -> f64 {
        let first = first.max(list.id());
        if first > last || first == END {
            return 0.0;
        }
        let mut end = self.look(list, first);
        let mut bound = self.block_bound;
        while end < last {
            end = self.look(list, end + 1);
            bound = bound.max(self.block_bound);
        }
        bound
    }
}

impl<M: Matches> Search<'_, M> {
    fn run<W: FnMut(u64) -> bool>(
        &mut self,
        output: &mut Output<'_, W>,
        interrupt: &mut PacedInterrupt<'_>,
    ) -> Result<(), Interrupted> {
        let mut first = 0;
        loop {
            let next = self.lists.iter().map(M::id).min().unwrap_or(END);
            first = first.max(next);
            if self.lists.iter().all(|list| list.id() == END) {
                return Ok(());
            }
            interrupt.step()?;
            let Some(mut window) = self.bound_window(first, output) else {
                return Ok(());
            };
            let total: f64 = self.states.iter().map(|state| state.bound).sum();
            // The sum is in the order of the query, so it needs no slack.
            if output.collector.is_competitive(total) {
                // Other windows end with a block, and the looks at blocks have passed their ends.
                if window.last == END {
                    window.last = window.first.saturating_add(IDS_READ_MAX);
                }
                self.read_window(window, output, interrupt)?;
            }
            if window.last == END {
                return Ok(());
            }
            first = window.last + 1;
        }
    }

    /// Sets the bounds for the next window from `first` on. Returns `None` if no record from there
    /// on can be among the best.
    fn bound_window<W: FnMut(u64) -> bool>(
        &mut self,
        first: u64,
        output: &Output<'_, W>,
    ) -> Option<Window> {
        let states = &self.states;
        let bound = |list: &usize| states.get(*list).map_or(0.0, |one| one.bound_of_list);
        let ratio = |list| bound(&list) / states.get(list).map_or(1.0, State::cost);
        sort_few(&mut self.order, |one, other| ratio(one) < ratio(other));
        let optional = optional_count(self.order.iter().map(bound), output);
        let (optional, essential) = self.order.split_at_checked(optional)?;
        for list in essential {
            let (list, state) = pair(self.lists, &mut self.states, *list)?;
            // A list without blocks tells only by its id whether it has records left.
            if list.id() < first && state.look(list, first) == END {
                list.seek(first);
            }
        }
        // A record that only optional lists have is not among the best.
        let ids = essential.iter().filter_map(|list| self.lists.get(*list));
        let first = first.max(ids.map(M::id).min()?);
        let (mut last, mut count) = (END, u64::MAX);
        for list in essential {
            let (list, state) = pair(self.lists, &mut self.states, *list)?;
            let id = list.id();
            if id != END {
                last = last.min(state.look(list, first.max(id)));
                count = count.min(state.count);
            }
        }
        if count == u64::MAX {
            return None;
        }
        let shortest = IDS_PER_LIST * self.order.len() as u64;
        last = last.max(first.saturating_add(shortest));
        for list in essential {
            let (list, state) = pair(self.lists, &mut self.states, *list)?;
            state.bound = state.bound_between(list, first, last);
        }
        for list in optional {
            let (list, state) = pair(self.lists, &mut self.states, *list)?;
            let are_blocks_long = state.count / BLOCKS_READ_MAX <= count;
            state.bound = if are_blocks_long && last != END {
                state.bound_between(list, first, last)
            } else {
                state.bound_of_list
            };
        }
        Some(Window { first, last })
    }

    fn read_window<W: FnMut(u64) -> bool>(
        &mut self,
        window: Window,
        output: &mut Output<'_, W>,
        interrupt: &mut PacedInterrupt<'_>,
    ) -> Result<(), Interrupted> {
        let Window { first, last } = window;
        let states = &self.states;
        let bound = |list: &usize| states.get(*list).map_or(0.0, |state| state.bound);
        let ratio = |list| bound(&list) / states.get(list).map_or(1.0, State::cost);
        sort_few(&mut self.order, |one, other| ratio(one) < ratio(other));
        let optional = optional_count(self.order.iter().map(bound), output);
        let essential = self.order.get(optional..).unwrap_or_default();
        for list in essential {
            if let Some(list) = self.lists.get_mut(*list) {
                list.seek(first);
            }
        }
        match essential {
            [lead] => self.read_one(*lead, optional, last, output, interrupt),
            _ if optional == 0 => loop {
                interrupt.steps(STEPS_PER_LIST)?;
                let next = self.lists.iter().map(M::id).min().unwrap_or(END);
                if next > last || next == END {
                    return Ok(());
                }
                let offer = |id, sum| output.offer(id, sum);
                self.sums.read(self.lists, next, last, offer);
            },
            _ => self.read_some(optional, last, output, interrupt),
        }
    }

    /// Reads the window if one list is essential.
    fn read_one<W: FnMut(u64) -> bool>(
        &mut self,
        lead: usize,
        optional: usize,
        last: u64,
        output: &mut Output<'_, W>,
        interrupt: &mut PacedInterrupt<'_>,
    ) -> Result<(), Interrupted> {
        let rest = self.bound_of_optional(optional);
        let mut batch = std::mem::take(&mut self.batch);
        loop {
            match self.lists.get_mut(lead) {
                Some(list) if list.id() <= last => list.read(last, &mut batch),
                _ => break,
            }
            if batch.count == 0 {
                break;
            }
            interrupt.steps(batch.count as u32)?;
            for (id, score) in batch.scored() {
                if output.is_competitive(score + rest) {
                    self.row.fill(0.0);
                    if let Some(slot) = self.row.get_mut(lead) {
                        *slot = score;
                    }
                    self.complete(id, score, optional, output);
                }
            }
        }
        self.batch = batch;
        Ok(())
    }

    /// Returns the sum of the bounds of the optional lists.
    fn bound_of_optional(&self, optional: usize) -> f64 {
        let lists = self.order.iter().take(optional);
        let states = lists.filter_map(|list| self.states.get(*list));
        states.map(|state| state.bound).sum()
    }

    /// Adds the scores of the optional lists to the row of a record, and offers the record. `sum`
    /// is the sum of the row.
    fn complete<W: FnMut(u64) -> bool>(
        &mut self,
        id: u64,
        mut sum: f64,
        optional: usize,
        output: &mut Output<'_, W>,
    ) {
        let mut rest = self.bound_of_optional(optional);
        for number in self.order.iter().take(optional).rev() {
            if !output.is_competitive(sum + rest) {
                return;
            }
            let Some((list, state)) = pair(self.lists, &mut self.states, *number) else {
                return;
            };
            rest = (rest - state.bound).max(0.0);
            if list.probe(id) == id
                && let Some(slot) = self.row.get_mut(*number)
            {
                *slot = list.score();
                sum += *slot;
            }
        }
        output.offer(id, self.row.iter().sum());
    }

    /// Reads the window if several lists, but not all, are essential.
    fn read_some<W: FnMut(u64) -> bool>(
        &mut self,
        optional: usize,
        last: u64,
        output: &mut Output<'_, W>,
        interrupt: &mut PacedInterrupt<'_>,
    ) -> Result<(), Interrupted> {
        let rest = self.bound_of_optional(optional);
        loop {
            interrupt.steps(STEPS_PER_LIST)?;
            let essential = self.order.get(optional..).unwrap_or_default();
            let ids = essential.iter().filter_map(|list| self.lists.get(*list));
            let first = ids.map(M::id).min().unwrap_or(END);
            if first > last || first == END {
                return Ok(());
            }
            self.table.read(self.lists, essential, first, last);
            let mut from = 0;
            while let Some(at) = next_bit(&self.table.bits, from) {
                from = at + 1;
                let mut sum = 0.0;
                for (slot, score) in self.row.iter_mut().zip(self.table.row_mut(at)) {
                    *slot = *score;
                    sum += *score;
                    *score = 0.0;
                }
                if output.is_competitive(sum + rest) {
                    self.complete(first + at, sum, optional, output);
                }
            }
        }
    }
}

/// Returns how many of the first bounds together do not exceed the worst of the best scores.
fn optional_count<W: FnMut(u64) -> bool>(
    bounds: impl Iterator<Item = f64>,
    output: &Output<'_, W>,
) -> usize {
    let sums = bounds.scan(0.0, |sum, bound| {
        *sum += bound;
        Some(*sum)
    });
    sums.take_while(|sum| !output.is_competitive(*sum)).count()
}

/// Returns a list with its state.
#[inline]
fn pair<'a, M>(
    lists: &'a mut [M],
    states: &'a mut [State],
    number: usize,
) -> Option<(&'a mut M, &'a mut State)> {
    Some((lists.get_mut(number)?, states.get_mut(number)?))
}

/// Sorts a few numbers that are nearly in order already, by insertion.
#[inline]
fn sort_few(numbers: &mut [usize], is_less: impl Fn(usize, usize) -> bool) {
    for end in 1..numbers.len() {
        let mut at = end;
        while let Some([one, other]) = at
            .checked_sub(1)
            .and_then(|from| numbers.get_mut(from..=at))
            && is_less(*other, *one)
        {
            std::mem::swap(one, other);
            at -= 1;
        }
    }
}

/// The scores of the records in a window of ids: a row for each record, with a score for each list.
#[derive(Debug)]
struct Table {
    bits: [u64; WINDOW_WORDS],
    scores: Vec<f64>,
    lists: usize,
    batch: Batch,
}

impl Table {
    fn new(lists: usize) -> Table {
        Table {
            bits: [0; WINDOW_WORDS],
            scores: Vec::new(),
            lists,
            batch: Batch::default(),
        }
    }

    /// Reads the postings of the essential lists from `first` up to `last`, but not more than fit.
    fn read<M: Matches>(&mut self, lists: &mut [M], essential: &[usize], first: u64, last: u64) {
        self.scores.resize(TABLE_SCORES, 0.0);
        self.bits = [0; WINDOW_WORDS];
        let ids = WINDOW_IDS.min((TABLE_SCORES / self.lists.max(1)) as u64);
        let last = last.min(first.saturating_add(ids - 1));
        for number in essential {
            let Some(list) = lists.get_mut(*number) else {
                continue;
            };
            while list.id() <= last {
                list.read(last, &mut self.batch);
                if self.batch.count == 0 {
                    break;
                }
                for (id, score) in self.batch.scored() {
                    let at = id - first;
                    if let Some(slot) = self.scores.get_mut(at as usize * self.lists + number) {
                        *slot = score;
                        set_bit(&mut self.bits, at);
                    }
                }
            }
        }
    }

    fn row_mut(&mut self, at: u64) -> &mut [f64] {
        let start = at as usize * self.lists;
        let row = self.scores.get_mut(start..start + self.lists);
        row.unwrap_or_default()
    }
}
