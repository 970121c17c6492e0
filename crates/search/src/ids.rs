//! Record ids without scores: filters from other indexes, ranges, sets.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::bits::{WINDOW_IDS, WINDOW_WORDS, next_bit, set_bit};
use crate::postings::END;

/// Record ids in increasing order.
///
/// Implement it for the records that another index finds. A list is a cursor: a new list is on its
/// first id.
pub trait Ids {
    /// Returns the current id, or [`END`].
    fn id(&self) -> u64;

    /// Moves to the next id and returns it, or [`END`].
    fn next(&mut self) -> u64;

    /// Moves to the first id that is `id` or greater, and returns it, or [`END`]. Does not move
    /// backwards.
    fn seek(&mut self, id: u64) -> u64;

    /// Returns an upper estimate of the number of ids in the list.
    fn count_at_most(&self) -> u64;

    /// Returns the number of ids in the list, if it is known without reading them.
    fn count(&self) -> Option<u64> {
        None
    }

    /// Sets the bit `id - first` for each id below `first + 64 * bits.len()`, and moves to the
    /// first one that is not below. Returns it, or [`END`]. The list must be at `first` or later.
    #[inline]
    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        let mut id = self.id();
        while id != END && set_bit(bits, id.wrapping_sub(first)) {
            id = self.next();
        }
        id
    }
}

/// All ids of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdRange {
    id: u64,
    end: u64,
}

impl IdRange {
    /// Creates the list of the ids in the range.
    pub fn new(range: Range<u64>) -> IdRange {
        IdRange {
            id: range.start,
            end: range.end,
        }
    }
}

impl Ids for IdRange {
    #[inline]
    fn id(&self) -> u64 {
        if self.id < self.end { self.id } else { END }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.id = self.id.saturating_add(1);
        self.id()
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        self.id = self.id.max(id);
        self.id()
    }

    fn count_at_most(&self) -> u64 {
        self.end.saturating_sub(self.id)
    }

    fn count(&self) -> Option<u64> {
        Some(self.count_at_most())
    }
}

/// A set of ids in memory, as bitmaps of windows of 4,096 ids. Windows without ids take no bitmap.
#[derive(Clone, Debug, Default)]
pub struct IdSet {
    /// The windows with numbers below [`NEAR_WINDOWS`], by number.
    near: Vec<Option<Box<Window>>>,
    /// The windows with greater numbers.
    far: BTreeMap<u64, Box<Window>>,
}

type Window = [u64; WINDOW_WORDS];

/// Windows with smaller numbers are in an array. They have the first 4 billion ids.
const NEAR_WINDOWS: u64 = 1 << 20;

impl IdSet {
    /// Returns the window with this number: the bits of the ids from `number * 4096` on.
    #[inline]
    pub(crate) fn window(&mut self, number: u64) -> &mut Window {
        let empty = || Box::new([0; WINDOW_WORDS]);
        if number >= NEAR_WINDOWS {
            return self.far.entry(number).or_insert_with(empty);
        }
        let at = number as usize;
        if at >= self.near.len() {
            self.near.resize(at + 1, None);
        }
        match self.near.get_mut(at) {
            Some(window) => window.get_or_insert_with(empty),
            None => self.far.entry(number).or_insert_with(empty),
        }
    }

    #[inline]
    fn window_of(&self, id: u64) -> Option<&Window> {
        let number = id / WINDOW_IDS;
        if number < NEAR_WINDOWS {
            self.near.get(number as usize)?.as_deref()
        } else {
            self.far.get(&number).map(|window| &**window)
        }
    }

    /// Adds an id. Returns `true` if the set did not have it.
    #[inline]
    pub fn insert(&mut self, id: u64) -> bool {
        let window = self.window(id / WINDOW_IDS);
        let (word, bit) = word_of(id);
        window.get_mut(word).is_some_and(|word| {
            let is_new = *word & bit == 0;
            *word |= bit;
            is_new
        })
    }

    /// Removes an id.
    #[inline]
    pub fn remove(&mut self, id: u64) {
        let (word, bit) = word_of(id);
        if self.contains(id)
            && let Some(word) = self.window(id / WINDOW_IDS).get_mut(word)
        {
            *word &= !bit;
        }
    }

    /// Returns `true` if the set has the id.
    #[inline]
    pub fn contains(&self, id: u64) -> bool {
        let (word, bit) = word_of(id);
        let word = self.window_of(id).and_then(|window| window.get(word));
        word.is_some_and(|word| word & bit != 0)
    }

