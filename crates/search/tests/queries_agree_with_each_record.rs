//! Random queries find the same records as an evaluation record by record. Also tests the limits of
//! queries.

mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use common::Random;
use windrow_interrupt::{Interrupted, Uninterrupted};
use windrow_search::automaton::{Automaton, Dfa};
use windrow_search::memory::MemoryIndex;
use windrow_search::{
    BestOptions, Bm25, Bm25Similarity, BooleanQuery, CompileError, Compiled, Explainer,
    FieldStatistics, FuzzyQuery, IdSet, Limits, Nearness, PhraseQuery, Query, RecordValue,
    ScoreFunction, Scorer, Scores, TextSimilarity, TieOrder, ValueNumber, all, best,
    best_and_count, compile, count,
};

const FIELDS: [&str; 2] = ["body", "title"];

/// Records with the tokens of their fields.
struct Model {
    index: MemoryIndex,
    records: BTreeMap<u64, BTreeMap<&'static str, Vec<String>>>,
    filters: Vec<Vec<u64>>,
    values: BTreeMap<u64, Vec<f64>>,
    /// The number of records with a term of a field.
    counts: BTreeMap<(&'static str, Vec<u8>), u64>,
    lengths: BTreeMap<&'static str, FieldStatistics>,
    automata: RefCell<BTreeMap<String, Dfa>>,
}

impl Model {
    fn random(random: &mut Random, records: u64) -> Model {
        let mut model = Model {
            index: MemoryIndex::default(),
            records: BTreeMap::new(),
            filters: Vec::new(),
            values: BTreeMap::new(),
            counts: BTreeMap::new(),
            lengths: BTreeMap::new(),
            automata: RefCell::default(),
        };
        let mut id = 0;
        for _ in 0..records {
            id += 1 + random.below(3);
            for field in FIELDS {
                if random.chance(4) {
                    continue;
                }
                let length = 1 + random.below(12);
                let tokens: Vec<String> = (0..length).map(|_| word(random)).collect();
                let slices: Vec<&str> = tokens.iter().map(String::as_str).collect();
                model.index.add(id, field, &slices);
                let distinct: BTreeSet<&str> = slices.into_iter().collect();
                for token in distinct {
                    *model
                        .counts
                        .entry((field, token.as_bytes().to_vec()))
                        .or_default() += 1;
                }
                let statistics = model.lengths.entry(field).or_default();
                statistics.records += 1;
                statistics.length += length;
                model.records.entry(id).or_default().insert(field, tokens);
            }
        }
        for part in [2, 40] {
            let ids = model.records.keys().copied();
            let ids: Vec<u64> = ids.filter(|_| random.chance(part)).collect();
            model
                .index
                .add_filter(ids.iter().copied().collect::<IdSet>());
            model.filters.push(ids);
        }
        let ids = model.records.keys().copied();
        let ids: Vec<u64> = ids.filter(|_| random.chance(3)).collect();
        for id in ids {
            let count = 1 + random.below(2);
            let mut values: Vec<f64> = (0..count)
                .map(|_| random.below(100) as f64 / 4.0 - 3.0)
                .collect();
            values.sort_by(f64::total_cmp);
            model.values.insert(id, values);
        }
        let values = model.values.iter();
        let values = values.flat_map(|(id, values)| {
            let value = |value: &f64| RecordValue {
                id: *id,
                value: *value,
            };
            values.iter().map(value)
        });
        model.index.add_values(&values.collect::<Vec<_>>());
        model
    }

    fn tokens(&self, id: u64, field: &str) -> &[String] {
        self.records[&id].get(field).map_or(&[], Vec::as_slice)
    }

    fn records_with(&self, field: &str, term: &[u8]) -> u64 {
        let field = FIELDS.iter().find(|known| **known == field).unwrap();
        self.counts
            .get(&(*field, term.to_vec()))
            .copied()
            .unwrap_or(0)
    }

    fn accepts(&self, pattern: &str, parse: impl FnOnce(&str) -> Dfa, term: &[u8]) -> bool {
        let mut automata = self.automata.borrow_mut();
        let dfa = automata
            .entry(pattern.to_owned())
            .or_insert_with(|| parse(pattern));
        let state = term
            .iter()
            .fold(dfa.start(), |state, byte| dfa.step(&state, *byte));
        dfa.is_match(&state)
    }

