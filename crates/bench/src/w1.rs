//! W1: building a text index over documents that are already there.
//!
//! Measured is the whole `createIndexes` over the wire, durable at its end: the server is then
//! killed, started again, and must answer from the index what it answered before. The baseline is
//! `std::stable_sort` of the same words, run before and after, the mean of both. Another is tantivy,
//! which has no documents to read and keeps nothing but the index.
//!
//! [`report`] measures what the build depends on and draws it.

mod bodies;
mod build;
mod inside;
mod progress;
mod queries;
pub mod report;
mod svg;

use crate::error::BenchError;
use crate::options::Options;
use crate::report::{Bar, Report, Row, median};
use bodies::Bodies;
use build::{Built, build};

pub fn run(options: &Options) -> Result<(), BenchError> {
    match &options.natural {
        Some(folder) => bodies::natural(options, folder, |bodies| {
            compare(options, "w1 natural text", bodies)
        }),
        None => bodies::random(options, |bodies| compare(options, "w1", bodies)),
    }
}

fn compare(options: &Options, workload: &str, bodies: &Bodies) -> Result<(), BenchError> {
    let (mut builds, mut sorts) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        sorts.extend(bodies.sort(options)?);
        builds.push(build(options, bodies)?);
        sorts.extend(bodies.sort(options)?);
    }
    let sorted = sorts.iter().map(|one| one.seconds).sum::<f64>() / sorts.len() as f64;
    let of = |field: fn(&Built) -> f64| median(&builds.iter().map(field).collect::<Vec<_>>());
    let alone = |name: &str, unit, field| Row::new(name, unit, of(field), None);
    let whole = Row::new(
        format!("text index on {} documents", bodies.documents),
        "s",
        of(|one| one.build_seconds),
        (!sorts.is_empty()).then_some(sorted),
    );
    let mut rows = vec![
        whole.barred(Bar::RatioAtMost(0.4)),
        alone("loading them", "documents/s", |one| one.load_rate),
        alone("size of the index", "bytes", |one| one.index_bytes),
        alone("a $text query", "ms", |one| one.query_ms),
        alone("restart after SIGKILL", "s", |one| one.restart_seconds).barred(Bar::AtMost(5.0)),
    ];
    if let Some(tantivy) = bodies.tantivy(options)? {
        let seconds = of(|one| one.build_seconds);
        let row = Row::new("the same, beside tantivy", "s", seconds, Some(tantivy));
        rows.push(row.barred(Bar::RatioAtMost(1.0)));
    }
    Report {
        workload,
        baseline: "std::stable_sort of the words",
        rows,
        hash: builds.last().map_or(0, |one| one.hash),
    }
    .print(options)
}
