//! Concurrent writers: to different documents, and all to the same document.

use crate::client::{Concern, insert_message, message};
use crate::connections::{self, Load};
use crate::corpus::Corpus;
use crate::corpus::pairs::Pairs;
use crate::error::BenchError;
use crate::load::{self, COLLECTION, DATABASE, Feed};
use crate::measure::Pair;
use crate::options::Options;
use crate::report::{CaseResult, Row, Target};
use crate::server::Server;

const OPERATIONS: u64 = 40_000;
const ROUNDS: usize = 3;
const MANY: u64 = 8;
const CROWD: u64 = 64;
/// The target ratio to a single connection, on two cores.
const AT_LEAST: Target = Target::RatioAtLeast(1.6);

/// Inserts a document per message.
pub fn inserts(options: &Options) -> Result<CaseResult, BenchError> {
    let corpus = Pairs { seed: options.seed };
    let server = Server::start(options)?;
    let mut next = 0;
    let mut insert = |connections: u64| {
        let each = options.operations.unwrap_or(OPERATIONS) / connections;
        let first = next;
        next += each * connections;
        let insert_one = |number: u64| {
            let mut document = Vec::new();
            corpus.write(number, &mut document);
            insert_message(DATABASE, COLLECTION, &document, Concern::Acknowledged)
        };
        connections::send_concurrently(
            &server,
            deal(connections, each, &|turn| insert_one(first + turn)),
        )
    };
    let row = compared("insert one by one, 8 conn. over 1", &mut insert)?;
    let hash = load::verify(&mut server.connect()?, &corpus, next)?;
    server.stop()?;
    Ok(CaseResult {
        rows: vec![row.with_target(AT_LEAST)],
        hash,
    })
}

/// Runs an `$inc` per message. Consecutive updates affect different documents.
pub fn updates(options: &Options) -> Result<CaseResult, BenchError> {
    let operations = options.operations.unwrap_or(OPERATIONS);
    let server = loaded(options, operations)?;
    let mut update = |connections: u64| {
        let each = operations / connections;
        connections::send_concurrently(&server, deal(connections, each, &increment))
    };
    let row = compared("update documents of their own, 8 conn. over 1", &mut update)?;
    let done = ROUNDS as u64 * (operations + operations / MANY * MANY);
    let hash = check_sum(&server, operations, done)?;
    server.stop()?;
    Ok(CaseResult {
        rows: vec![row.with_target(AT_LEAST)],
        hash,
    })
}

/// Compares many connections that `$inc` the same document with as many that update different
/// documents.
pub fn same_document(options: &Options) -> Result<CaseResult, BenchError> {
    let each = (options.operations.unwrap_or(OPERATIONS) / CROWD).max(1);
    let server = loaded(options, CROWD)?;
    let update = |of: &dyn Fn(u64) -> u64| {
        let messages = (0..CROWD).map(|place| vec![increment(of(place)); each as usize]);
        connections::send_concurrently(&server, messages.collect())
    };
    let mut longest = Vec::new();
    let mut all_one = |_| {
        let load = update(&|_| 0)?;
        longest.push(load.latencies.longest() / 1e3);
        Ok(load.rate())
    };
    let pair = Pair::measure(ROUNDS, &mut all_one, |_| Ok(update(&|place| place)?.rate()))?;
    let hash = check_sum(&server, CROWD, 2 * ROUNDS as u64 * CROWD * each)?;
    server.stop()?;
    let longest = longest.into_iter().fold(0.0, f64::max);
    let rows = vec![
        pair.row("update one document over their own, 64 conn.", "1/s"),
        Row::new(
            "update one document, the longest, 64 conn.",
            "ms",
            longest,
            None,
        ),
    ];
    Ok(CaseResult { rows, hash })
}

/// Distributes messages 0, 1, … to the connections in turn.
fn deal(connections: u64, each: u64, message: &dyn Fn(u64) -> Vec<u8>) -> Vec<Vec<Vec<u8>>> {
    let hand = |place| {
        (0..each)
            .map(|turn| message(turn * connections + place))
            .collect()
    };
    (0..connections).map(hand).collect()
}

fn compared(
    name: &str,
    work: &mut dyn FnMut(u64) -> Result<Load, BenchError>,
) -> Result<Row, BenchError> {
    eprintln!("{name}");
    let work = std::cell::RefCell::new(work);
    let rate = |connections| Ok((work.borrow_mut())(connections)?.rate());
    let pair = Pair::measure(ROUNDS, |_| rate(MANY), |_| rate(1))?;
    Ok(pair.row(name, "1/s"))
}

/// Starts a server with this number of documents.
fn loaded(options: &Options, documents: u64) -> Result<Server, BenchError> {
    let corpus = Pairs { seed: options.seed };
    let server = Server::start(options)?;
    Feed::new(&corpus, 1_000).insert(&mut server.connect()?, 0..documents)?;
    Ok(server)
}

fn increment(number: u64) -> Vec<u8> {
    message(DATABASE, |writer| {
        writer.string("update", COLLECTION);
        writer.array("updates", |list| {
            list.document("0", |update| {
                update.document("q", |q| q.int32("_id", number as i32));
                update.document("u", |u| u.document("$inc", |inc| inc.int32("n", 1)));
            });
        });
    })
}

/// Every update must be counted: the sum over all documents must be that of the loaded values plus
/// the updates.
fn check_sum(server: &Server, documents: u64, added: u64) -> Result<u64, BenchError> {
    let loaded: u64 = (0..documents).map(|number| number % 1_000).sum();
    let mut connection = server.connect()?;
    let reply = connection.run(DATABASE, |writer| {
        writer.string("aggregate", COLLECTION);
        writer.document("cursor", |_| {});
        writer.array("pipeline", |stages| {
            stages.document("0", |stage| {
                stage.document("$group", |group| {
                    group.null("_id");
                    group.document("n", |sum| sum.string("$sum", "$n"));
                });
            });
        });
    })?;
    let sum = reply.number("cursor.firstBatch.0.n").unwrap_or_default() as u64;
    if sum == loaded + added {
        return Ok(sum);
    }
    Err(BenchError::Server(format!(
        "{added} updates added {} to {loaded}",
        sum as i64 - loaded as i64
    )))
}