    fn occurrences(&self, id: u64, field: &str, term: &[u8]) -> u32 {
        let tokens = self.tokens(id, field).iter();
        tokens.filter(|token| token.as_bytes() == term).count() as u32
    }

    fn statistics(&self, field: &str) -> FieldStatistics {
        self.lengths[field]
    }

    fn any_token(
        &self,
        id: u64,
        field: &str,
        boost: f32,
        test: impl Fn(&[u8]) -> bool,
    ) -> Option<f64> {
        let mut tokens = self.tokens(id, field).iter();
        tokens
            .any(|token| test(token.as_bytes()))
            .then_some(f64::from(boost))
    }

    /// Returns the score of a record, or `None` if it does not match.
    fn score(&self, query: &Query, id: u64, boost: f32) -> Option<f64> {
        let length = |field: &str| self.tokens(id, field).len() as u32;
        match query {
            Query::Nothing => None,
            Query::All => Some(f64::from(boost)),
            Query::Term { field, term } => {
                let records = self.records_with(field, term);
                let scorer = Bm25::new(boost, self.statistics(field), &[records]);
                let frequency = self.occurrences(id, field, term);
                (frequency > 0).then(|| scorer.score(frequency, length(field), None))
            }
            Query::Phrase(phrase) => self.score_phrase(phrase, id, boost),
            Query::Prefix { field, prefix } => {
                self.any_token(id, field, boost, |token| token.starts_with(prefix))
            }
            Query::Wildcard { field, pattern } => {
                let parse = |pattern: &str| Dfa::wildcard(pattern).unwrap();
                self.any_token(id, field, boost, |token| {
                    self.accepts(pattern, parse, token)
                })
            }
            Query::Regex { field, pattern } => {
                let parse = |pattern: &str| Dfa::regex(pattern).unwrap();
                self.any_token(id, field, boost, |token| {
                    self.accepts(pattern, parse, token)
                })
            }
            Query::Terms { field, terms } => self.any_token(id, field, boost, |token| {
                terms.iter().any(|term| term == token)
            }),
            Query::Range {
                field,
                lower,
                upper,
            } => self.any_token(id, field, boost, |token| {
                let bounds = (lower.as_ref(), upper.as_ref());
                std::ops::RangeBounds::contains(&bounds, &token.to_vec())
            }),
            Query::Exists { field } => (length(field) > 0).then_some(f64::from(boost)),
            Query::Filter { number, .. } => {
                let found = self.filters[*number].binary_search(&id);
                found.is_ok().then_some(f64::from(boost))
            }
            Query::Near { nearness, .. } => {
                let Nearness { origin, pivot } = nearness;
                let scores = self.values.get(&id)?.iter();
                let scores = scores.map(|value| pivot / (pivot + (origin - value).abs()));
                let score = scores.fold(0.0, f64::max) as f32;
                Some(f64::from(score) * f64::from(boost))
            }
            Query::Boolean(query) => self.score_boolean(query, id, boost),
            Query::Boost {
                query,
                boost: factor,
            } => self.score(query, id, boost * factor),
            Query::Function { query, function } => {
                // The function of the random queries multiplies the score by a value.
                assert!(matches!(function, ScoreFunction::Multiply(_)));
                let value = self.values.get(&id).map_or(0.5, |values| values[0]);
                let relevance = self.score(query, id, 1.0)?;
                Some((relevance * value).max(0.0) * f64::from(boost))
            }
            Query::Constant { query, score } => {
                let score = f64::from(*score) * f64::from(boost);
                self.score(query, id, 1.0).map(|_| score)
            }
            Query::Fuzzy(_) => unreachable!("not among the random queries"),
        }
    }

