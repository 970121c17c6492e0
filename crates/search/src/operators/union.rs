//! Records that are in any of some lists, all with the same score.

use crate::bits::{WINDOW_WORDS, next_bit, set_bit};
use crate::matches::Matches;
use crate::postings::END;

/// Records that are in any of the lists, each with the same score.
///
/// The lists are read into a bitmap of a window of ids. After a seek, the window is short, because
/// another seek may follow and skip most of it. While records are read in order, it grows.
#[derive(Clone, Debug)]
pub struct Union<M> {
    /// The lists that have not ended.
    lists: Vec<M>,
    score: f64,
    id: u64,
    /// The id of the first bit.
    first: u64,
    bits: [u64; WINDOW_WORDS],
    /// The number of words of `bits` in use.
    words: usize,
    bound_of_count: u64,
    postings: u64,
    postings_read_in_ended: u64,
}

impl<M: Matches> Union<M> {
    /// Creates the list of the records that are in any of the lists.
    pub fn new(mut lists: Vec<M>, score: f64) -> Union<M> {
        let counts = lists.iter_mut().map(Matches::count_at_most);
        let bound_of_count = counts.fold(0, u64::saturating_add);
        let mut union = Union {
            postings: lists.iter_mut().map(Matches::postings).sum(),
            lists,
            score,
            id: END,
            first: 0,
            bits: [0; WINDOW_WORDS],
            words: 1,
            bound_of_count,
            postings_read_in_ended: 0,
        };
        union.read_window();
        union
    }

    /// Reads the window that begins with the first of the lists' current records.
    fn read_window(&mut self) -> u64 {
        self.first = self.lists.iter().map(M::id).min().unwrap_or(END);
        self.id = self.first;
        if self.id == END {
            return END;
        }
        self.bits = [0; WINDOW_WORDS];
        let bits = self.bits.get_mut(..self.words).unwrap_or_default();
        let mut ended = false;
        for list in &mut self.lists {
            ended |= list.fill(self.first, bits) == END;
        }
        if ended {
            self.remove_ended();
        }
        self.id
    }

    fn remove_ended(&mut self) {
        let ended = self.lists.extract_if(.., |list| list.id() == END);
        self.postings_read_in_ended += ended.map(|list| list.postings_read()).sum::<u64>();
    }
}

impl<M: Matches> Matches for Union<M> {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.id == END {
            return END;
        }
        match next_bit(&self.bits, self.id - self.first + 1) {
            Some(at) => {
                self.id = self.first + at;
                self.id
            }
            None => {
                self.words = WINDOW_WORDS.min(self.words * 2);
                self.read_window()
            }
        }
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        if self.id >= id {
            return self.id;
        }
        if let Some(at) = next_bit(&self.bits, id - self.first) {
            self.id = self.first + at;
            return self.id;
        }
        for list in &mut self.lists {
            list.seek(id);
        }
        self.words = 1;
        self.read_window()
    }

    fn score(&mut self) -> f64 {
        self.score
    }

    fn count_at_most(&mut self) -> u64 {
        self.bound_of_count
    }

    fn bound(&mut self) -> f64 {
        self.score
    }

    fn postings_read(&self) -> u64 {
        let lists = self.lists.iter().map(M::postings_read);
        self.postings_read_in_ended + lists.sum::<u64>()
    }

    fn postings(&mut self) -> u64 {
        self.postings
    }

    /// Copies the rest of the window first. The lists are already after the window, and fill the
    /// rest of the bits themselves.
    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        while self.id != END {
            if !set_bit(bits, self.id - first) {
                return self.id;
            }
            match next_bit(&self.bits, self.id - self.first + 1) {
                Some(at) => self.id = self.first + at,
                None => break,
            }
        }
        for list in &mut self.lists {
            list.fill(first, bits);
        }
        self.remove_ended();
        self.read_window()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryPosting, MemoryPostings};
    use crate::score::TextScore;
    use crate::term::Term;

    fn term(ids: impl Iterator<Item = u64>) -> Term<MemoryPostings, TextScore> {
        let posting = |id| MemoryPosting {
            id,
            frequency: 1,
            length: 1,
            ..MemoryPosting::default()
        };
        Term::new(MemoryPostings::new(ids.map(posting)), TextScore)
    }

    #[test]
    fn windows_of_all_sizes_are_filled() {
        let union = || {
            let lists = vec![
                term((0..9_000).step_by(7)),
                term((100..300).chain([70_000, 90_000])),
            ];
            Union::new(lists, 0.0)
        };
        let mut expected = Vec::new();
        let mut list = union();
        while list.id() != END {
            expected.push(list.id());
            list.next();
        }
        assert!(expected.is_sorted() && expected.len() == 1_460);
        for (words, moves) in [(1, 0), (1, 40), (3, 5), (64, 0), (64, 200)] {
            let mut list = union();
            (0..moves).for_each(|_| {
                list.next();
            });
            let mut found = expected.get(..moves).unwrap().to_vec();
            while list.id() != END {
                let first = list.id();
                let mut bits = vec![0; words];
                let next = list.fill(first, &mut bits);
                assert_eq!(next, list.id());
                let has = |at: &u64| bits[*at as usize / 64] >> (at % 64) & 1 != 0;
                found.extend((0..64 * words as u64).filter(has).map(|at| first + at));
            }
            assert_eq!(found, expected, "{words} words after {moves} moves");
        }
    }
}
