//! W1: builds a text index over existing documents.
//!
//! The time includes the whole `createIndexes` over the wire. The result must be durable: the
//! server is then killed and restarted, and its answers must not change. The baseline is
//! `std::stable_sort` of the same words, run before and after; their mean is used. A second
//! baseline is tantivy, which does not read stored documents and keeps only the index.
//!
//! [`report`] measures the factors of the build time and plots them.

mod bodies;
mod build;
mod inside;
mod progress;
mod queries;
pub mod report;
mod svg;

use crate::error::BenchError;
use crate::options::Options;
use crate::report::{Report, Row, Target, median};
use bodies::Bodies;
use build::{BuildResult, build};

/// Runs the workload.
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
    let sorted = sorts.iter().map(|item| item.seconds).sum::<f64>() / sorts.len() as f64;
    let of = |field: fn(&BuildResult) -> f64| median(&builds.iter().map(field).collect::<Vec<_>>());
    let alone = |name: &str, unit, field| Row::new(name, unit, of(field), None);
    let whole = Row::new(
        format!("text index on {} documents", bodies.documents),
        "s",
        of(|item| item.build_seconds),
        (!sorts.is_empty()).then_some(sorted),
    );
    let mut rows = vec![
        whole.with_target(Target::RatioAtMost(0.4)),
        alone("loading them", "documents/s", |item| item.load_rate),
        alone("size of the index", "bytes", |item| item.index_bytes),
        alone("a $text query", "ms", |item| item.query_ms),
        alone("restart after SIGKILL", "s", |item| item.restart_seconds)
            .with_target(Target::AtMost(5.0)),
    ];
    if let Some(tantivy) = bodies.tantivy(options)? {
        let seconds = of(|item| item.build_seconds);
        let row = Row::new("the same, beside tantivy", "s", seconds, Some(tantivy));
        rows.push(row.with_target(Target::RatioAtMost(1.0)));
    }
    Report {
        workload,
        baseline: "std::stable_sort of the words",
        rows,
        hash: builds.last().map_or(0, |item| item.hash),
    }
    .print(options)
}