    fn score_phrase(&self, phrase: &PhraseQuery, id: u64, boost: f32) -> Option<f64> {
        let PhraseQuery { field, words, .. } = phrase;
        let tokens = self.tokens(id, field);
        let starts = (0..tokens.len()).filter(|start| {
            words.iter().all(|word| {
                let token = tokens.get(start + word.position as usize);
                token.is_some_and(|token| token.as_bytes() == word.term)
            })
        });
        let frequency = starts.count();
        let records: Vec<u64> = words
            .iter()
            .map(|word| self.records_with(field, &word.term))
            .collect();
        let scorer = Bm25::new(boost, self.statistics(field), &records);
        (frequency > 0).then(|| scorer.score_phrase(frequency as f32, tokens.len() as u32))
    }

    fn score_boolean(&self, query: &BooleanQuery, id: u64, boost: f32) -> Option<f64> {
        let score = |query: &Query| self.score(query, id, boost);
        let must: Option<f64> = query.must.iter().map(score).sum();
        let filter: Option<f64> = query.filter.iter().map(score).sum();
        let should: Vec<f64> = query.should.iter().filter_map(score).collect();
        let is_excluded = query.must_not.iter().any(|query| score(query).is_some());
        let has_clauses = !(query.must.is_empty()
            && query.filter.is_empty()
            && query.should.is_empty()
            && query.must_not.is_empty());
        let matches = has_clauses && !is_excluded && should.len() >= query.minimum();
        filter.filter(|_| matches)?;
        Some(must? + should.iter().sum::<f64>())
    }
}

/// Returns one of 300 words. The first ones are more frequent.
fn word(random: &mut Random) -> String {
    let number = random
        .below(300)
        .min(random.below(300))
        .min(random.below(300));
    let letters = [number / 100, number / 10 % 10, number % 10];
    letters
        .iter()
        .map(|digit| (b'a' + *digit as u8) as char)
        .collect()
}

fn query(random: &mut Random, depth: u32) -> Query {
    let field = FIELDS[random.below(2) as usize].to_owned();
    if depth > 0 && random.below(3) > 0 {
        compound_query(random, depth)
    } else {
        leaf_query(random, field)
    }
}

fn compound_query(random: &mut Random, depth: u32) -> Query {
    let queries = |random: &mut Random, most: u64| -> Vec<Query> {
        (0..random.below(most + 1))
            .map(|_| query(random, depth - 1))
            .collect()
    };
    match random.below(9) {
        0 => query(random, depth - 1).boost(2.5),
        1 => Query::Constant {
            query: Box::new(query(random, depth - 1)),
            score: 3.0,
        },
        2 => Query::all(queries(random, 3)),
        4 => Query::Function {
            query: Box::new(query(random, depth - 1)),
            function: ScoreFunction::Multiply(vec![
                ScoreFunction::Relevance,
                ScoreFunction::Value(ValueNumber {
                    number: 0,
                    undefined: 0.5,
                }),
            ]),
        },
        3 => Query::any(queries(random, 4)),
        _ => Query::Boolean(BooleanQuery {
            must: queries(random, 1),
            should: queries(random, 4),
            must_not: queries(random, 1),
            filter: queries(random, 1),
            minimum_should_match: random.below(3) as usize,
        }),
    }
}

fn leaf_query(random: &mut Random, field: String) -> Query {
    let term = word(random);
    match random.below(15) {
        0 => Query::phrase(&field, [term.as_str(), &word(random)], 0),
        1 => Query::phrase(&field, [term.as_str()], 2),
        2 => Query::Prefix {
            field,
            prefix: term.as_bytes()[..2].to_vec(),
        },
        3 => Query::Wildcard {
            field,
            pattern: term.replacen('a', "*", 1).replace('b', "?"),
        },
        4 => Query::Regex {
            field,
            pattern: term.replacen('a', "[a-c]+", 1),
        },
        5 => Query::Terms {
            field,
            terms: (0..random.below(30))
                .map(|_| word(random).into_bytes())
                .collect(),
        },
        6 => Query::Range {
            field,
            lower: Bound::Excluded(term.into_bytes()),
            upper: Bound::Included(word(random).into_bytes()),
        },
        7 => Query::Exists { field },
        8 => Query::Filter {
            number: random.below(2) as usize,
            label: "filter".to_owned(),
        },
        9 => Query::Near {
            number: 0,
            nearness: Nearness {
                origin: random.below(20) as f64,
                pivot: 1.0 + random.below(5) as f64,
            },
            label: "near".to_owned(),
        },
        10 if random.chance(3) => [Query::All, Query::Nothing][random.below(2) as usize].clone(),
        _ => Query::term(&field, &term),
    }
}

fn compiled(model: &Model, query: &Query, scores: Scores) -> Compiled<MemoryIndex, Bm25Similarity> {
    compile(
        query,
        &model.index,
        &Bm25Similarity,
        &Limits::default(),
        scores,
        &Uninterrupted,
    )
    .unwrap()
}

fn ids(hits: &[(u64, f64)]) -> Vec<u64> {
    hits.iter().map(|hit| hit.0).collect()
}

/// Checks that all hits are found, and returns them.
fn check_all(model: &Model, query: &Query, expected: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let mut found = Vec::new();
    all(
        &mut compiled(model, query, Scores::Computed),
        &Uninterrupted,
        |hit| found.push((hit.id, hit.score)),
    )
    .unwrap();
    assert_eq!(ids(&found), ids(expected), "{query}");
    for ((id, found), (_, expected)) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() < 1e-4,
            "{query} {id}: {found} {expected}"
        );
    }
    found
}

