//! The keys that a document has at one path, as they are collected.

use std::ops::Range;

use windrow_postings::Posting;
use windrow_postings::payload::put_position;
use windrow_text::{SearchTokenizer, TermTable, TextWords};

use super::keys::{EXISTS, TERM, TERM_BYTES_MAX};
use super::mapping::IndexOptions;

/// The number of positions between the strings of one field: phrases do not match across them.
pub const VALUE_GAP: u32 = 100;

/// What a document has at one path. The buffers are reused, so that a token needs no memory of its
/// own.
#[derive(Default)]
pub(super) struct PathEntries {
    terms: TermTable,
    /// By the numbers of the terms.
    counts: Vec<TermCount>,
    /// The tokens with positions: the number of the term, and the position.
    occurrences: Vec<(u32, u32)>,
    /// The positions, grouped by term.
    positions: Vec<u32>,
    plain: PlainKeys,
    /// The number of tokens.
    length: u32,
    /// The first position of the next string.
    next_position: u32,
}

/// How often a term occurs.
#[derive(Clone, Copy, Default)]
struct TermCount {
    /// As often as the mapping counts it.
    frequency: u32,
    /// The number of its positions.
    positions: u32,
    /// Where its next position goes while positions are grouped.
    next_place: u32,
}

impl TermCount {
    /// Counts further occurrences, as the mapping counts them.
    fn add(&mut self, occurrences: u32, options: IndexOptions) {
        if options != IndexOptions::Docs {
            self.frequency = self.frequency.saturating_add(occurrences);
        }
        if options == IndexOptions::Positions {
            self.positions += occurrences;
        }
    }
}

/// Counts occurrences of the term with a number, which is at most the number of counts.
fn count_term(counts: &mut Vec<TermCount>, number: u32, occurrences: u32, options: IndexOptions) {
    if number as usize == counts.len() {
        counts.push(TermCount::default());
    }
    if let Some(count) = counts.get_mut(number as usize) {
        count.add(occurrences, options);
    }
}

/// The tokens of the distinct words of a string. A buffer.
#[derive(Default)]
pub(super) struct WordAnalyses {
    /// The numbers of the terms, and their positions in the word.
    tokens: Vec<(u32, u32)>,
    /// By the numbers of the words.
    words: Vec<WordAnalysis>,
}

struct WordAnalysis {
    tokens: Range<usize>,
    /// The number of positions that the word takes.
    positions: u32,
}

impl WordAnalyses {
    fn clear(&mut self) {
        self.tokens.clear();
        self.words.clear();
    }
}

/// Keys that count once and have no position.
#[derive(Default)]
struct PlainKeys {
    bytes: Vec<u8>,
    keys: Vec<Range<usize>>,
}

impl PlainKeys {
    fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
    }

    fn add(&mut self, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.keys.push(start..self.bytes.len());
    }

    /// Visits each key once.
    fn each(&mut self, visit: &mut dyn FnMut(&[u8])) {
        let PlainKeys { bytes, keys } = self;
        let key_of = |key: &Range<usize>| bytes.get(key.clone()).unwrap_or_default();
        keys.sort_unstable_by(|one, other| key_of(one).cmp(key_of(other)));
        keys.dedup_by(|one, other| key_of(one) == key_of(other));
        keys.iter().map(key_of).for_each(visit);
    }
}

impl PathEntries {
    /// Forgets what was collected, and keeps the memory.
    pub fn clear(&mut self) {
        self.terms.clear();
        self.counts.clear();
        self.occurrences.clear();
        self.plain.clear();
        self.length = 0;
        self.next_position = 0;
    }

    /// Adds that the document has the path.
    pub fn add_existence(&mut self) {
        if self.plain.keys.is_empty() {
            self.add_plain(&[EXISTS]);
        }
    }

    /// Adds a key that counts once and has no position.
    pub fn add_plain(&mut self, key: &[u8]) {
        self.plain.add(key);
    }

