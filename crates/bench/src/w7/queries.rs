//! The queries of W7, drawn from the corpus with a seed.
//!
//! A word is drawn as the word at a random place of a random document, until its document frequency
//! is within the wanted band. So the words that are frequent within a band are drawn more often.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use crate::corpus::natural::Natural;
use crate::error::BenchError;
use crate::random::Random;

/// The kinds of queries, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// One word.
    Term,
    /// Documents with at least one of two words.
    Or,
    /// Documents with both words.
    And,
    /// Documents with both words side by side.
    Phrase,
    /// Words that one edit changes into the word.
    Fuzzy1,
    /// Words that at most two edits change into the word.
    Fuzzy2,
    /// Words that begin with these letters. The asterisk behind them is part of the query.
    Prefix,
    /// Words that match a pattern with asterisks for any letters.
    Wildcard,
}

impl Kind {
    /// Those of words.
    pub const WORDS: [Self; 4] = [Self::Term, Self::Or, Self::And, Self::Phrase];
    /// Those that look for terms which match something.
    pub const PATTERNS: [Self; 4] = [Self::Fuzzy1, Self::Fuzzy2, Self::Prefix, Self::Wildcard];

    pub fn name(self) -> &'static str {
        match self {
            Self::Term => "term",
            Self::Or => "or",
            Self::And => "and",
            Self::Phrase => "phrase",
            Self::Fuzzy1 => "fuzzy1",
            Self::Fuzzy2 => "fuzzy2",
            Self::Prefix => "prefix",
            Self::Wildcard => "wildcard",
        }
    }
}

/// A query. OR, AND and phrases have two words, the other kinds one word or pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub kind: Kind,
    pub words: Vec<String>,
}

/// The queries of a run.
pub struct Queries {
    /// Their kinds, in the order of the report.
    pub kinds: [Kind; 4],
    queries: Vec<Query>,
}

/// Bands of document frequencies, as parts of all documents.
const FREQUENT: Range<f64> = 0.03..0.30;
const MIDDLING: Range<f64> = 0.002..0.03;
const RARE: Range<f64> = 0.0..0.002;
const LETTERS_MIN: usize = 3;
/// The same of words that become patterns. Shorter words have too many neighbours.
const PATTERN_LETTERS_MIN: usize = 6;
/// Places that are tried for a word or for neighbours.
const PLACES_MAX: usize = 100_000;
/// Draws of a set of queries. If they do not suffice, the set is smaller.
const DRAWS_MAX: usize = 1_000;

impl Queries {
    /// Draws `count` queries of each kind. OR and AND have the same pairs of words. A small corpus
    /// yields fewer. Fails if it yields none.
    pub fn draw(corpus: &Natural, count: usize, seed: u64) -> Result<Self, BenchError> {
        let mut draw = Draw {
            frequencies: document_frequencies(corpus),
            corpus,
            random: Random::new(seed),
        };
        let mut all = Vec::new();
        let bands = [FREQUENT, MIDDLING, RARE];
        let thirds = bands.map(|band| {
            distinct(Kind::Term, count.div_ceil(3), || {
                Some(vec![draw.word(&band)?])
            })
        });
        all.extend(in_turn(thirds, count));
        let pairs = distinct(Kind::Or, count, || {
            Some(vec![draw.word(&FREQUENT)?, draw.word(&MIDDLING)?])
        });
        let and = |query: &Query| Query {
            kind: Kind::And,
            ..query.clone()
        };
        let both: Vec<Query> = pairs.iter().map(and).collect();
        all.extend(pairs);
        all.extend(both);
        all.extend(distinct(Kind::Phrase, count, || draw.neighbours()));
        Self::checked(Kind::WORDS, all)
    }

    /// Draws `count` queries of each kind that looks for matching terms, by words of the corpus
    /// with at least six letters. Fails if it yields none of a kind.
    pub fn draw_patterns(corpus: &Natural, count: usize, seed: u64) -> Result<Self, BenchError> {
        let mut draw = Draw {
            frequencies: HashMap::new(),
            corpus,
            random: Random::new(seed),
        };
        let kinds = Kind::PATTERNS.into_iter();
        let all = kinds.flat_map(|kind| distinct(kind, count, || Some(vec![draw.pattern(kind)?])));
        let all = all.collect();
        Self::checked(Kind::PATTERNS, all)
    }

    fn checked(kinds: [Kind; 4], queries: Vec<Query>) -> Result<Self, BenchError> {
        let drawn = Self { kinds, queries };
        let none = kinds
            .into_iter()
            .find(|kind| drawn.with_kind(*kind).is_empty());
        match none {
            Some(kind) => Err(BenchError::Usage(format!(
                "the corpus is too small for queries of the kind {}",
                kind.name()
            ))),
            None => Ok(drawn),
        }
    }

    /// The queries of a kind.
    pub fn with_kind(&self, kind: Kind) -> Vec<&Query> {
        let queries = self.queries.iter();
        queries.filter(|query| query.kind == kind).collect()
    }

    /// The file of the queries: lines `KIND WORD [WORD]`.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for query in &self.queries {
            let _ = writeln!(out, "{} {}", query.kind.name(), query.words.join(" "));
        }
        out
    }
}

/// Returns up to `count` different queries.
fn distinct(
    kind: Kind,
    count: usize,
    mut words: impl FnMut() -> Option<Vec<String>>,
) -> Vec<Query> {
    let (mut seen, mut queries) = (HashSet::new(), Vec::new());
    for _ in 0..DRAWS_MAX {
        if queries.len() == count {
            break;
        }
        let Some(words) = words() else {
            break;
        };
        if seen.insert(words.clone()) {
            queries.push(Query { kind, words });
        }
    }
    queries
}