fn check_explanations(model: &Model, query: &Query, expected: &[(u64, f64)]) {
    let describe = |query: &Query| query.to_string();
    let limits = Limits::default();
    let explainer = Explainer::new(query, &model.index, &limits, &describe, &Uninterrupted);
    let mut explainer = explainer.unwrap();
    let explained = model.records.keys();
    let explained: Vec<u64> = explained
        .filter(|id| {
            let value = explainer.explanation(**id).map(|found| found.value);
            let score = model.score(query, **id, 1.0);
            let difference = value.unwrap_or(0.0) - score.unwrap_or(0.0);
            assert!(difference.abs() < 1e-4, "{query} {id}: {value:?} {score:?}");
            value.is_some()
        })
        .copied()
        .collect();
    assert_eq!(explained, ids(expected), "{query}");
}

/// `hits` are the expected hits in the order of their ids.
fn check_best(model: &Model, query: &Query, mut hits: Vec<(u64, f64)>) {
    let total = hits.len() as u64;
    hits.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    hits.truncate(10);
    let compiled = || compiled(model, query, Scores::Computed);
    let options = BestOptions::new(10, TieOrder::LowestId);
    let best = best(&mut compiled(), &options, &Uninterrupted).unwrap();
    let (counted, count) = best_and_count(&mut compiled(), &options, &Uninterrupted).unwrap();
    assert_eq!(counted.hits, best.hits, "{query}");
    assert_eq!(count, total, "{query}");
    let best: Vec<(u64, f64)> = best.hits.iter().map(|hit| (hit.id, hit.score)).collect();
    assert_eq!(best, hits, "{query}");
}

#[test]
fn queries_agree() {
    for seed in 0..12 {
        let random = &mut Random(seed);
        let model = Model::random(random, 250);
        for _ in 0..60 {
            let query = query(random, 3);
            let expected: Vec<(u64, f64)> = model
                .records
                .keys()
                .filter_map(|id| Some((*id, model.score(&query, *id, 1.0)?)))
                .collect();
            let hits = check_all(&model, &query, &expected);
            check_explanations(&model, &query, &expected);
            for scores in [Scores::Omitted, Scores::Computed] {
                let counted = count(&mut compiled(&model, &query, scores), &Uninterrupted);
                assert_eq!(counted, Ok(expected.len() as u64), "{query}");
            }
            check_best(&model, &query, hits);
        }
    }
}

fn fuzzy(word: &str, edits: u8, expansions: usize) -> Query {
    Query::Fuzzy(FuzzyQuery {
        field: "body".to_owned(),
        word: word.to_owned(),
        edits,
        prefix: 0,
        expansions,
    })
}

