//! W8: the server's throughput with precomputed messages. Insertion in batches of 1,000 over one
//! connection is compared with WiredTiger in process, with the same documents and cache, a
//! transaction per batch, and snappy for log and blocks. Single inserts and finds by `_id` are
//! compared with MongoDB's published rates and latencies, scaled to this machine. Logins have no
//! baseline.

mod logins;

use crate::calibration::Calibration;
use crate::client::{Concern, insert_message, message};
use crate::connections::{self, Load};
use crate::corpus::people::People;
use crate::corpus::readings::Readings;
use crate::corpus::{Corpus, object_id};
use crate::error::BenchError;
use crate::load::{self, COLLECTION, DATABASE, Feed};
use crate::options::Options;
use crate::random::Random;
use crate::report::{CaseResult, HASH_START, Report, Row, hash, median, median_of_any};
use crate::rival::{self, RivalFolder};
use crate::server::Server;

const SMALL_DOCUMENTS: u64 = 1_000_000;
const LARGE_DOCUMENTS: u64 = 300_000;
const BATCH: u64 = 1_000;
const OPERATIONS: u64 = 100_000;

struct Case<'a> {
    name: &'a str,
    corpus: &'a dyn Corpus,
    documents: u64,
    batch: u64,
    concern: Concern,
}

/// Figures of `M`: operations per second and a latency.
struct Published {
    case: &'static str,
    connections: usize,
    rate: f64,
    /// The quantile, and its latency in microseconds.
    latency: Option<(f64, f64)>,
}

const fn published(
    case: &'static str,
    connections: usize,
    rate: f64,
    latency: Option<(f64, f64)>,
) -> Published {
    Published {
        case,
        connections,
        rate,
        latency,
    }
}

const PUBLISHED: [Published; 8] = [
    published("find", 1, 18_200.0, Some((0.5, 33.0))),
    published("find", 8, 37_000.0, None),
    published("find", 64, 37_600.0, Some((0.99, 5_300.0))),
    published("single", 1, 24_200.0, None),
    published("single", 8, 32_900.0, None),
    published("single", 64, 31_700.0, None),
    published("journaled", 1, 3_700.0, None),
    published("journaled", 64, 23_700.0, None),
];

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let cases = options.cases_or(&["small", "large"]);
    let scaled = cases.iter().any(|name| is_published(name));
    let mut calibration = scaled.then(|| Calibration::begin(options)).transpose()?;
    let mut found = Vec::new();
    for name in &cases {
        for &connections in &options.connections {
            found.push(case(options, name, connections)?);
        }
    }
    if let Some(calibration) = &mut calibration {
        calibration.sort_again(options)?;
    }
    let rows = |result: &W8Result| match &result.measured {
        Measured::Rows(rows) => rows.clone(),
        Measured::Operations(load) => rates(result, load, calibration.as_ref()),
    };
    Report {
        workload: "w8",
        baseline: "WiredTiger in process; M for single operations",
        rows: found.iter().flat_map(rows).collect(),
        hash: found
            .iter()
            .fold(HASH_START, |sum, item| hash(sum, &item.hash.to_le_bytes())),
    }
    .print(options)
}

/// The result of a case with a number of connections.
struct W8Result {
    case: String,
    connections: usize,
    measured: Measured,
    /// A hash of the server's content.
    hash: u64,
}

enum Measured {
    Rows(Vec<Row>),
    Operations(Load),
}

fn is_published(case: &str) -> bool {
    PUBLISHED.iter().any(|known| known.case == case)
}

fn case(options: &Options, name: &str, connections: usize) -> Result<W8Result, BenchError> {
    let small = Readings::growing(options.seed);
    let large = People::new(options.seed);
    let written = Concern::Acknowledged;
    let case = |corpus, documents, batch, concern| Case {
        name,
        corpus,
        documents,
        batch,
        concern,
    };
    let smalls = case(
        &small,
        options.documents_of(SMALL_DOCUMENTS),
        BATCH,
        written,
    );
    let operations = options.operations.unwrap_or(OPERATIONS);
    let (measured, hash) = match name {
        "small" => batches(options, &smalls, connections)?,
        "small-journaled" => {
            let journaled = case(&small, smalls.documents, BATCH, Concern::Journaled);
            batches(options, &journaled, connections)?
        }
        "large" => {
            let documents = options.documents_of(LARGE_DOCUMENTS);
            batches(
                options,
                &case(&large, documents, BATCH, written),
                connections,
            )?
        }
        "single" => singles(options, &case(&small, operations, 1, written), connections)?,
        "journaled" => singles(
            options,
            &case(&small, operations, 1, Concern::Journaled),
            connections,
        )?,
        "find" => finds(options, &smalls, connections)?,
        "login" => {
            let CaseResult { rows, hash } = logins::run(options, connections)?;
            (Measured::Rows(rows), hash)
        }
        _ => return Err(BenchError::Usage(format!("there is no case {name:?}"))),
    };
    Ok(W8Result {
        case: name.to_owned(),
        connections,
        measured,
        hash,
    })
}

