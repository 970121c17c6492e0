//! Random postings, and random queries that are evaluated record by record.
#![allow(dead_code, reason = "each test uses a part")]

use windrow_search::memory::{MemoryPosting, MemoryPostings};
use windrow_search::operators::{
    AtLeast, Conjunction, ConstantScore, Disjunction, Filter, Optional, Phrase, PhraseTerm,
    Rescore, Union, Without,
};
use windrow_search::{Hit, IdSet, Node, Scorer, Term, TieOrder};

/// A generator of numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// Records of random terms.
pub struct Corpus {
    pub terms: Vec<Vec<MemoryPosting>>,
    lists: Vec<MemoryPostings>,
    pub ids: Vec<u64>,
}

impl Corpus {
    /// Creates records of up to 40 tokens, in which the first terms are frequent and the last ones
    /// rare.
    pub fn random(random: &mut Random, records: u64, terms: usize) -> Corpus {
        let mut corpus = Corpus {
            terms: vec![Vec::new(); terms],
            lists: Vec::new(),
            ids: Vec::new(),
        };
        let mut id = 0;
        for _ in 0..records {
            id += if random.chance(500) {
                random.below(90_000)
            } else {
                1 + random.below(3)
            };
            corpus.ids.push(id);
            let length = 1 + random.below(40) as u32;
            let mut positions = vec![Vec::new(); terms];
            for position in 0..length {
                let spread = random.below(1 << 16) as f64 / f64::from(1 << 16);
                positions[(spread.powi(4) * terms as f64) as usize].push(position);
            }
            for (term, positions) in positions.into_iter().enumerate() {
                if positions.is_empty() {
                    continue;
                }
                corpus.terms[term].push(MemoryPosting {
                    id,
                    frequency: positions.len() as u32,
                    length,
                    score: random.chance(50).then(|| random.below(300) as f64 / 100.0),
                    positions,
                });
            }
        }
        let lists = corpus.terms.iter().cloned();
        corpus.lists = lists.map(MemoryPostings::new).collect();
        corpus
    }

    pub fn list(&self, term: usize) -> MemoryPostings {
        self.lists[term].clone()
    }

    fn posting(&self, term: usize, id: u64) -> Option<&MemoryPosting> {
        let list = &self.terms[term];
        let at = list.binary_search_by_key(&id, |posting| posting.id).ok()?;
        list.get(at)
    }
}

/// A random query.
#[derive(Clone, Debug)]
pub enum Shape {
    Term(usize),
    Phrase(Vec<usize>),
    Filter(IdSet, Vec<u64>),
    All(Vec<Shape>),
    Any(Vec<Shape>),
    Union(Vec<usize>),
    AtLeast(Vec<Shape>, usize),
    Without(Box<Shape>, Box<Shape>),
    Optional(Box<Shape>, Box<Shape>),
    Constant(Box<Shape>),
}

type Tree<S> = Node<MemoryPostings, S, windrow_search::ids::SetIds>;

impl Shape {
    pub fn random(random: &mut Random, corpus: &Corpus, depth: u32) -> Shape {
        let terms = corpus.terms.len() as u64;
        let term = |random: &mut Random| random.below(terms) as usize;
        if depth == 0 || random.chance(8) {
            return match random.below(8) {
                0 => Shape::Phrase((0..2 + random.below(2)).map(|_| term(random)).collect()),
                1 => {
                    let rare = 1 + random.below(30);
                    let ids = corpus.ids.iter().copied();
                    let ids: Vec<u64> = ids.filter(|_| random.chance(rare)).collect();
                    Shape::Filter(ids.iter().copied().collect(), ids)
                }
                2 => Shape::Union((0..1 + random.below(6)).map(|_| term(random)).collect()),
                _ => Shape::Term(term(random)),
            };
        }
        let some = |random: &mut Random| -> Vec<Shape> {
            let only_terms = random.chance(2);
            let depth = if only_terms { 0 } else { depth - 1 };
            (0..1 + random.below(5))
                .map(|_| {
                    if only_terms {
                        Shape::Term(term(random))
                    } else {
                        Shape::random(random, corpus, depth)
                    }
                })
                .collect()
        };
        let one = |random: &mut Random| Box::new(Shape::random(random, corpus, depth - 1));
        match random.below(8) {
            0 | 1 => Shape::All(some(random)),
            2..=4 => Shape::Any(some(random)),
            5 => {
                let shapes = some(random);
                let minimum = 1 + random.below(shapes.len() as u64 + 1) as usize;
                Shape::AtLeast(shapes, minimum)
            }
            6 => Shape::Without(one(random), one(random)),
            _ if random.chance(2) => Shape::Constant(one(random)),
            _ => Shape::Optional(one(random), one(random)),
        }
    }