    /// Adds the tokens of a string, which has these words.
    pub fn add_words(
        &mut self,
        words: &TextWords,
        tokenizer: &mut SearchTokenizer,
        options: IndexOptions,
        analyses: &mut WordAnalyses,
    ) {
        analyses.clear();
        for word in words.distinct() {
            let WordAnalyses { tokens, words } = analyses;
            let start = tokens.len();
            let positions = tokenizer.word_tokens(word.text, word.case, &mut |token| {
                let term = self.terms.number(token.term);
                count_term(&mut self.counts, term, word.count, options);
                tokens.push((term, token.position));
            });
            let count = (tokens.len() - start) as u32;
            self.length = self.length.saturating_add(count.saturating_mul(word.count));
            words.push(WordAnalysis {
                tokens: start..tokens.len(),
                positions,
            });
        }
        if options == IndexOptions::Positions {
            self.add_occurrences(words.numbers(), analyses);
        }
    }

    /// Adds the positions of the tokens of words, whose numbers are in the order of the text.
    fn add_occurrences(&mut self, numbers: &[u32], analyses: &WordAnalyses) {
        let mut position = self.next_position;
        let mut last = None;
        for number in numbers {
            let Some(word) = analyses.words.get(*number as usize) else {
                continue;
            };
            for (term, offset) in analyses.tokens.get(word.tokens.clone()).unwrap_or_default() {
                let position = position.saturating_add(*offset);
                self.occurrences.push((*term, position));
                last = Some(position);
            }
            position = position.saturating_add(word.positions);
        }
        if let Some(last) = last {
            self.next_position = last.saturating_add(VALUE_GAP);
        }
    }

    /// Adds the tokens of a string.
    pub fn add_tokens(
        &mut self,
        text: &str,
        tokenizer: &mut SearchTokenizer,
        options: IndexOptions,
    ) {
        let first = self.next_position;
        tokenizer.tokens(text, &mut |token| {
            let position = first.saturating_add(token.position);
            // Custom analyzers may make longer terms than an index can have.
            if token.term.len() <= TERM_BYTES_MAX {
                self.add_token(token.term, position, options);
            }
            self.next_position = position.saturating_add(VALUE_GAP);
        });
    }

    /// Adds a gram. Grams have no positions.
    pub fn add_gram(&mut self, gram: &str) {
        self.add_token(gram, 0, IndexOptions::Freqs);
    }

    /// Adds a token.
    fn add_token(&mut self, term: &str, position: u32, options: IndexOptions) {
        let number = self.terms.number(term);
        count_term(&mut self.counts, number, 1, options);
        if options == IndexOptions::Positions {
            self.occurrences.push((number, position));
        }
        self.length = self.length.saturating_add(1);
    }

    /// Visits each key once with its posting, in an order that depends on the document alone. `key`
    /// begins with the path; the rest of the key is appended to it.
    pub fn each(&mut self, key: &mut Vec<u8>, visit: &mut dyn FnMut(&[u8], &Posting<'_>)) {
        let path_length = key.len();
        let length = self.length.max(1);
        self.plain.each(&mut |plain| {
            key.truncate(path_length);
            key.extend_from_slice(plain);
            let posting = Posting {
                frequency: 1,
                length,
                score: None,
                positions: &[],
            };
            visit(key, &posting);
        });
        self.group_positions();
        key.truncate(path_length);
        key.push(TERM);
        let prefix_length = key.len();
        let mut steps = Vec::new();
        let mut left = self.positions.as_mut_slice();
        for (term, count) in self.terms.iter().zip(&self.counts) {
            let (positions, behind) = left.split_at_mut(count.positions as usize);
            left = behind;
            // A piece of a word can be at a position behind that of the next word.
            if !positions.is_sorted() {
                positions.sort_unstable();
            }
            steps.clear();
            let mut last = None;
            for position in positions.iter() {
                put_position(&mut steps, last, *position);
                last = Some(*position);
            }
            key.truncate(prefix_length);
            key.extend_from_slice(term.as_bytes());
            let posting = Posting {
                frequency: count.frequency.clamp(1, u32::MAX >> 1),
                length,
                score: None,
                positions: &steps,
            };
            visit(key, &posting);
        }
        key.truncate(path_length);
    }

    /// Groups the positions by term, in the order of the terms. Those of a term are in the order of
    /// the text.
    fn group_positions(&mut self) {
        let mut start = 0;
        for count in &mut self.counts {
            count.next_place = start;
            start += count.positions;
        }
        self.positions.clear();
        self.positions.resize(self.occurrences.len(), 0);
        for (number, position) in &self.occurrences {
            let Some(count) = self.counts.get_mut(*number as usize) else {
                continue;
            };
            if let Some(slot) = self.positions.get_mut(count.next_place as usize) {
                *slot = *position;
            }
            count.next_place += 1;
        }
    }
}
