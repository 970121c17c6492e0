//! The keys that a document has at one path, as they are collected.

use std::ops::Range;

use windrow_postings::Posting;
use windrow_postings::payload::put_positions;
use windrow_text::{Language, SearchTokenizer, TermPlaces, TermTable, TextWords};

use super::key_numbers::KeyNumbers;
use super::keys::{EXISTS, TERM, TERM_BYTES_MAX};
use super::mapping::IndexOptions;
use crate::sink::EntrySink;

/// The number of positions between the strings of one field: phrases do not match across them.
pub const VALUE_GAP: u32 = 100;

/// What a document has at one path. Buffers are reused, and terms keep their numbers, so that a word
/// that documents had before is not analyzed again.
#[derive(Default)]
pub(super) struct PathEntries {
    terms: TermTable,
    /// The numbers of keys, by the numbers of the terms.
    keys: Vec<u32>,
    analyses: Vec<WordAnalyses>,
    /// The places of the terms in the counts.
    places: TermPlaces,
    /// The terms of the document in the order of their first occurrences.
    counts: Vec<TermCount>,
    /// The tokens with positions: the index of the count, and the position.
    occurrences: Vec<(u32, u32)>,
    /// The positions, grouped by term.
    positions: Vec<u32>,
    plain: PlainKeys,
    /// The number of tokens.
    length: u32,
    /// The first position of the next string.
    next_position: u32,
    /// The words of the strings at this path.
    pub(super) words: TextWords,
    payload: Vec<u8>,
    steps: Vec<u8>,
}

/// How often a term occurs in the document.
#[derive(Clone, Copy)]
struct TermCount {
    /// The number of the term.
    term: u32,
    /// As often as the mapping counts it.
    frequency: u32,
    /// The number of its positions.
    positions: u32,
    /// Where its next position goes while positions are grouped.
    next_place: u32,
}

impl TermCount {
    /// Counts an occurrence, as the mapping counts it.
    fn add(&mut self, options: IndexOptions) {
        if options != IndexOptions::Docs {
            self.frequency = self.frequency.saturating_add(1);
        }
        if options == IndexOptions::Positions {
            self.positions += 1;
        }
    }
}

/// The rules by which words are analyzed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct AnalysisRules {
    /// The number of the analyzer.
    pub analyzer: usize,
    /// The language of the document, if it matters.
    pub language: Option<Language>,
}

/// The tokens of words by the same rules.
struct WordAnalyses {
    rules: AnalysisRules,
    /// By the numbers of the words.
    words: Vec<PackedAnalysis>,
    several: Vec<SeveralTokens>,
    /// The tokens of words that have several: the numbers of the terms, and the positions in the
    /// word.
    tokens: Vec<(u32, u32)>,
}

/// The number of a term below [`SEVERAL`], for a word that is this one token; from there, an index
/// in the list of words with several tokens; or [`UNKNOWN`].
type PackedAnalysis = u32;

const SEVERAL: PackedAnalysis = 1 << 31;
const UNKNOWN: PackedAnalysis = u32::MAX;

/// A word that is not a single token.
#[derive(Clone, Copy, Debug)]
struct SeveralTokens {
    first: u32,
    count: u32,
    /// The number of positions that the word takes.
    positions: u32,
}

impl WordAnalyses {
    /// Returns the analysis of the word with a number.
    #[inline]
    fn of(&self, word: u32) -> PackedAnalysis {
        let known = self.words.get(word as usize);
        known.copied().unwrap_or(UNKNOWN)
    }

    /// Returns the word with several tokens, by its analysis.
    fn several(&self, analysis: PackedAnalysis) -> SeveralTokens {
        let several = self.several.get((analysis - SEVERAL) as usize);
        *several.unwrap_or_else(|| unreachable!("{analysis} is not the analysis of a word"))
    }

    fn tokens(&self, several: SeveralTokens) -> &[(u32, u32)] {
        let first = several.first as usize;
        let tokens = self.tokens.get(first..first + several.count as usize);
        tokens.unwrap_or_else(|| unreachable!("{several:?} of {} tokens", self.tokens.len()))
    }