fn batches(
    options: &Options,
    case: &Case,
    connections: usize,
) -> Result<(Measured, u64), BenchError> {
    let (mut ours, mut rival) = (Vec::new(), Vec::new());
    let mut sum = 0;
    for _ in 0..options.rounds {
        if connections == 1 {
            rival.extend(baseline(options, case)?);
        }
        let (load, hash) = insert(options, case, connections)?;
        ours.push(case.documents as f64 / load.seconds);
        eprintln!("  {:.0} documents/s", case.documents as f64 / load.seconds);
        sum = hash;
    }
    let name = format!("insert {} by {BATCH}, {connections} conn.", case.name);
    let row = Row::new(name, "documents/s", median(&ours), median_of_any(&rival));
    Ok((Measured::Rows(vec![row]), sum))
}

fn singles(
    options: &Options,
    case: &Case,
    connections: usize,
) -> Result<(Measured, u64), BenchError> {
    let (load, sum) = insert(options, case, connections)?;
    Ok((Measured::Operations(load), sum))
}

fn finds(
    options: &Options,
    case: &Case,
    connections: usize,
) -> Result<(Measured, u64), BenchError> {
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    eprintln!("loading {} documents", case.documents);
    Feed::new(case.corpus, case.batch).insert(&mut connection, 0..case.documents)?;
    let mut random = Random::new(options.seed);
    let each = options.operations.unwrap_or(OPERATIONS) / connections as u64;
    let messages = (0..connections)
        .map(|_| {
            (0..each)
                .map(|_| find_message(random.below(case.documents)))
                .collect()
        })
        .collect();
    let load = connections::send_concurrently(&server, messages)?;
    let sum = load::verify(&mut connection, case.corpus, case.documents)?;
    server.stop()?;
    Ok((Measured::Operations(load), sum))
}

/// Compares the rate with that of `M`, and shows latencies.
fn rates(found: &W8Result, load: &Load, calibration: Option<&Calibration>) -> Vec<Row> {
    let known = PUBLISHED
        .iter()
        .find(|known| known.case == found.case && known.connections == found.connections);
    let rate = known.and_then(|known| calibration?.rate(known.rate));
    let latency = |part: f64| {
        let (_, published) = known?.latency.filter(|(known, _)| *known == part)?;
        calibration?.time(published)
    };
    let what = match found.case.as_str() {
        "find" => "find by _id".to_owned(),
        case => format!("{case} inserts"),
    };
    let name = format!("{what}, {} conn.", found.connections);
    let latencies = [(0.5, "p50"), (0.99, "p99")].map(|(part, word)| {
        let ours = load.latencies.at(part);
        Row::new(format!("{name}, {word}"), "µs", ours, latency(part))
    });
    let mut rows = vec![Row::new(&name, "1/s", load.rate(), rate)];
    rows.extend(latencies);
    rows
}

fn insert(options: &Options, case: &Case, connections: usize) -> Result<(Load, u64), BenchError> {
    let server = Server::start(options)?;
    eprintln!(
        "{}: {} documents over {connections} connections",
        case.name, case.documents
    );
    let load = connections::send_concurrently(&server, insert_messages(case, connections))?;
    let sum = load::verify(&mut server.connect()?, case.corpus, case.documents)?;
    server.stop()?;
    Ok((load, sum))
}

/// The messages of all connections. Batches are distributed in turn.
fn insert_messages(case: &Case, connections: usize) -> Vec<Vec<Vec<u8>>> {
    let mut dealt = vec![Vec::new(); connections];
    let mut documents = Vec::new();
    for (turn, first) in (0..case.documents).step_by(case.batch as usize).enumerate() {
        let end = (first + case.batch).min(case.documents);
        case.corpus.batch(first, end, &mut documents);
        let message = insert_message(DATABASE, COLLECTION, &documents, case.concern);
        dealt[turn % connections].push(message);
    }
    dealt
}

fn find_message(number: u64) -> Vec<u8> {
    message(DATABASE, |writer| {
        writer.string("find", COLLECTION);
        writer.document("filter", |filter| {
            filter.object_id("_id", object_id(number))
        });
        writer.int32("limit", 1);
        writer.boolean("singleBatch", true);
    })
}

fn baseline(options: &Options, case: &Case) -> Result<Option<f64>, BenchError> {
    let folder = RivalFolder::create(options)?;
    let arguments = [
        "insert".to_owned(),
        folder.argument(),
        options.memory_bytes.to_string(),
        case.batch.to_string(),
    ];
    eprintln!(
        "{}: {} documents, WiredTiger in process",
        case.name, case.documents
    );
    let figures = rival::run(options, "wiredtiger", &arguments, |input| {
        load::feed(case.corpus, case.documents, input)
    })?;
    let Some(figures) = figures else {
        return Ok(None);
    };
    let rate = case.documents as f64 / figures.get("seconds")?;
    eprintln!("  {rate:.0} documents/s");
    Ok(Some(rate))
}
