//! W1: building a text index over documents that are already there.
//!
//! Measured is the whole `createIndexes` over the wire, durable at its end: the server is then
//! killed, started again, and must answer from the index what it answered before. The baseline is
//! `std::stable_sort` of the same words, run before and after, the mean of both.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::bson::{Document, Value};
use crate::calibration::stable_sort;
use crate::client::Connection;
use crate::corpus::Corpus;
use crate::corpus::natural::Natural;
use crate::corpus::words::Words;
use crate::error::BenchError;
use crate::load::{self, COLLECTION, DATABASE, Feed};
use crate::options::Options;
use crate::report::{HASH_START, Report, Row, hash, median, median_of_any};
use crate::server::Server;

const DOCUMENTS: u64 = 600_000;
const BATCH: u64 = 1_000;
const INDEX: &str = "body_text";
const QUERIES: u64 = 50;

/// A corpus and its bodies as text.
struct Bodies<'a> {
    corpus: &'a dyn Corpus,
    documents: u64,
    body: &'a dyn Fn(u64, &mut Vec<u8>),
    /// every document must be found by its longest word
    distinct: bool,
}

#[derive(Default)]
struct Measured {
    load_rate: Vec<f64>,
    build_seconds: Vec<f64>,
    index_bytes: Vec<f64>,
    query_ms: Vec<f64>,
    restart_seconds: Vec<f64>,
    sort_seconds: Vec<f64>,
    hash: u64,
}

pub fn run(options: &Options) -> Result<(), BenchError> {
    let documents = options.documents_of(DOCUMENTS);
    if let Some(folder) = &options.natural {
        let natural = Natural::read(folder, documents, options.seed)?;
        let body = |number: u64, out: &mut Vec<u8>| {
            out.extend_from_slice(natural.body(number).as_bytes());
        };
        let bodies = Bodies {
            corpus: &natural,
            documents: natural.documents(),
            body: &body,
            distinct: false,
        };
        return compare(options, "w1 natural text", &bodies);
    }
    let words = Words { seed: options.seed };
    let body = |number: u64, out: &mut Vec<u8>| words.body(number, out);
    compare(
        options,
        "w1",
        &Bodies {
            corpus: &words,
            documents,
            body: &body,
            distinct: true,
        },
    )
}

fn compare(options: &Options, workload: &str, bodies: &Bodies) -> Result<(), BenchError> {
    let mut found = Measured::default();
    for _ in 0..options.rounds {
        sort(options, bodies, &mut found)?;
        build(options, bodies, &mut found)?;
        sort(options, bodies, &mut found)?;
    }
    let sort_seconds = &found.sort_seconds;
    let sort_mean = sort_seconds.iter().sum::<f64>() / sort_seconds.len() as f64;
    let rows = vec![
        Row::new(
            format!("text index on {} documents", bodies.documents),
            "s",
            median(&found.build_seconds),
            median_of_any(sort_seconds).map(|_| sort_mean),
        ),
        Row::new(
            "loading them",
            "documents/s",
            median(&found.load_rate),
            None,
        ),
        Row::new(
            "size of the index",
            "bytes",
            median(&found.index_bytes),
            None,
        ),
        Row::new("a $text query", "ms", median(&found.query_ms), None),
        Row::new(
            "restart after SIGKILL",
            "s",
            median(&found.restart_seconds),
            None,
        ),
    ];
    let report = Report {
        workload,
        baseline: "std::stable_sort of the words",
        rows,
        hash: found.hash,
    };
    report.print(options)
}

fn sort(options: &Options, bodies: &Bodies, found: &mut Measured) -> Result<(), BenchError> {
    eprintln!("std::stable_sort of the same words");
    let sorted = stable_sort(options, bodies.documents, bodies.body)?;
    found.sort_seconds.extend(sorted.map(|one| one.seconds));
    Ok(())
}

fn build(options: &Options, bodies: &Bodies, found: &mut Measured) -> Result<(), BenchError> {
    let mut server = Server::start(options)?;
    let mut connection = server.connect()?;
    eprintln!("loading {} documents over the wire", bodies.documents);
    let all = (0, bodies.documents);
    let seconds = Feed::new(bodies.corpus, BATCH).insert(&mut connection, all)?;
    found.load_rate.push(bodies.documents as f64 / seconds);
    eprintln!("createIndexes {{body: \"text\"}}");
    let seconds = create_text_index(options, &server, &mut connection)?;
    eprintln!("  {seconds:.2} s");
    found.build_seconds.push(seconds);
    let statistics = connection.run(DATABASE, |one| one.string("collStats", COLLECTION))?;
    let index_bytes = statistics.number(&format!("indexSizes.{INDEX}"));
    found.index_bytes.push(index_bytes.unwrap_or(f64::NAN));
    let (answers, query_ms) = ask(&mut connection, bodies)?;
    found.query_ms.push(query_ms);
    found
        .restart_seconds
        .push(server.kill_and_restart()?.as_secs_f64());
    let mut connection = server.connect()?;
    let (again, _) = ask(&mut connection, bodies)?;
    if answers != again {
        return Err(BenchError::Server(
            "other answers after SIGKILL than before".into(),
        ));
    }
    found.hash = hash(
        load::verify(&mut connection, bodies.corpus, bodies.documents)?,
        &answers,
    );
    server.stop()
}