/// Takes from each list in turn, so that the first queries of a round are of all bands.
fn in_turn(lists: [Vec<Query>; 3], count: usize) -> Vec<Query> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let all = (0..longest).flat_map(|place| lists.iter().filter_map(move |list| list.get(place)));
    all.take(count).cloned().collect()
}

struct Draw<'a> {
    corpus: &'a Natural,
    frequencies: HashMap<String, u64>,
    random: Random,
}

impl<'a> Draw<'a> {
    fn word(&mut self, band: &Range<f64>) -> Option<String> {
        let documents = self.corpus.documents() as f64;
        (0..PLACES_MAX).find_map(|_| {
            let body = self.body();
            let words: Vec<&str> = words(body).collect();
            let word = self.choose(&words)?.to_ascii_lowercase();
            let part = *self.frequencies.get(&word)? as f64 / documents;
            band.contains(&part).then_some(word)
        })
    }

    /// Two words with a single space between them.
    fn neighbours(&mut self) -> Option<Vec<String>> {
        (0..PLACES_MAX).find_map(|_| {
            let parts: Vec<&str> = self.body().split(' ').collect();
            let pairs: Vec<&[&str]> = parts.windows(2).collect();
            let pair = self.choose(&pairs)?;
            let lower: Vec<String> = pair.iter().map(|word| word.to_ascii_lowercase()).collect();
            let fits = pair.iter().all(|word| is_plain(word)) && lower[0] != lower[1];
            fits.then_some(lower)
        })
    }

    /// A word of the corpus, changed so that it looks for matching terms.
    fn pattern(&mut self, kind: Kind) -> Option<String> {
        let mut word = (0..PLACES_MAX).find_map(|_| {
            let words: Vec<&str> = words(self.body()).collect();
            let word = self.choose(&words)?.to_ascii_lowercase();
            (word.len() >= PATTERN_LETTERS_MIN).then_some(word)
        })?;
        let middle = word.len() / 2;
        match kind {
            Kind::Fuzzy1 => word.replace_range(middle..=middle, "q"),
            Kind::Fuzzy2 => {
                word.replace_range(middle..=middle, "q");
                word.remove(1);
            }
            Kind::Prefix => word.replace_range(4.., "*"),
            _ => {
                word.replace_range(middle + 1..word.len() - 1, "*");
                word.replace_range(2..middle, "*");
            }
        }
        Some(word)
    }

    fn body(&mut self) -> &'a str {
        let number = self.random.below(self.corpus.documents());
        self.corpus.body(number)
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let place = self.random.below(from.len() as u64);
        from.get(place as usize).copied()
    }
}

/// The number of documents with each word.
fn document_frequencies(corpus: &Natural) -> HashMap<String, u64> {
    let mut frequencies = HashMap::new();
    for number in 0..corpus.documents() {
        let body = corpus.body(number).to_ascii_lowercase();
        let mut words: Vec<&str> = words(&body).collect();
        words.sort_unstable();
        words.dedup();
        for word in words {
            match frequencies.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(frequencies.insert(word.to_owned(), 1)),
            }
        }
    }
    frequencies
}

/// The words that may be drawn.
fn words(body: &str) -> impl Iterator<Item = &str> {
    let words = body.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| is_plain(word))
}

fn is_plain(word: &str) -> bool {
    word.len() >= LETTERS_MIN && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 documents: "common" is in a tenth of them, "medium" in one of a hundred, a word of its
    /// own in each.
    fn corpus() -> Natural {
        let body = |number: u64| {
            let common = if number.is_multiple_of(10) {
                "Common ground"
            } else {
                "a1"
            };
            let medium = if number.is_multiple_of(100) {
                "medium,"
            } else {
                "b2"
            };
            let own: String = format!("{number:03}")
                .bytes()
                .map(|digit| char::from(digit - b'0' + b'a'))
                .collect();
            format!("x{own} {medium} {common}")
        };
        Natural::from_bodies((0..1_000).map(body))
    }

    #[test]
    fn words_are_drawn_by_their_document_frequency() {
        let queries = Queries::draw(&corpus(), 6, 1).unwrap();
        let text = queries.text();
        let lines: Vec<&str> = text.lines().collect();
        let mut frequent = [lines[0], lines[3]];
        frequent.sort_unstable();
        assert_eq!(frequent, ["term common", "term ground"]);
        assert_eq!(lines[1], "term medium");
        assert!(lines[2].starts_with("term x") && lines[4].starts_with("term x"));
        assert!(text.contains("or common medium\n") && text.contains("or ground medium\n"));
        assert!(text.contains("and common medium\n") && text.contains("and ground medium\n"));
        assert!(text.ends_with("phrase common ground\n"), "{text}");
        assert_eq!(queries.with_kind(Kind::Phrase).len(), 1);
    }

    #[test]
    fn the_same_seed_draws_the_same_queries() {
        let text = |seed| Queries::draw(&corpus(), 30, seed).unwrap().text();
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn patterns_are_made_of_words() {
        let bodies = ["harvest".to_owned()];
        let queries = Queries::draw_patterns(&Natural::from_bodies(bodies.into_iter()), 3, 1);
        let expected = "fuzzy1 harqest\nfuzzy2 hrqest\nprefix harv*\nwildcard ha*v*t\n";
        assert_eq!(queries.unwrap().text(), expected);
    }

    #[test]
    fn a_corpus_can_be_too_small() {
        let bodies = ["one two".to_owned()];
        let failed = Queries::draw(&Natural::from_bodies(bodies.into_iter()), 3, 1);
        let text = "the corpus is too small for queries of the kind term";
        assert_eq!(
            failed.err().map(|error| error.to_string()).as_deref(),
            Some(text)
        );
    }
}
