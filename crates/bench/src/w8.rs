//! W8: the server under a client that sends messages made beforehand.
//!
//! Insertion in batches of 1,000 over one connection stands beside WiredTiger in process, with the
//! same documents, the same cache, one transaction a batch, log and blocks with snappy. The other
//! cases, single inserts and finds by `_id`, show rates and latencies.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::client::{Connection, insert_message, message};
use crate::corpus::people::People;
use crate::corpus::readings::Readings;
use crate::corpus::{Corpus, object_id};
use crate::error::BenchError;
use crate::load::{self, COLLECTION, DATABASE};
use crate::options::Options;
use crate::random::Random;
use crate::report::{HASH_START, Report, Row, hash, median, median_of_any};
use crate::rival::{self, RivalFolder};
use crate::server::Server;

const SMALL_DOCUMENTS: u64 = 1_000_000;
const LARGE_DOCUMENTS: u64 = 300_000;
const BATCH: u64 = 1_000;

struct Case<'a> {
    name: &'a str,
    corpus: &'a dyn Corpus,
    documents: u64,
    batch: u64,
    journaled: bool,
}

/// What the connections of one case did together.
struct Load {
    seconds: f64,
    latencies_us: Vec<f64>,
}

pub fn run(options: &Options) -> Result<(), BenchError> {
    let small = Readings { seed: options.seed };
    let large = People::new(options.seed);
    let mut rows = Vec::new();
    let mut sum = HASH_START;
    for name in &options.cases {
        for &connections in &options.connections {
            let operations = options.operations;
            let own = |documents| options.documents_of(documents);
            let case = |corpus, documents, batch, journaled| Case {
                name,
                corpus,
                documents,
                batch,
                journaled,
            };
            let found = match name.as_str() {
                "small" => batches(
                    options,
                    &case(&small, own(SMALL_DOCUMENTS), BATCH, false),
                    connections,
                )?,
                "large" => batches(
                    options,
                    &case(&large, own(LARGE_DOCUMENTS), BATCH, false),
                    connections,
                )?,
                "single" => singles(options, &case(&small, operations, 1, false), connections)?,
                "journaled" => singles(options, &case(&small, operations, 1, true), connections)?,
                "find" => finds(
                    options,
                    &case(&small, own(SMALL_DOCUMENTS), BATCH, false),
                    connections,
                )?,
                _ => return Err(BenchError::Usage(format!("there is no case {name:?}"))),
            };
            sum = hash(sum, &found.1.to_le_bytes());
            rows.extend(found.0);
        }
    }
    Report {
        workload: "w8",
        baseline: "WiredTiger in process",
        rows,
        hash: sum,
    }
    .print(options)
}

/// Rows of the report and a hash of what the server holds.
type Found = (Vec<Row>, u64);

fn batches(options: &Options, case: &Case, connections: usize) -> Result<Found, BenchError> {
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
    Ok((
        vec![Row::new(
            name,
            "documents/s",
            median(&ours),
            median_of_any(&rival),
        )],
        sum,
    ))
}

fn singles(options: &Options, case: &Case, connections: usize) -> Result<Found, BenchError> {
    let (load, sum) = insert(options, case, connections)?;
    Ok((
        rates(&format!("{} inserts", case.name), connections, &load),
        sum,
    ))
}

fn finds(options: &Options, case: &Case, connections: usize) -> Result<Found, BenchError> {
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    eprintln!("loading {} documents", case.documents);
    load::insert(
        &mut connection,
        case.corpus,
        (0, case.documents),
        case.batch,
    )?;
    let mut random = Random::new(options.seed);
    let each = options.operations / connections as u64;
    let messages = (0..connections)
        .map(|_| {
            (0..each)
                .map(|_| find_message(random.below(case.documents)))
                .collect()
        })
        .collect();
    let load = send(&server, messages)?;
    let sum = load::verify(&mut connection, case.corpus, case.documents)?;
    server.stop()?;
    Ok((rates("find by _id", connections, &load), sum))
}

fn rates(what: &str, connections: usize, load: &Load) -> Vec<Row> {
    let mut sorted = load.latencies_us.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| sorted.get((sorted.len() as f64 * part) as usize).copied();
    let name = format!("{what}, {connections} conn.");
    let rate = sorted.len() as f64 / load.seconds;
    vec![
        Row::new(&name, "1/s", rate, None),
        Row::new(
            format!("{name}, p50"),
            "µs",
            at(0.5).unwrap_or(f64::NAN),
            None,
        ),
        Row::new(
            format!("{name}, p99"),
            "µs",
            at(0.99).unwrap_or(f64::NAN),
            None,
        ),
    ]
}

fn insert(options: &Options, case: &Case, connections: usize) -> Result<(Load, u64), BenchError> {
    let server = Server::start(options)?;
    eprintln!(
        "{}: {} documents over {connections} connections",
        case.name, case.documents
    );
    let load = send(&server, insert_messages(case, connections))?;
    let sum = load::verify(&mut server.connect()?, case.corpus, case.documents)?;
    server.stop()?;
    Ok((load, sum))
}

/// The messages of every connection: the batches dealt out in turn.
fn insert_messages(case: &Case, connections: usize) -> Vec<Vec<Vec<u8>>> {
    let mut dealt = vec![Vec::new(); connections];
    let mut documents = Vec::new();
    for (turn, first) in (0..case.documents).step_by(case.batch as usize).enumerate() {
        let end = (first + case.batch).min(case.documents);
        case.corpus.batch(first, end, &mut documents);
        let message = insert_message(DATABASE, COLLECTION, &documents, case.journaled);
        dealt[turn % connections].push(message);
    }
    dealt
}

fn find_message(number: u64) -> Vec<u8> {
    message(DATABASE, |one| {
        one.string("find", COLLECTION);
        one.document("filter", |filter| {
            filter.object_id("_id", object_id(number))
        });
        one.int32("limit", 1);
        one.boolean("singleBatch", true);
    })
}

/// Sends each list of messages over a connection of its own, all starting together.
fn send(server: &Server, messages: Vec<Vec<Vec<u8>>>) -> Result<Load, BenchError> {
    let barrier = Barrier::new(messages.len() + 1);
    // Connected beforehand: a connection that fails must not leave the others at the barrier.
    let connections = messages
        .iter()
        .map(|_| server.connect())
        .collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        let senders: Vec<_> = messages
            .into_iter()
            .zip(connections)
            .map(|(messages, mut connection)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    send_all(&mut connection, &messages)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let mut latencies_us = Vec::new();
        let mut failure = None;
        for sender in senders {
            match sender.join() {
                Ok(Ok(some)) => latencies_us.extend(some),
                Ok(Err(error)) => failure = Some(error),
                Err(_) => failure = Some(BenchError::Server("a sender ended early".into())),
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        failure.map_or(
            Ok(Load {
                seconds,
                latencies_us,
            }),
            Err,
        )
    })
}

fn send_all(connection: &mut Connection, messages: &[Vec<u8>]) -> Result<Vec<f64>, BenchError> {
    let send_one = |message: &Vec<u8>| {
        let start = Instant::now();
        connection.succeed(message)?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    };
    messages.iter().map(send_one).collect()
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