fn create_text_index(
    options: &Options,
    server: &Server,
    connection: &mut Connection,
) -> Result<f64, BenchError> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        if options.show {
            let mut watcher = server.connect()?;
            let done = &done;
            scope.spawn(move || show_progress(&mut watcher, done));
        }
        let start = Instant::now();
        let made = load::create_index(connection, &definition(options));
        let seconds = start.elapsed().as_secs_f64();
        done.store(true, Ordering::Release);
        made.map(|()| seconds)
    })
}

/// The index, as `createIndexes` takes it.
fn definition(options: &Options) -> String {
    let language = options.language.iter();
    let more = language.map(|name| format!(r#", "default_language": "{name}""#));
    let more: String = more.collect();
    format!(r#"{{"key": {{"body": "text"}}, "name": "{INDEX}"{more}}}"#)
}

/// Draws what `currentOp` tells of the build until it is done.
fn show_progress(connection: &mut Connection, done: &AtomicBool) {
    while !done.load(Ordering::Acquire) {
        let reply = connection.run("admin", |one| one.int32("currentOp", 1));
        // A server without an answer to show is no reason to end the measurement.
        if let Some(line) = reply.ok().and_then(progress_line) {
            eprint!("\r  {line:<76}");
        }
        thread::sleep(Duration::from_millis(100));
    }
    eprintln!();
}

/// The first operation under way that has progress to tell.
fn progress_line(reply: Document) -> Option<String> {
    let Some(Value::Array(operations)) = reply.get("inprog") else {
        return None;
    };
    operations.iter().find_map(|(_, operation)| {
        let Value::Document(operation) = operation else {
            return None;
        };
        let (done, total) = (
            operation.number("progress.done")?,
            operation.number("progress.total")?,
        );
        let Some(Value::String(message)) = operation.get("msg") else {
            return None;
        };
        let part = if total > 0.0 {
            (done / total).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let filled = (part * 30.0) as usize;
        let phase = message
            .split(" - ")
            .next()
            .unwrap_or(message)
            .trim_end_matches(':');
        let phase: String = phase.chars().take(34).collect();
        Some(format!(
            "[{}{}] {:>3.0}% {phase}",
            "#".repeat(filled),
            ".".repeat(30 - filled),
            part * 100.0
        ))
    })
}

/// Asks for the longest words of some documents. Returns a hash of the answers, as bytes, and the
/// median time of a query in milliseconds.
fn ask(connection: &mut Connection, bodies: &Bodies) -> Result<([u8; 8], f64), BenchError> {
    let mut sum = HASH_START;
    let mut milliseconds = Vec::new();
    let queries = QUERIES.min(bodies.documents);
    for place in 0..queries {
        let number = place * bodies.documents / queries;
        let Some(word) = longest_word(bodies, number) else {
            continue;
        };
        let start = Instant::now();
        let mut answer = search(connection, &word)?;
        milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        if bodies.distinct && !answer.iter().any(|(id, _)| *id == number) {
            let text = format!("$text does not find {word:?} in document {number}");
            return Err(BenchError::Server(text));
        }
        answer.sort_unstable();
        for (id, score) in answer {
            sum = hash(hash(sum, &id.to_le_bytes()), &score.to_le_bytes());
        }
    }
    Ok((sum.to_le_bytes(), median(&milliseconds)))
}

fn longest_word(bodies: &Bodies, number: u64) -> Option<String> {
    let mut body = Vec::new();
    (bodies.body)(number, &mut body);
    let text = String::from_utf8_lossy(&body);
    let plain = |word: &&str| word.chars().all(char::is_alphanumeric);
    text.split_whitespace()
        .filter(plain)
        .max_by_key(|word| word.len())
        .map(str::to_owned)
}

/// The ten best documents for a word, with the bits of their scores.
fn search(connection: &mut Connection, word: &str) -> Result<Vec<(u64, u64)>, BenchError> {
    let reply = connection.run(DATABASE, |one| {
        one.string("find", COLLECTION);
        one.document("filter", |filter| {
            filter.document("$text", |text| text.string("$search", word));
        });
        one.document("projection", |projection| {
            projection.document("score", |score| score.string("$meta", "textScore"));
        });
        one.document("sort", |sort| {
            sort.document("score", |score| score.string("$meta", "textScore"));
            sort.int32("_id", 1);
        });
        one.int32("limit", 10);
        one.boolean("singleBatch", true);
    })?;
    let Some(Value::Array(batch)) = reply.get("cursor.firstBatch") else {
        return Err(BenchError::Server("a reply without a batch".into()));
    };
    Ok(batch
        .iter()
        .filter_map(|(_, value)| id_and_score(value))
        .collect())
}

fn id_and_score(value: Value) -> Option<(u64, u64)> {
    let Value::Document(document) = value else {
        return None;
    };
    Some((
        document.number("_id")? as u64,
        document.number("score")?.to_bits(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson;

    #[test]
    fn progress_is_drawn_from_current_op() {
        let bytes = bson::built(|one| {
            one.array("inprog", |list| {
                list.document("0", |operation| operation.string("op", "command"));
                list.document("1", |operation| {
                    operation.string("msg", "Index Build: scanning collection - 300/600 50%");
                    operation.document("progress", |progress| {
                        progress.int32("done", 300);
                        progress.int64("total", 600);
                    });
                });
            });
        });
        let line = progress_line(Document::at(&bytes).unwrap()).unwrap();
        let bar = "#".repeat(15) + &".".repeat(15);
        assert_eq!(
            line,
            format!("[{bar}]  50% Index Build: scanning collection")
        );
    }
}
