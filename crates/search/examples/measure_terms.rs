//! Measures walks over terms in memory: `cargo run --release --example measure_terms -p
//! windrow-search`.
#![allow(clippy::unwrap_used, reason = "an example")]

use std::time::Instant;

use windrow_search::automaton::{Automaton, Dfa, Fuzzy, Prefix, Walk};
use windrow_search::memory::MemoryTerms;

const TERMS: u64 = 2_000_000;
const ROUNDS: u32 = 5;

/// Returns a word of 4 to 12 letters.
fn word(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut letter = || {
        state ^= state >> 29;
        state = state
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
            .wrapping_add(number);
        (state >> 40) % 26
    };
    let length = 4 + letter() % 9;
    (0..length)
        .map(|_| (b'a' + letter() as u8) as char)
        .collect()
}

fn measure<A: Automaton>(name: &str, automaton: &A, terms: &MemoryTerms) {
    let mut best = f64::INFINITY;
    let (mut found, mut visited) = (0, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut walk = Walk::new(automaton, terms.clone());
        found = 0;
        while walk.next().is_some() {
            found += 1;
        }
        visited = walk.visited();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("{name:24} {best:8.2} ms   {found} found, {visited} visited");
}

fn main() {
    let terms = MemoryTerms::new((0..TERMS).map(|number| (word(number), 1)));
    for number in [1, 2, 3] {
        let query = word(number);
        for edits in 1..=2 {
            let fuzzy = Fuzzy::new(&query, edits, 0).unwrap();
            measure(&format!("{query}~{edits}"), &fuzzy, &terms);
        }
        let fuzzy = Fuzzy::new(&query, 2, 2).unwrap();
        measure(&format!("{query}~2, prefix 2"), &fuzzy, &terms);
    }
    measure("ab*", &Prefix::new("ab"), &terms);
    measure("ab?d*f", &Dfa::wildcard("ab?d*f").unwrap(), &terms);
    measure("*xyz", &Dfa::wildcard("*xyz").unwrap(), &terms);
}
