//! W4: inserts documents of 2,400 bytes, with and without an index on `name`. The baseline is
//! Windrow without the index in the same run. With `--concern none`, inserts do not wait for a
//! reply.

use crate::corpus::people::People;
use crate::error::BenchError;
use crate::load::{self, Feed};
use crate::options::Options;
use crate::report::{Report, Row, Target, median};
use crate::server::Server;

const DOCUMENTS: u64 = 1_000_000;
const BATCH: u64 = 1_000;
const INDEX: &str = r#"{"key": {"name": 1}, "name": "name_1"}"#;

struct Run {
    tenths: Vec<f64>,
    hash: u64,
}

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let corpus = People::new(options.seed);
    let documents = options.documents_of(DOCUMENTS).max(10);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        without.push(insert(options, &corpus, documents, false)?);
        with.push(insert(options, &corpus, documents, true)?);
    }
    let tenth = |runs: &[Run], place: usize| {
        median(&runs.iter().map(|run| run.tenths[place]).collect::<Vec<_>>())
    };
    let mut rows: Vec<Row> = (0..10)
        .map(|place| {
            let (ours, baseline) = (tenth(&with, place), tenth(&without, place));
            let name = format!("tenth {} of {documents}", place + 1);
            Row::new(name, "documents/s", ours, Some(baseline))
        })
        .collect();
    let whole = Row::new(
        "all",
        "documents/s",
        mean_rate(&rows, |row| Some(row.ours)),
        Some(mean_rate(&rows, |row| row.baseline)),
    )
    .with_target(Target::RatioAtLeast(0.8));
    rows.push(whole);
    let hash = with.last().map_or(0, |run| run.hash);
    Report {
        workload: "w4",
        baseline: "the same without the index",
        rows,
        hash,
    }
    .print(options)
}

/// Returns the total rate, given the rates of parts of equal size.
fn mean_rate(rows: &[Row], of: impl Fn(&Row) -> Option<f64>) -> f64 {
    rows.len() as f64
        / rows
            .iter()
            .filter_map(of)
            .map(|rate| 1.0 / rate)
            .sum::<f64>()
}

fn insert(
    options: &Options,
    corpus: &People,
    documents: u64,
    with_index: bool,
) -> Result<Run, BenchError> {
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    if with_index {
        load::create_index(&mut connection, INDEX)?;
    }
    eprintln!(
        "inserting {documents} documents {} index",
        if with_index { "with the" } else { "without" }
    );
    let feed = Feed::new(corpus, BATCH).with_concern(options.concern);
    let tenths = feed.by_tenths(&mut connection, documents, |_, _| Ok(()))?;
    let hash = load::verify(&mut connection, corpus, documents)?;
    server.stop()?;
    Ok(Run { tenths, hash })
}
