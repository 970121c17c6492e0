//! Measures searches over postings in memory: `cargo run --release --example measure -p
//! windrow-search`.
//!
//! The number of records is that of the corpus of workload W7. The terms are random, with several
//! frequencies.
#![allow(clippy::unwrap_used, reason = "an example")]

use std::hint::black_box;
use std::time::Instant;

use windrow_interrupt::Uninterrupted;
use windrow_search::ids::SetIds;
use windrow_search::memory::{MemoryPosting, MemoryPostings};
use windrow_search::operators::{Conjunction, Disjunction, Phrase, PhraseTerm};
use windrow_search::{
    BestOptions, Bm25, FieldStatistics, IdSet, Node, Term, TextScore, TieOrder, best, count,
};
use windrow_search::{Scorer, operators::Filter};

const RECORDS: u64 = 216_420;
const ROUNDS: u32 = 30;
const CALLS: u32 = 5;

/// A generator of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }
}

/// Creates a term that about `records` records have. Each record has 60 to 260 tokens.
fn term(random: &mut Random, records: u64) -> MemoryPostings {
    let mut postings = Vec::new();
    for id in 0..RECORDS {
        let length = 60 + Random(id).below(200) as u32;
        if random.below(RECORDS) >= records {
            continue;
        }
        let mut frequency = 1;
        while frequency < 30 && random.below(3) == 0 {
            frequency += 1;
        }
        let mut positions: Vec<u32> = (0..frequency)
            .map(|_| random.below(u64::from(length)) as u32)
            .collect();
        positions.sort_unstable();
        positions.dedup();
        postings.push(MemoryPosting {
            id,
            frequency: positions.len() as u32,
            length,
            score: None,
            positions,
        });
    }
    MemoryPostings::new(postings)
}

/// Prints the smallest mean time of several rounds.
fn measure(name: &str, mut run: impl FnMut() -> u64) {
    let mut best = f64::INFINITY;
    let mut result = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            result = black_box(run());
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS));
    }
    println!("{name:44} {best:9.1} µs   {result}");
}

type Query<S> = Node<MemoryPostings, S, SetIds>;

fn measure_query<S: Scorer>(name: &str, ties: TieOrder, query: impl Fn() -> Query<S>) {
    for k in [10, 100] {
        let options = BestOptions::new(k, ties);
        let name = format!("{name}, top {k}");
        measure(&name, || {
            best(&mut query(), &options, &Uninterrupted)
                .unwrap()
                .postings_read
        });
    }
    let name = format!("{name}, count");
    measure(&name, || count(&mut query(), &Uninterrupted).unwrap());
}

fn main() {
    let random = &mut Random(1);
    let sizes = [60_000, 25_000, 5_000, 500];
    let lists = sizes.map(|size| term(random, size));
    let field = FieldStatistics {
        records: RECORDS,
        length: RECORDS * 160,
    };
    let scored = |number: usize| {
        let scorer = Bm25::new(1.0, field, &[sizes[number]]);
        Term::new(lists[number].clone(), scorer)
    };
    let text = |number: usize| Term::new(lists[number].clone(), TextScore);
    let low = TieOrder::LowestId;
    measure_query("term of 60,000", low, || Node::Term(Box::new(scored(0))));
    measure_query("$text term of 60,000", TieOrder::HighestId, || {
        Node::Term(Box::new(text(0)))
    });
    for some in [&[0, 1][..], &[1, 2], &[0, 3], &[0, 1, 2], &[0, 1, 2, 3]] {
        let name = some.iter().map(|one| sizes[*one].to_string());
        let name = name.collect::<Vec<_>>().join(", ");
        let terms = || some.iter().map(|one| scored(*one)).collect();
        measure_query(&format!("any of {name}"), low, || {
            Node::AnyTerm(Box::new(Disjunction::new(terms())))
        });
        let terms = || some.iter().map(|one| text(*one)).collect();
        measure_query(&format!("$text of {name}"), TieOrder::HighestId, || {
            Node::AnyTerm(Box::new(Disjunction::new(terms())))
        });
        let terms = || some.iter().map(|one| scored(*one)).collect();
        measure_query(&format!("all of {name}"), low, || {
            Node::AllTerms(Box::new(Conjunction::new(terms())))
        });
    }
    for slop in [0, 3] {
        measure_query(&format!("phrase of 60,000, 25,000 ~{slop}"), low, || {
            let terms = (0..2).map(|number| PhraseTerm {
                list: lists[number].clone(),
                position: number as u32,
                term: number,
            });
            let scorer = Bm25::new(1.0, field, &sizes[..2]);
            Node::Phrase(Box::new(Phrase::new(terms.collect(), slop, scorer)))
        });
    }
    let set: IdSet = (0..RECORDS).step_by(100).collect();
    measure_query("60,000 beside a filter of 1%", low, || {
        let filter = Node::Filter(Filter::new(set.clone().into_ids(), 0.0));
        let nodes = vec![Node::Term(Box::new(scored(0))), filter];
        Node::All(Box::new(Conjunction::new(nodes)))
    });
}
