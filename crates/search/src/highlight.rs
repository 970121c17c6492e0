//! Highlights: finds the terms of a query in a text, and the passages with the best scores for
//! them.
//!
//! - [`Highlighter`]: the tokens of a text that a query has
//! - [`passages`]: the sentences that score best for them
//!
//! ```
//! use windrow_search::{Highlighter, Query, Token, passages};
//!
//! let text = "Tea is old. Coffee is hot.";
//! let words = [("tea", 0..3), ("old", 7..10), ("coffee", 12..18), ("hot", 22..25)];
//! let tokens: Vec<Token> = (0..)
//!     .zip(words)
//!     .map(|(position, (term, bytes))| Token { term: term.as_bytes(), bytes, position })
//!     .collect();
//! let highlighter = Highlighter::new(&Query::term("body", "coffee"), |field| field == "body")?;
//! let hits = highlighter.hits(&tokens);
//! let found = passages(text, &tokens, &hits, 1);
//! assert_eq!(&text[found[0].bytes.clone()], "Coffee is hot.");
//! assert_eq!(found[0].hits, [12..18]);
//! # Ok::<(), windrow_search::automaton::PatternError>(())
//! ```

mod passage;

pub use passage::{PASSAGE_BYTES_MAX, Passage, passages};

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::{Bound, Range, RangeBounds};

use crate::automaton::{Automaton, Dfa, Fuzzy, PatternError, Prefix};
use crate::query::{PhraseQuery, Query};

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'t> {
    /// The term, as it is in the index.
    pub term: &'t [u8],
    /// The bytes of the text that it comes from.
    pub bytes: Range<usize>,
    /// The position. Positions do not decrease from token to token.
    pub position: u32,
}

/// Finds the tokens of a field that a query has.
#[derive(Debug, Default)]
pub struct Highlighter {
    terms: HashSet<Vec<u8>>,
    sets: Vec<TermSet>,
    phrases: Vec<PhraseQuery>,
    phrase_terms: HashSet<Vec<u8>>,
}

/// A set of terms.
#[derive(Debug)]
enum TermSet {
    Prefix(Prefix),
    Pattern(Box<Dfa>),
    Fuzzy(Fuzzy),
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

impl TermSet {
    fn contains(&self, term: &[u8]) -> bool {
        match self {
            TermSet::Prefix(prefix) => prefix.accepts(term),
            TermSet::Pattern(dfa) => dfa.accepts(term),
            TermSet::Fuzzy(fuzzy) => fuzzy.accepts(term),
            TermSet::Range(lower, upper) => {
                let bounds = (
                    lower.as_ref().map(Vec::as_slice),
                    upper.as_ref().map(Vec::as_slice),
                );
                RangeBounds::<[u8]>::contains(&bounds, term)
            }
        }
    }
}

impl Highlighter {
    /// Creates a highlighter for the parts of a query about the fields for which `takes` returns
    /// `true`. Queries that must not match are not highlighted.
    ///
    /// # Errors
    /// Fails if a pattern is wrong or too large.
    pub fn new(query: &Query, takes: impl Fn(&str) -> bool) -> Result<Highlighter, PatternError> {
        let mut highlighter = Highlighter::default();
        let mut rest = vec![query];
        while let Some(query) = rest.pop() {
            match query {
                Query::Boolean(boolean) => {
                    rest.extend(&boolean.must);
                    rest.extend(&boolean.should);
                    rest.extend(&boolean.filter);
                }
                Query::Boost { query, .. }
                | Query::Function { query, .. }
                | Query::Constant { query, .. } => rest.push(query),
                query => highlighter.add(query, &takes)?,
            }
        }
        Ok(highlighter)
    }