    /// Remembers the tokens of a word, which are the last ones from the index `first`, and returns
    /// its analysis.
    fn remember(&mut self, word: u32, first: usize, positions: u32) -> PackedAnalysis {
        let analysis = match self.tokens.get(first..) {
            Some([(term, 0)]) if positions == 1 && *term < SEVERAL => {
                let term = *term;
                self.tokens.truncate(first);
                term
            }
            _ => {
                self.several.push(SeveralTokens {
                    first: first as u32,
                    count: (self.tokens.len() - first) as u32,
                    positions,
                });
                SEVERAL + (self.several.len() - 1) as u32
            }
        };
        let word = word as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, UNKNOWN);
        }
        if let Some(known) = self.words.get_mut(word) {
            *known = analysis;
        }
        analysis
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
    /// Removes what was collected of a document. Buffers stay allocated, and terms and words keep
    /// their numbers.
    pub fn clear(&mut self) {
        self.places.begin_document();
        self.counts.clear();
        self.occurrences.clear();
        self.plain.clear();
        self.length = 0;
        self.next_position = 0;
    }

    /// Returns the number of words and terms that have numbers.
    pub fn known(&self) -> usize {
        self.terms.len() + self.words.known()
    }

    /// Returns the total length of the words and terms that have numbers, in bytes.
    pub fn known_bytes(&self) -> usize {
        self.terms.text_bytes() + self.words.known_bytes()
    }

    /// Forgets all words and terms. There must be nothing of a document.
    pub fn forget(&mut self) {
        self.terms.clear();
        self.keys.clear();
        self.places.forget();
        self.analyses.clear();
        self.words.forget();
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
        rules: AnalysisRules,
        options: IndexOptions,
        keys: &mut KeyNumbers,
    ) {
        let mut analyses = self.take_analyses(rules);
        let mut position = self.next_position;
        let mut last = None;
        for word in words.numbers() {
            let mut analysis = analyses.of(*word);
            if analysis == UNKNOWN {
                analysis = self.analyze(*word, words, tokenizer, &mut analyses, keys);
            }
            if analysis < SEVERAL {
                self.add_term(analysis, position, options);
                last = Some(position);
                position = position.saturating_add(1);
                continue;
            }
            let several = analyses.several(analysis);
            for (term, offset) in analyses.tokens(several) {
                let position = position.saturating_add(*offset);
                self.add_term(*term, position, options);
                last = Some(position);
            }
            position = position.saturating_add(several.positions);
        }
        self.analyses.push(analyses);
        if let Some(last) = last
            && options == IndexOptions::Positions
        {
            self.next_position = last.saturating_add(VALUE_GAP);
        }
    }

    /// Takes the analyses by these rules, or new ones, out of the list.
    fn take_analyses(&mut self, rules: AnalysisRules) -> WordAnalyses {
        let known = self.analyses.iter().position(|it| it.rules == rules);
        match known {
            Some(index) => self.analyses.swap_remove(index),
            None => WordAnalyses {
                rules,
                words: Vec::new(),
                several: Vec::new(),
                tokens: Vec::new(),
            },
        }
    }

    /// Analyzes the word with a number.
    #[cold]
    fn analyze(
        &mut self,
        word: u32,
        words: &TextWords,
        tokenizer: &mut SearchTokenizer,
        analyses: &mut WordAnalyses,
        keys: &mut KeyNumbers,
    ) -> PackedAnalysis {
        let first = analyses.tokens.len();
        let written = words.word(word);
        let positions = tokenizer.word_tokens(written.text, written.case, &mut |token| {
            let term = self.number(token.term, keys);
            analyses.tokens.push((term, token.position));
        });
        analyses.remember(word, first, positions)
    }

    /// Returns the number of a term.
    fn number(&mut self, term: &str, keys: &mut KeyNumbers) -> u32 {
        let number = self.terms.number(term);
        if number as usize == self.keys.len() {
            self.keys.push(keys.next());
        }
        number
    }

    /// Adds an occurrence of the term with a number.
    #[inline]
    fn add_term(&mut self, number: u32, position: u32, options: IndexOptions) {
        let place = self.places.place(number, self.counts.len());
        if place as usize == self.counts.len() {
            self.counts.push(TermCount {
                term: number,
                frequency: 0,
                positions: 0,
                next_place: 0,
            });
        }
        if let Some(count) = self.counts.get_mut(place as usize) {
            count.add(options);
        }
        if options == IndexOptions::Positions {
            self.occurrences.push((place, position));
        }
        self.length = self.length.saturating_add(1);
    }

    /// Adds the tokens of a string.
    pub fn add_tokens(
        &mut self,
        text: &str,
        tokenizer: &mut SearchTokenizer,
        options: IndexOptions,
        keys: &mut KeyNumbers,
    ) {
        let first = self.next_position;
        tokenizer.tokens(text, &mut |token| {
            let position = first.saturating_add(token.position);
            // Custom analyzers may make longer terms than an index can have.
            if token.term.len() <= TERM_BYTES_MAX {
                let number = self.number(token.term, keys);
                self.add_term(number, position, options);
            }
            self.next_position = position.saturating_add(VALUE_GAP);
        });
    }

    /// Adds a gram. Grams have no positions.
    pub fn add_gram(&mut self, gram: &str, keys: &mut KeyNumbers) {
        let number = self.number(gram, keys);
        self.add_term(number, 0, IndexOptions::Freqs);
    }

    /// Emits each key once with its posting, in an order that depends on the document alone. `key`
    /// begins with the path; the rest of the key is appended to it.
    pub fn emit(&mut self, key: &mut Vec<u8>, keys: &KeyNumbers, sink: &mut dyn EntrySink) {
        let path_length = key.len();
        let length = self.length.max(1);
        let payload = &mut self.payload;
        payload.clear();
        let plain = Posting {
            frequency: 1,
            length,
            score: None,
            positions: &[],
        };
        plain.write(payload);
        self.plain.each(&mut |plain| {
            key.truncate(path_length);
            key.extend_from_slice(plain);
            sink.entry(key, payload);
        });
        self.group_positions();
        let payload = &mut self.payload;
        key.truncate(path_length);
        key.push(TERM);
        let prefix_length = key.len();
        let mut left = self.positions.as_mut_slice();
        for count in &self.counts {
            let (positions, behind) = left.split_at_mut(count.positions as usize);
            left = behind;
            // A piece of a word can be at a position behind that of the next word.
            if !positions.is_sorted() {
                positions.sort_unstable();
            }
            self.steps.clear();
            put_positions(&mut self.steps, positions);
            let posting = Posting {
                frequency: count.frequency.clamp(1, u32::MAX >> 1),
                length,
                score: None,
                positions: &self.steps,
            };
            payload.clear();
            posting.write(payload);
            let number = self.keys.get(count.term as usize);
            let number = number.and_then(|number| keys.of(*number));
            if number.is_some_and(|number| sink.known_entry(number, payload)) {
                continue;
            }
            key.truncate(prefix_length);
            key.extend_from_slice(self.terms.term(count.term).as_bytes());
            match number {
                Some(number) => sink.numbered_entry(number, key, payload),
                None => sink.entry(key, payload),
            }
        }
        key.truncate(path_length);
    }

    /// Groups the positions by term, in the order of the counts. Those of a term are in the order
    /// of the text.
    fn group_positions(&mut self) {
        let mut start = 0;
        for count in &mut self.counts {
            count.next_place = start;
            start += count.positions;
        }
        self.positions.clear();
        self.positions.resize(self.occurrences.len(), 0);
        for (index, position) in &self.occurrences {
            let Some(count) = self.counts.get_mut(*index as usize) else {
                continue;
            };
            if let Some(slot) = self.positions.get_mut(count.next_place as usize) {
                *slot = *position;
            }
            count.next_place += 1;
        }
    }
}