    /// Returns the number of ids in the set.
    pub fn len(&self) -> u64 {
        let windows = self.near.iter().flatten().chain(self.far.values());
        let words = windows.flat_map(|window| window.iter());
        words.map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns `true` if the set has no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds all ids of another set.
    pub fn extend_from(&mut self, other: &IdSet) {
        let near = other.near.iter().zip(0..);
        let near = near.filter_map(|(window, number)| Some((number, window.as_ref()?)));
        let far = other.far.iter().map(|(number, window)| (*number, window));
        for (number, words) in near.chain(far) {
            let own = self.window(number).iter_mut();
            own.zip(words.iter()).for_each(|(own, word)| *own |= word);
        }
    }

    /// Returns the ids of the set.
    pub fn into_ids(self) -> SetIds {
        let count = self.len();
        let near = self.near.into_iter().zip(0..);
        let near = near.filter_map(|(window, number)| Some((number, window?)));
        let mut ids = SetIds {
            count,
            windows: near.chain(self.far).collect(),
            at: 0,
            id: END,
        };
        ids.id = ids.find(0);
        ids
    }
}

/// Returns the bit of an id in its window, as the index of a word and a mask.
#[inline]
fn word_of(id: u64) -> (usize, u64) {
    ((id % WINDOW_IDS / 64) as usize, 1 << (id % 64))
}

impl FromIterator<u64> for IdSet {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> IdSet {
        let mut set = IdSet::default();
        for id in ids {
            set.insert(id);
        }
        set
    }
}

/// The ids of an [`IdSet`].
#[derive(Clone, Debug)]
pub struct SetIds {
    count: u64,
    windows: Vec<(u64, Box<Window>)>,
    /// The index of the window of `id`.
    at: usize,
    id: u64,
}

impl SetIds {
    /// Moves to the first id that is `id` or greater.
    fn find(&mut self, id: u64) -> u64 {
        let number = id / WINDOW_IDS;
        let rest = self.windows.get(self.at..).unwrap_or_default();
        if rest.first().is_some_and(|(first, _)| *first < number) {
            self.at += rest.partition_point(|(first, _)| *first < number);
        }
        while let Some((number, window)) = self.windows.get(self.at) {
            let first = number * WINDOW_IDS;
            if let Some(at) = next_bit(window.as_slice(), id.saturating_sub(first)) {
                return first + at;
            }
            self.at += 1;
        }
        END
    }
}

impl Ids for SetIds {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.seek(self.id.saturating_add(1))
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        if id > self.id {
            self.id = self.find(id);
        }
        self.id
    }

    fn count_at_most(&self) -> u64 {
        self.count
    }

    fn count(&self) -> Option<u64> {
        Some(self.count)
    }

    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        let (number, end) = (
            first / WINDOW_IDS,
            first.saturating_add(64 * bits.len() as u64),
        );
        let window = self.windows.get(self.at).filter(|(at, _)| *at == number);
        if let Some((_, window)) = window
            && first.is_multiple_of(WINDOW_IDS)
            && bits.len() == window.len()
        {
            // Ids before the current one are below `first` or were read.
            let own = bits.iter_mut().zip(window.iter());
            let from = self.id.saturating_sub(first);
            for (at, (bits, word)) in (0..).zip(own) {
                let start = 64 * at;
                let passed = from.saturating_sub(start).min(64) as u32;
                *bits |= word & u64::MAX.checked_shl(passed).unwrap_or(0);
            }
            return self.seek(end);
        }
        let mut id = self.id;
        while id != END && set_bit(bits, id.wrapping_sub(first)) {
            id = self.next();
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut list: impl Ids) -> Vec<u64> {
        let mut ids = Vec::new();
        while list.id() != END {
            ids.push(list.id());
            list.next();
        }
        assert_eq!(list.next(), END);
        assert_eq!(list.seek(0), END);
        ids
    }

    #[test]
    fn windows_of_sets_are_filled() {
        let ids: Vec<u64> = (0..20_000)
            .filter(|id| id % 7 == 3 || id % 640 < 70)
            .collect();
        let set: IdSet = ids.iter().copied().collect();
        assert_eq!(set.len(), ids.len() as u64);
        for start in [0, 3, 64, 4_095, 4_096, 9_000, 12_288] {
            let mut list = set.clone().into_ids();
            let mut found = Vec::new();
            list.seek(start);
            while list.id() != END {
                let first = list.id() / WINDOW_IDS * WINDOW_IDS;
                let mut bits = [0; WINDOW_WORDS];
                list.fill(first, &mut bits);
                let has = |id: &u64| bits[*id as usize / 64] >> (id % 64) & 1 != 0;
                found.extend((0..WINDOW_IDS).filter(has).map(|id| first + id));
            }
            let expected = ids.iter().copied().filter(|id| *id >= start);
            assert_eq!(found, expected.collect::<Vec<_>>(), "from {start}");
        }
    }

    #[test]
    fn sets_change() {
        let mut set = IdSet::default();
        assert!(set.insert(5) && set.insert(END - 1) && !set.insert(5));
        assert!(set.contains(END - 1) && !set.contains(6) && !set.contains(1 << 40));
        set.remove(5);
        set.remove(1 << 50);
        assert!(!set.contains(5));
        set.extend_from(&[1, END - 1, 70_000].into_iter().collect());
        assert_eq!(read(set.into_ids()), [1, 70_000, END - 1]);
    }

    #[test]
    fn ranges_and_sets_are_read_in_order() {
        assert_eq!(read(IdRange::new(3..6)), [3, 4, 5]);
        assert_eq!(read(IdRange::new(6..6)), []);
        let ids = [7, 63, 64, 4_095, 4_096, 1 << 40, END - 1];
        assert_eq!(read(ids.into_iter().collect::<IdSet>().into_ids()), ids);
        assert_eq!(read(IdSet::default().into_ids()), []);
    }

    #[test]
    fn seeks_find_the_next_id() {
        let ids: Vec<u64> = (0..3_000).map(|number| number * number).collect();
        let list = ids.iter().copied().collect::<IdSet>().into_ids();
        assert_eq!(list.count(), Some(3_000));
        for target in [0, 1, 5, 4_096, 900_000, 8_994_001, 8_994_002] {
            let expected = ids.iter().find(|id| **id >= target).copied();
            assert_eq!(list.clone().seek(target), expected.unwrap_or(END));
        }
        let mut list = IdRange::new(10..20);
        assert_eq!((list.seek(15), list.seek(3), list.next()), (15, 15, 16));
        assert_eq!(list.seek(20), END);
    }
}
