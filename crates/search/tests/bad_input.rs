//! Queries that are too large fail, and searches that are interrupted end.

use std::cell::Cell;

use windrow_interrupt::{Interrupted, Uninterrupted};
use windrow_search::ids::SetIds;
use windrow_search::memory::{MemoryPosting, MemoryPostings};
use windrow_search::operators::{
    Conjunction, ConstantScore, Disjunction, Phrase, PhraseTerm, Rescore, Union,
};
use windrow_search::{BestOptions, Matches, Node, Term, TextScore, TieOrder, all, best, count};

type Query = Node<MemoryPostings, TextScore, SetIds>;

fn stopped() -> Interrupted {
    Interrupted::new("stopped")
}

/// Returns an interrupt that fails at the check with this number, counted from 1, and later.
fn fails_from_check(number: u32) -> impl Fn() -> Result<(), Interrupted> {
    let checks = Cell::new(0);
    move || {
        checks.set(checks.get() + 1);
        if checks.get() < number {
            Ok(())
        } else {
            Err(stopped())
        }
    }
}

fn term(ids: impl Iterator<Item = u64>) -> Term<MemoryPostings, TextScore> {
    let posting = |id| MemoryPosting {
        id,
        frequency: 1,
        length: 10,
        score: None,
        positions: (0..4).collect(),
    };
    Term::new(MemoryPostings::new(ids.map(posting)), TextScore)
}

#[test]
fn ten_thousand_terms_are_searched() {
    let terms = |step: u64| (0..10_000).map(move |first| term((0..4).map(|at| first + at * step)));
    let any = |step| -> Query { Node::AnyTerm(Box::new(Disjunction::new(terms(step).collect()))) };
    assert_eq!(count(&mut any(10_000), &Uninterrupted), Ok(40_000));
    let found = best(
        &mut any(1),
        &BestOptions::new(3, TieOrder::HighestId),
        &Uninterrupted,
    )
    .unwrap();
    assert_eq!(found.hits[0].id, 9_999);
    assert_eq!(found.hits[0].score, 4.0 * 0.55);
    let mut every: Query = Node::AllTerms(Box::new(Conjunction::new(terms(1).collect())));
    assert_eq!(count(&mut every, &Uninterrupted), Ok(0));
}

#[test]
fn phrases_of_a_thousand_words_are_searched() {
    let long = |id| MemoryPosting {
        id,
        frequency: 1_000,
        length: 1_000,
        score: None,
        positions: (0..1_000).collect(),
    };
    let list = MemoryPostings::new((0..3).map(long));
    for (slop, words) in [(0, 1_000), (5, 300)] {
        let terms = (0..words).map(|position| PhraseTerm {
            list: list.clone(),
            position,
            term: 0,
        });
        let phrase = Phrase::new(terms.collect(), slop, TextScore);
        let mut query: Query = Node::Phrase(Box::new(phrase));
        assert_eq!(count(&mut query, &Uninterrupted), Ok(3), "{slop}");
    }
}

#[test]
fn operators_without_lists_have_no_records() {
    let mut query: Query = Node::AnyTerm(Box::new(Disjunction::new(Vec::new())));
    assert_eq!(count(&mut query, &Uninterrupted), Ok(0));
    let options = BestOptions::new(usize::MAX, TieOrder::LowestId);
    assert_eq!(best(&mut query, &options, &Uninterrupted).unwrap().hits, []);
    let mut query: Query = Node::AllTerms(Box::new(Conjunction::new(Vec::new())));
    assert_eq!(
        (query.next(), count(&mut query, &Uninterrupted)),
        (u64::MAX, Ok(0))
    );
    let mut query: Query = Node::Phrase(Box::new(Phrase::new(Vec::new(), 2, TextScore)));
    assert_eq!(
        (query.next(), count(&mut query, &Uninterrupted)),
        (u64::MAX, Ok(0))
    );
}

#[test]
fn records_with_one_score_are_not_all_read() {
    let union = || Union::new(vec![term(0..100_000), term(50_000..900_000)], 2.0);
    let queries: Vec<Query> = vec![
        Node::Union(Box::new(union())),
        Node::Constant(Box::new(Rescore::new(
            Node::Term(Box::new(term(0..900_000))),
            ConstantScore(1.5),
        ))),
        Node::Any(Box::new(Disjunction::new(vec![
            Node::Union(Box::new(union())),
            Node::Constant(Box::new(Rescore::new(
                Node::Term(Box::new(term(5..900_000))),
                ConstantScore(1.5),
            ))),
        ]))),
    ];
    for mut query in queries {
        let options = BestOptions::new(10, TieOrder::LowestId);
        let found = best(&mut query, &options, &fails_from_check(201));
        assert_eq!(found.unwrap().hits.len(), 10);
        assert!(query.id() < 100_000 || query.id() == u64::MAX);
    }
}

/// Lists without blocks have one bound for all ids. The bound of a list that had ended was still
/// counted, so a search with windows of 65,536 ids went on up to the greatest id.
#[test]
fn a_search_ends_after_its_lists() {
    let constant = |ids: &[u64], score| -> Query {
        let term = Node::Term(Box::new(term(ids.iter().copied())));
        Node::Constant(Box::new(Rescore::new(term, ConstantScore(score))))
    };
    for k in 1..8 {
        for ties in [TieOrder::LowestId, TieOrder::HighestId] {
            let lists = vec![
                constant(&[1, 2, 3], 2.0),
                constant(&[2, 3, 1 << 50], 1.0),
                constant(&[1, 3, 1 << 40, 1 << 60], 1.5),
            ];
            let mut query: Query = Node::Any(Box::new(Disjunction::new(lists)));
            let options = BestOptions::new(k, ties);
            let found = best(&mut query, &options, &fails_from_check(11));
            assert_eq!(found.unwrap().hits.len(), k.min(6));
        }
    }
}

#[test]
fn searches_stop_when_they_are_told() {
    let term = || term(0..100_000);
    let queries = || -> Vec<Query> {
        vec![
            Node::AnyTerm(Box::new(Disjunction::new(vec![term(), term()]))),
            Node::AllTerms(Box::new(Conjunction::new(vec![term(), term()]))),
            Node::AnyTerm(Box::new(Disjunction::new(
                (0..70).map(|_| term()).collect(),
            ))),
        ]
    };
    for mut query in queries() {
        assert_eq!(count(&mut query, &fails_from_check(1)), Err(stopped()));
    }
    for mut query in queries() {
        let mut taken = 0;
        assert_eq!(
            all(&mut query, &fails_from_check(2), |_| taken += 1),
            Err(stopped())
        );
        assert!((1..100_000).contains(&taken), "{taken}");
    }
    for mut query in queries() {
        let options = BestOptions::new(10, TieOrder::HighestId);
        assert_eq!(
            best(&mut query, &options, &fails_from_check(1)),
            Err(stopped())
        );
    }
}