    pub fn node<S: Scorer + Clone>(&self, corpus: &Corpus, scorers: &[S]) -> Tree<S> {
        let term = |term: usize| Term::new(corpus.list(term), scorers[term].clone());
        let nodes = |shapes: &[Shape]| -> Vec<Tree<S>> {
            shapes
                .iter()
                .map(|shape| shape.node(corpus, scorers))
                .collect()
        };
        let terms = |shapes: &[Shape]| -> Option<Vec<Term<MemoryPostings, S>>> {
            let terms = shapes.iter().map(|shape| match shape {
                Shape::Term(number) => Some(term(*number)),
                _ => None,
            });
            terms.collect()
        };
        match self {
            Shape::Term(number) => Node::Term(Box::new(term(*number))),
            Shape::Phrase(numbers) => {
                let terms = numbers
                    .iter()
                    .zip(0..)
                    .map(|(number, position)| PhraseTerm {
                        list: corpus.list(*number),
                        position,
                        term: *number,
                    });
                let scorer = scorers[numbers[0]].clone();
                Node::Phrase(Box::new(Phrase::new(terms.collect(), 0, scorer)))
            }
            Shape::Filter(set, _) => Node::Filter(Filter::new(set.clone().into_ids(), 0.25)),
            Shape::All(shapes) => match terms(shapes) {
                Some(terms) => Node::AllTerms(Box::new(Conjunction::new(terms))),
                None => Node::All(Box::new(Conjunction::new(nodes(shapes)))),
            },
            Shape::Any(shapes) => match terms(shapes) {
                Some(terms) => Node::AnyTerm(Box::new(Disjunction::new(terms))),
                None => Node::Any(Box::new(Disjunction::new(nodes(shapes)))),
            },
            Shape::Union(numbers) => {
                let terms = numbers.iter().map(|number| term(*number));
                Node::Union(Box::new(Union::new(terms.collect(), 0.5)))
            }
            Shape::AtLeast(shapes, minimum) => {
                Node::AtLeast(Box::new(AtLeast::new(nodes(shapes), *minimum)))
            }
            Shape::Without(included, excluded) => {
                let included = included.node(corpus, scorers);
                let excluded = excluded.node(corpus, scorers);
                Node::Without(Box::new(Without::new(included, excluded)))
            }
            Shape::Optional(required, optional) => {
                let required = required.node(corpus, scorers);
                let optional = optional.node(corpus, scorers);
                Node::Optional(Box::new(Optional::new(required, optional)))
            }
            Shape::Constant(shape) => {
                let node = shape.node(corpus, scorers);
                Node::Constant(Box::new(Rescore::new(node, ConstantScore(1.5))))
            }
        }
    }

    /// Returns the score of a record, or `None` if it does not match.
    pub fn score<S: Scorer>(&self, corpus: &Corpus, scorers: &[S], id: u64) -> Option<f64> {
        let score = |shape: &Shape| shape.score(corpus, scorers, id);
        match self {
            Shape::Term(term) => {
                let posting = corpus.posting(*term, id)?;
                let (frequency, length) = (posting.frequency, posting.length);
                Some(scorers[*term].score(frequency, length, posting.score))
            }
            Shape::Phrase(terms) => {
                let postings: Option<Vec<&MemoryPosting>> =
                    terms.iter().map(|term| corpus.posting(*term, id)).collect();
                let postings = postings?;
                let starts = postings[0].positions.iter().filter(|start| {
                    let mut rest = postings.iter().zip(**start..);
                    rest.all(|(posting, position)| posting.positions.contains(&position))
                });
                let (count, length) = (starts.count(), postings[0].length);
                (count > 0).then(|| scorers[terms[0]].score_phrase(count as f32, length))
            }
            Shape::Filter(_, ids) => ids.binary_search(&id).is_ok().then_some(0.25),
            Shape::All(shapes) => shapes.iter().map(score).sum(),
            Shape::Any(shapes) => sum_of_some(shapes.iter().map(score), 1),
            Shape::Union(terms) => {
                let mut terms = terms.iter();
                terms
                    .any(|term| corpus.posting(*term, id).is_some())
                    .then_some(0.5)
            }
            Shape::AtLeast(shapes, minimum) => sum_of_some(shapes.iter().map(score), *minimum),
            Shape::Without(included, excluded) => match score(excluded) {
                Some(_) => None,
                None => score(included),
            },
            Shape::Optional(required, optional) => match score(optional) {
                Some(more) => Some(score(required)? + more),
                None => score(required),
            },
            Shape::Constant(shape) => score(shape).map(|_| 1.5),
        }
    }

    /// Returns the records that match with their scores, in the order of ids.
    pub fn hits<S: Scorer>(&self, corpus: &Corpus, scorers: &[S]) -> Vec<Hit> {
        let ids = corpus.ids.iter().copied();
        ids.filter_map(|id| {
            let score = self.score(corpus, scorers, id)?;
            Some(Hit { id, score })
        })
        .collect()
    }
}

fn sum_of_some(scores: impl Iterator<Item = Option<f64>>, minimum: usize) -> Option<f64> {
    let found: Vec<f64> = scores.flatten().collect();
    (found.len() >= minimum).then(|| found.iter().sum())
}

/// Sorts hits by score, the best first.
pub fn sort_best_first(hits: &mut [Hit], ties: TieOrder) {
    hits.sort_by(|one, other| {
        let by_id = match ties {
            TieOrder::LowestId => one.id.cmp(&other.id),
            TieOrder::HighestId => other.id.cmp(&one.id),
        };
        other.score.total_cmp(&one.score).then(by_id)
    });
}
