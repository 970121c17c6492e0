//! Random trees of operators find the same records as an evaluation record by record. Scores agree
//! to the last bit.

mod common;

use common::{Corpus, Random, Shape, sort_best_first};
use windrow_interrupt::Uninterrupted;
use windrow_search::{
    Best, BestOptions, Bm25, END, FieldStatistics, Hit, Matches, Scorer, TextScore, TieOrder, all,
    best, best_and_count, count,
};

fn check<S: Scorer + Clone>(random: &mut Random, shape: &Shape, corpus: &Corpus, scorers: &[S]) {
    let expected = shape.hits(corpus, scorers);
    let node = || shape.node(corpus, scorers);

    let mut stepped = Vec::new();
    let mut list = node();
    assert!(list.count_at_most() >= expected.len() as u64, "{shape:?}");
    let bound = list.bound();
    while list.id() != END {
        let score = list.score();
        assert!(score <= bound, "{shape:?}");
        stepped.push(Hit {
            id: list.id(),
            score,
        });
        list.next();
    }
    assert_eq!(stepped, expected, "{shape:?}");

    let mut scanned = Vec::new();
    all(&mut node(), &Uninterrupted, |hit| scanned.push(hit)).unwrap();
    assert_eq!(scanned, expected, "{shape:?}");
    assert_eq!(
        count(&mut node(), &Uninterrupted),
        Ok(expected.len() as u64),
        "{shape:?}"
    );
    check_moves(random, &mut node(), &expected, shape);
    check_blocks(random, &mut node(), &expected, shape);

    for ties in [TieOrder::LowestId, TieOrder::HighestId] {
        let mut sorted = expected.clone();
        sort_best_first(&mut sorted, ties);
        for k in [0, 1, 3, 10, 100] {
            let options = BestOptions::new(k, ties);
            let found = best(&mut node(), &options, &Uninterrupted).unwrap();
            assert_eq!(found.hits, sorted[..k.min(sorted.len())], "{shape:?} {k}");
            let (found, total) = best_and_count(&mut node(), &options, &Uninterrupted).unwrap();
            assert_eq!(found.hits, sorted[..k.min(sorted.len())], "{shape:?} {k}");
            assert_eq!(total, expected.len() as u64, "{shape:?} {k}");
        }
        check_pages(&sorted, ties, || node_best(shape, corpus, scorers));
    }
}

fn node_best<'a, S: Scorer + Clone>(
    shape: &'a Shape,
    corpus: &'a Corpus,
    scorers: &'a [S],
) -> impl FnOnce(&BestOptions) -> Best + 'a {
    |options| best(&mut shape.node(corpus, scorers), options, &Uninterrupted).unwrap()
}

/// Checks hits that are read page by page, and hits above a score.
fn check_pages<B: FnOnce(&BestOptions) -> Best>(
    sorted: &[Hit],
    ties: TieOrder,
    search: impl Fn() -> B,
) {
    let mut after = None;
    for page in sorted.chunks(7).take(4) {
        let options = BestOptions {
            after,
            ..BestOptions::new(7, ties)
        };
        let found = search()(&options);
        assert_eq!(found.hits, page);
        after = page.last().copied();
    }
    let Some(middle) = sorted.get(sorted.len() / 2) else {
        return;
    };
    let above = Some(middle.score);
    let options = BestOptions {
        above,
        ..BestOptions::new(20, ties)
    };
    let expected = sorted.iter().filter(|hit| hit.score > middle.score);
    let expected: Vec<Hit> = expected.copied().take(20).collect();
    assert_eq!(search()(&options).hits, expected);
}

/// Checks the results of random seeks, probes and steps.
fn check_moves(random: &mut Random, list: &mut impl Matches, expected: &[Hit], shape: &Shape) {
    let from = |id: u64| {
        expected
            .iter()
            .find(|hit| hit.id >= id)
            .map_or(END, |hit| hit.id)
    };
    while list.id() != END {
        let target = list.id() + random.below(400);
        if random.chance(3) {
            let found = list.probe(target);
            let exact = from(target);
            assert_eq!(found == target, exact == target, "{shape:?}");
            assert!(found <= exact, "{shape:?}");
            assert!(found >= target);
            assert_eq!(list.seek(found), exact, "{shape:?}");
        } else if random.chance(2) {
            assert_eq!(list.seek(target), from(target), "{shape:?}");
        } else {
            let after = list.id() + 1;
            assert_eq!(list.next(), from(after), "{shape:?}");
        }
    }
}

/// Checks that no score in a block is above its bound.
fn check_blocks(random: &mut Random, list: &mut impl Matches, expected: &[Hit], shape: &Shape) {
    let mut from = 0;
    loop {
        let end = list.block_end(from);
        assert!(end >= from);
        let bound = list.block_bound();
        for hit in expected {
            if (from..=end).contains(&hit.id) {
                assert!(
                    hit.score <= bound,
                    "{shape:?}: {hit:?} in {from} to {end}: {bound}"
                );
            }
        }
        if end == END {
            return;
        }
        from = end + 1;
        if random.chance(3) {
            from += random.below(1_000);
        }
    }
}

fn run(seeds: std::ops::Range<u64>, records: u64, depth: u32) {
    for seed in seeds {
        let random = &mut Random(seed);
        let corpus = Corpus::random(random, records, 12);
        let field = FieldStatistics {
            records,
            length: records * 20,
        };
        let scorers: Vec<Bm25> = corpus
            .terms
            .iter()
            .map(|list| Bm25::new(1.0, field, &[list.len() as u64]))
            .collect();
        for _ in 0..12 {
            let shape = Shape::random(random, &corpus, depth);
            check(random, &shape, &corpus, &scorers);
            check(random, &shape, &corpus, &[TextScore; 12]);
        }
    }
}

#[test]
fn trees_of_operators_agree() {
    run(0..16, 700, 3);
}

#[test]
fn operators_over_terms_agree() {
    run(100..104, 6_000, 1);
}

/// A window of MaxScore was read only in part, although the block cursors had passed its end. So
/// the next window had bounds of later blocks, and records were missing among the best.
#[test]
fn bounds_are_those_of_the_window() {
    run(1000..1006, 700, 3);
    run(2000..2003, 6_000, 1);
}

#[test]
fn disjunctions_of_many_terms_agree() {
    let random = &mut Random(7);
    let corpus = Corpus::random(random, 2_000, 150);
    for count in [20, 64, 65, 150] {
        let shape = Shape::Any((0..count).map(Shape::Term).collect());
        check(random, &shape, &corpus, &[TextScore; 150]);
    }
}