    /// Adds a query that contains no other query, if it is about one of the fields.
    fn add(&mut self, query: &Query, takes: &impl Fn(&str) -> bool) -> Result<(), PatternError> {
        match query {
            Query::Term { field, term } if takes(field) => {
                self.terms.insert(term.clone());
            }
            Query::Terms { field, terms } if takes(field) => {
                self.terms.extend(terms.iter().cloned());
            }
            Query::Phrase(phrase) if takes(&phrase.field) => {
                let terms = phrase.words.iter().map(|word| word.term.clone());
                self.phrase_terms.extend(terms);
                self.phrases.push(phrase.clone());
            }
            Query::Prefix { field, prefix } if takes(field) => {
                self.sets
                    .push(TermSet::Prefix(Prefix::new(prefix.as_slice())));
            }
            Query::Wildcard { field, pattern } if takes(field) => {
                let dfa = Box::new(Dfa::wildcard(pattern)?);
                self.sets.push(TermSet::Pattern(dfa));
            }
            Query::Regex { field, pattern } if takes(field) => {
                let dfa = Box::new(Dfa::regex(pattern)?);
                self.sets.push(TermSet::Pattern(dfa));
            }
            Query::Fuzzy(fuzzy) if takes(&fuzzy.field) => {
                let fuzzy = Fuzzy::new(&fuzzy.word, fuzzy.edits, fuzzy.prefix);
                self.sets.extend(fuzzy.map(TermSet::Fuzzy));
            }
            Query::Range {
                field,
                lower,
                upper,
            } if takes(field) => {
                self.sets.push(TermSet::Range(lower.clone(), upper.clone()));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns `true` if a token with this term may be a hit. Other tokens need not be passed to
    /// [`hits`](Self::hits).
    pub fn is_candidate(&self, term: &[u8]) -> bool {
        self.terms.contains(term)
            || self.phrase_terms.contains(term)
            || self.sets.iter().any(|set| set.contains(term))
    }

    /// Returns the numbers of the tokens that the query has, in order.
    pub fn hits(&self, tokens: &[Token<'_>]) -> Vec<usize> {
        let mut hits = BTreeSet::new();
        for (number, token) in tokens.iter().enumerate() {
            let is_hit = self.terms.contains(token.term)
                || self.sets.iter().any(|set| set.contains(token.term));
            if is_hit {
                hits.insert(number);
            }
        }
        let mut steps = 0;
        for phrase in &self.phrases {
            add_phrase(phrase, tokens, &mut hits, &mut steps);
        }
        hits.into_iter().collect()
    }
}

/// The greatest number of steps of the search for the tokens of phrases. In a text that needs more,
/// the hits at the end are missing.
const PHRASE_STEPS_MAX: usize = 4_000_000;

/// A word of a phrase in a text.
struct Occurrences<'p> {
    /// The position of the word in the phrase.
    offset: i64,
    /// The positions of its tokens in the text, with their numbers.
    tokens: &'p [(i64, usize)],
}

impl Occurrences<'_> {
    /// Returns the tokens whose position minus the offset is within the range.
    fn within(&self, start: i64, end: i64) -> &[(i64, usize)] {
        let from = self
            .tokens
            .partition_point(|(at, _)| at - self.offset < start);
        let to = self
            .tokens
            .partition_point(|(at, _)| at - self.offset <= end);
        self.tokens.get(from..to).unwrap_or_default()
    }
}

/// Adds the tokens of each occurrence of a phrase, with at most its slop.
fn add_phrase(
    phrase: &PhraseQuery,
    tokens: &[Token<'_>],
    hits: &mut BTreeSet<usize>,
    steps: &mut usize,
) {
    *steps += tokens.len();
    if *steps > PHRASE_STEPS_MAX {
        return;
    }
    let mut numbers: BTreeMap<&[u8], Vec<(i64, usize)>> = BTreeMap::new();
    for word in &phrase.words {
        numbers.entry(&word.term).or_default();
    }
    for (number, token) in tokens.iter().enumerate() {
        if let Some(found) = numbers.get_mut(token.term) {
            found.push((i64::from(token.position), number));
        }
    }
    // The positions of tokens of `windrow.words` can decrease.
    for found in numbers.values_mut().filter(|found| !found.is_sorted()) {
        found.sort_unstable();
    }
    let words = phrase.words.iter().map(|word| Occurrences {
        offset: i64::from(word.position),
        tokens: numbers.get(word.term.as_slice()).map_or(&[], Vec::as_slice),
    });
    let mut words: Vec<Occurrences<'_>> = words.collect();
    words.sort_by_key(|word| word.tokens.len());
    // Each occurrence of an exact phrase contains the rarest word, so the search begins there. With
    // slop, any of the words may be the first.
    let first_words = if phrase.slop == 0 { 1 } else { words.len() };
    let starts = words.iter().take(first_words).flat_map(|word| {
        let positions = word.tokens.iter();
        positions.map(|(position, _)| position - word.offset)
    });
    for start in starts {
        let end = start + i64::from(phrase.slop);
        let mut complete = words.iter().inspect(|_| *steps += 1);
        if complete.all(|word| !word.within(start, end).is_empty()) {
            for word in &words {
                let found = word.within(start, end);
                *steps += found.len();
                hits.extend(found.iter().map(|(_, number)| *number));
                if *steps > PHRASE_STEPS_MAX {
                    return;
                }
            }
        }
        if *steps > PHRASE_STEPS_MAX {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{BooleanQuery, FuzzyQuery};

    fn check(query: Query, text: &str, expected: &str) {
        let tokens: Vec<Token<'_>> = text
            .split(' ')
            .zip(0..)
            .map(|(word, position)| Token {
                term: word.as_bytes(),
                bytes: 0..0,
                position,
            })
            .collect();
        let highlighter = Highlighter::new(&query, |field| field == "body").unwrap();
        let hits = highlighter.hits(&tokens);
        let is_candidate = |hit: &usize| highlighter.is_candidate(tokens[*hit].term);
        assert!(hits.iter().all(is_candidate), "{query} in {text}");
        let hits = hits.into_iter();
        let hits: Vec<&str> = hits.map(|hit| text.split(' ').nth(hit).unwrap()).collect();
        assert_eq!(hits.join(" "), expected, "{query} in {text}");
    }

    fn phrase(words: &[&str], slop: u32) -> Query {
        Query::phrase("body", words.iter().copied(), slop)
    }

    #[test]
    fn hits_are_the_tokens_of_the_query() {
        let field = || "body".to_owned();
        check(Query::term("body", "a"), "a b a", "a a");
        check(Query::term("title", "a"), "a b a", "");
        check(phrase(&["a", "b"], 0), "a b a c b", "a b");
        check(phrase(&["a", "b"], 1), "a c b a d d b", "a b");
        check(phrase(&["a", "b"], 2), "b a", "b a");
        check(phrase(&["a", "a"], 0), "a a b a", "a a");
        check(phrase(&[], 0), "a", "");
        let prefix = b"co".to_vec();
        check(
            Query::Prefix {
                field: field(),
                prefix,
            },
            "tea coffee cold",
            "coffee cold",
        );
        let pattern = "c*e".to_owned();
        check(
            Query::Wildcard {
                field: field(),
                pattern,
            },
            "code coffee cold",
            "code coffee",
        );
        let pattern = "[a-c]o.*".to_owned();
        check(
            Query::Regex {
                field: field(),
                pattern,
            },
            "code bold old",
            "code bold",
        );
        let fuzzy = FuzzyQuery {
            field: field(),
            word: "coffee".to_owned(),
            edits: 1,
            prefix: 0,
            expansions: 50,
        };
        check(Query::Fuzzy(fuzzy), "cofee coffees tea", "cofee coffees");
        let (lower, upper) = (Bound::Excluded(b"b".to_vec()), Bound::Unbounded);
        let range = Query::Range {
            field: field(),
            lower,
            upper,
        };
        check(range, "a b c", "c");
        let boolean = Query::Boolean(BooleanQuery {
            must: vec![Query::term("body", "a").boost(2.0)],
            must_not: vec![Query::term("body", "b")],
            ..BooleanQuery::default()
        });
        check(boolean, "a b", "a");
    }

    #[test]
    fn long_phrases_in_long_texts_are_bounded() {
        let token = |position| Token {
            term: b"a",
            bytes: 0..0,
            position,
        };
        let tokens: Vec<Token<'_>> = (0..100_000).map(token).collect();
        for slop in [0, 3, u32::MAX] {
            let highlighter = Highlighter::new(&phrase(&["a"; 1_000], slop), |_| true).unwrap();
            assert!(highlighter.hits(&tokens).len() >= 1_000);
        }
    }
}