#[test]
fn similar_words_are_scored_by_similarity() {
    let mut index = MemoryIndex::default();
    let words = [
        "coffee", "coffees", "toffee", "coffer", "offer", "cof", "tea",
    ];
    for (word, id) in words.iter().zip(1..) {
        index.add(id, "body", &[*word, "with", "milk"]);
    }
    let check = |query: Query, expected: &[u64]| {
        let similarity = Bm25Similarity;
        let (limits, scores) = (Limits::default(), Scores::Computed);
        let compiled = compile(&query, &index, &similarity, &limits, scores, &Uninterrupted);
        let mut compiled = compiled.unwrap();
        let options = BestOptions::new(10, TieOrder::LowestId);
        let found = best(&mut compiled, &options, &Uninterrupted).unwrap();
        let ids: Vec<u64> = found.hits.iter().map(|hit| hit.id).collect();
        assert_eq!(ids, expected, "{query}");
    };
    check(fuzzy("coffee", 0, 50), &[1]);
    check(fuzzy("coffee", 1, 50), &[1, 2, 3, 4]);
    // "offer" has two edits and five letters.
    check(fuzzy("coffee", 2, 50), &[1, 2, 3, 4, 5]);
    check(fuzzy("coffee", 2, 3), &[1, 2, 4]);
    check(fuzzy("coffee", 2, 0), &[]);
    // Fewer edits than letters are required.
    check(fuzzy("te", 2, 50), &[7]);
    check(fuzzy("x", 2, 50), &[]);
    check(fuzzy(&"x".repeat(1_000), 2, 50), &[]);
}

#[test]
fn queries_beyond_the_limits_are_refused() {
    let mut index = MemoryIndex::default();
    let words: Vec<String> = (0..300).map(|number| format!("w{number}")).collect();
    for (word, id) in words.iter().zip(1..) {
        index.add(id, "body", &[word.as_str()]);
    }
    let limits = Limits {
        lists: 200,
        fuzzy_terms: 20,
        depth: 10,
    };
    let compile = |query: &Query| {
        let outcome = compile(
            query,
            &index,
            &TextSimilarity,
            &limits,
            Scores::Computed,
            &Uninterrupted,
        );
        outcome.map(|mut compiled| count(&mut compiled, &Uninterrupted).unwrap())
    };
    let terms = |count: usize| {
        words[..count]
            .iter()
            .map(|word| Query::term("body", word))
            .collect()
    };
    assert_eq!(compile(&Query::any(terms(200))), Ok(200));
    let error = compile(&Query::any(terms(201))).unwrap_err();
    assert_eq!(error, CompileError::TooManyLists { limit: 200 });
    let text = "the query has more than 200 terms, words of phrases and similar words";
    assert_eq!(error.to_string(), text);
    let long = Query::phrase("body", ["w1"; 201], 0);
    assert_eq!(
        compile(&long),
        Err(CompileError::TooManyLists { limit: 200 })
    );
    let wildcard = |pattern: &str| Query::Wildcard {
        field: "body".to_owned(),
        pattern: pattern.to_owned(),
    };
    assert_eq!(compile(&wildcard("w1*")), Ok(111));
    // The terms of a pattern are not limited: their records are read one term after the other.
    assert_eq!(compile(&wildcard("*")), Ok(300));
    assert_eq!(compile(&fuzzy("w1", 2, 100)), Ok(20));
    let error = compile(&fuzzy("w1", 3, 100)).unwrap_err();
    assert_eq!(error.to_string(), "similar words may have 2 edits, not 3");
    let deep = |depth: usize| {
        let mut query = Query::term("body", "w1");
        for _ in 0..depth {
            query = Query::any(vec![query]).boost(2.0);
        }
        compile(&query)
    };
    assert_eq!(deep(4), Ok(1));
    assert_eq!(deep(5), Err(CompileError::TooDeep { limit: 10 }));
    let error = compile(&wildcard("*a????????????????????????????")).unwrap_err();
    assert!(matches!(error, CompileError::Pattern { .. }), "{error}");
    let stopped = windrow_search::compile(
        &Query::any(vec![wildcard("w*"); 40]),
        &index,
        &TextSimilarity,
        &Limits::default(),
        Scores::Computed,
        &|| Err(Interrupted::new("stopped")),
    );
    let stopped = stopped.err();
    assert_eq!(stopped, Some(Interrupted::new("stopped").into()));
}
