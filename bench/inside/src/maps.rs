//! The terms of each document counted in one map or another.

use std::collections::{BTreeMap, HashMap};

use windrow_text::{Analyzer, DocumentTerms, Language, TextVersion};

/// Counts the terms of all documents, each document's for itself; the sum of distinct terms.
type Count = fn(&[String]) -> usize;

pub const ALL: [(&str, Count); 5] = [
    ("none", none),
    ("flat_of_the_product", product),
    ("standard_hash", hashed),
    ("standard_tree", tree),
    ("sorted_vector", sorted),
];

fn each(bodies: &[String], mut visit: impl FnMut(&mut Analyzer, &str)) {
    let mut analyzer = Analyzer::new(Language::ENGLISH, TextVersion::V3);
    bodies.iter().for_each(|body| visit(&mut analyzer, body));
}

/// Terms are only found: what is left is the map's.
fn none(bodies: &[String]) -> usize {
    let mut count = 0;
    each(bodies, |analyzer, body| {
        analyzer.terms(body, |_| count += 1);
    });
    count
}

fn product(bodies: &[String]) -> usize {
    let (mut terms, mut count) = (DocumentTerms::new(TextVersion::V3), 0);
    for body in bodies {
        terms.clear();
        terms.add(body, 1.0, Language::ENGLISH);
        count += terms.len();
    }
    count
}

fn hashed(bodies: &[String]) -> usize {
    let (mut terms, mut count) = (HashMap::<String, u32>::new(), 0);
    each(bodies, |analyzer, body| {
        terms.clear();
        analyzer.terms(body, |found| {
            *terms.entry(found.term.to_owned()).or_default() += 1;
        });
        count += terms.len();
    });
    count
}

fn tree(bodies: &[String]) -> usize {
    let mut count = 0;
    each(bodies, |analyzer, body| {
        let mut terms = BTreeMap::<String, u32>::new();
        analyzer.terms(body, |found| {
            *terms.entry(found.term.to_owned()).or_default() += 1;
        });
        count += terms.len();
    });
    count
}

fn sorted(bodies: &[String]) -> usize {
    let mut count = 0;
    each(bodies, |analyzer, body| {
        let (mut bytes, mut places) = (String::new(), Vec::new());
        analyzer.terms(body, |found| {
            let start = bytes.len();
            bytes.push_str(found.term);
            places.push(start..bytes.len());
        });
        places.sort_unstable_by_key(|place| &bytes[place.clone()]);
        places.dedup_by_key(|place| &bytes[place.clone()]);
        count += places.len();
    });
    count
}
