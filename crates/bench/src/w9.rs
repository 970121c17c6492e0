//! W9: queries, index builds, updates and deletes of a single client on a million documents. The
//! best of three times is used. The baseline is MongoDB's published time, scaled to this machine.
//! The module `queries` contains the queries.

mod expected_results;
mod queries;
mod sql_baselines;

use crate::bson::Document;
use crate::calibration::Calibration;
use crate::client::Connection;
use crate::corpus::users::Users;
use crate::error::BenchError;
use crate::load::{self, DATABASE, Feed};
use crate::measure::timed;
use crate::options::Options;
use crate::report::{Report, Row, hash};
use crate::server::Server;
use crate::{cursor, json};
use expected_results::{ExpectedResults, QueryParameters};
use queries::{Answer, QUERIES, Query};

const DOCUMENTS: u64 = 1_000_000;
const BATCH: u64 = 1_000;
const REPETITIONS: usize = 3;

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let documents = options.documents_of(DOCUMENTS);
    let mut calibration = Calibration::begin(options)?;
    let (times, hash) = ours(options, documents)?;
    calibration.sort_again(options)?;
    let scale = documents as f64 / DOCUMENTS as f64;
    let row = |(query, milliseconds): &Timed| {
        let published = calibration.time(query.published_ms * scale);
        Row::new(query.name, "ms", *milliseconds, published).with_target(query.target)
    };
    let rows = times.iter().map(row).collect();
    Report {
        workload: "w9",
        baseline: "M, scaled by std::stable_sort and documents",
        rows,
        hash,
    }
    .print(options)
}

/// A query and its best time in milliseconds.
type Timed = (&'static Query, f64);

/// Runs all chosen queries. Returns their times and a hash of the results.
fn ours(options: &Options, documents: u64) -> Result<(Vec<Timed>, u64), BenchError> {
    let corpus = Users { seed: options.seed };
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    eprintln!("loading {documents} documents");
    Feed::new(&corpus, BATCH).insert(&mut connection, 0..documents)?;
    let mut sum = load::verify(&mut connection, &corpus, documents)?;
    let expected = ExpectedResults::gather(&corpus, documents);
    let mut times = Vec::new();
    for query in QUERIES
        .iter()
        .filter(|query| query.is_chosen(&options.cases))
    {
        let (best, count) = best(&mut connection, &expected, query)?;
        eprintln!("  {:<44} {best:>10.3} ms", query.name);
        sum = hash(sum, &count.to_le_bytes());
        times.push((query, best));
    }
    server.stop()?;
    if options.cases.is_none() {
        let found = sql_baselines::run(options, &corpus, &expected, documents, REPETITIONS)?;
        sql_baselines::print(&found, &QUERIES.map(|query| query.name));
    }
    Ok((times, sum))
}

/// Returns the best time and the last result of a query.
fn best(
    connection: &mut Connection,
    expected: &ExpectedResults,
    query: &Query,
) -> Result<(f64, u64), BenchError> {
    let (mut best, mut count) = (f64::INFINITY, 0);
    for turn in (0..REPETITIONS).map(|number| expected.turn(number)) {
        for before in query.before {
            connection.succeed(&message(expected, before, turn)?)?;
        }
        let message = message(expected, query.command, turn)?;
        let (seconds, found) = timed(|| ask(connection, &message, query.answer))?;
        check(query, found, (query.expected)(expected, turn))?;
        best = best.min(seconds * 1e3);
        count = found;
    }
    Ok((best, count))
}

fn message(
    expected: &ExpectedResults,
    command: &str,
    turn: QueryParameters,
) -> Result<Vec<u8>, BenchError> {
    let command = json::document(&expected.fill(command, turn))?;
    Ok(crate::client::message_of(DATABASE, &command))
}

fn ask(connection: &mut Connection, message: &[u8], answer: Answer) -> Result<u64, BenchError> {
    match answer {
        Answer::Documents => cursor::drain(connection, message),
        Answer::Field(path) => number(connection.succeed(message)?, path),
        Answer::Elements(path) => cursor::elements(connection.succeed(message)?, path),
    }
}

fn number(reply: Document, path: &str) -> Result<u64, BenchError> {
    let found = reply.number(path).map(|number| number as u64);
    found.ok_or_else(|| BenchError::Server(format!("a reply without {path}")))
}

fn check(query: &Query, found: u64, expected: u64) -> Result<(), BenchError> {
    if found == expected {
        return Ok(());
    }
    Err(BenchError::Server(format!(
        "{}: {found} instead of {expected}",
        query.name
    )))
}
