//! A writing and a reading connection at full speed, alone and during an index build.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Concern, Connection, insert_message};
use crate::corpus::Corpus;
use crate::corpus::users::Users;
use crate::corpus::words::Words;
use crate::error::BenchError;
use crate::load::{self, COLLECTION, DATABASE, Feed, find_one};
use crate::options::Options;
use crate::random::Random;
use crate::report::{CaseResult, Row, Target};
use crate::server::Server;

/// A build and the collection that it runs on.
struct Build<'a> {
    name: &'a str,
    corpus: &'a dyn Corpus,
    documents: u64,
    index: &'a str,
    /// The target ratio of the writer's rate during the build.
    rate_target: Option<Target>,
}

const BATCH: u64 = 100;
const ALONE_SECONDS: u64 = 3;
const PAUSE: Target = Target::AtMost(250.0);

/// Builds an ordinary index on three fields.
pub fn build(options: &Options) -> Result<CaseResult, BenchError> {
    measure(
        options,
        &Build {
            name: "createIndexes",
            corpus: &Users { seed: options.seed },
            documents: options.documents_of(2_000_000),
            index: r#"{"key": {"user": 1, "age": 1, "x": 1}, "name": "built"}"#,
            rate_target: Some(Target::RatioAtLeast(0.5)),
        },
    )
}

/// Builds a text index, which takes longer. Documents that are written meanwhile must be in it.
pub fn text_build(options: &Options) -> Result<CaseResult, BenchError> {
    measure(
        options,
        &Build {
            name: "slow createIndexes",
            corpus: &Words { seed: options.seed },
            documents: options.documents_of(600_000),
            index: r#"{"key": {"body": "text"}, "name": "built"}"#,
            rate_target: None,
        },
    )
}

/// Start and end of each operation of a connection, in seconds.
type Operations = Vec<(f64, f64)>;

/// The time ranges without and with the build.
struct TimeRanges {
    alone: (f64, f64),
    building: (f64, f64),
}

fn measure(options: &Options, build: &Build) -> Result<CaseResult, BenchError> {
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    eprintln!("loading {} documents", build.documents);
    Feed::new(build.corpus, 1_000).insert(&mut connection, 0..build.documents)?;
    let name = build.name;
    eprintln!("writing and reading, alone and beside {name}");
    let (written, times) = run_during_build(options, &server, build, &write)?;
    let (read, read_times) = run_during_build(options, &server, build, &read)?;
    let documents = build.documents + written.len() as u64 * BATCH;
    load::check_count(&mut connection, documents)?;
    let hash = load::check_documents(&mut connection, build.corpus, build.documents)?;
    server.stop()?;
    let seconds = times.building.1 - times.building.0;
    let mut rows = rows("write", BATCH as f64, &written, &times, name);
    rows[0].target = build.rate_target;
    rows.extend(self::rows("read", 1.0, &read, &read_times, name));
    rows.push(Row::new(
        format!("{name}, beside a writer"),
        "s",
        seconds,
        None,
    ));
    Ok(CaseResult { rows, hash })
}

/// Compares rate and longest operation during the build with those without it.
fn rows(
    what: &str,
    each: f64,
    operations: &Operations,
    times: &TimeRanges,
    name: &str,
) -> Vec<Row> {
    let within = |(begin, end): (f64, f64)| {
        let overlaps = move |operation: &&(f64, f64)| operation.1 > begin && operation.0 < end;
        operations.iter().filter(overlaps)
    };
    let rate =
        |stretch: (f64, f64)| within(stretch).count() as f64 * each / (stretch.1 - stretch.0);
    let longest = |stretch: (f64, f64)| {
        let lengths = within(stretch).map(|(begin, end)| (end - begin) * 1e3);
        lengths.fold(0.0, f64::max)
    };
    let row = |title: String, unit, of: &dyn Fn((f64, f64)) -> f64| {
        Row::new(title, unit, of(times.building), Some(of(times.alone)))
    };
    vec![
        row(format!("{what}s beside {name}"), "documents/s", &rate),
        row(format!("longest {what} beside {name}"), "ms", &longest).with_target(PAUSE),
    ]
}

/// An operation of a connection. Receives its index.
type Work = dyn Fn(&Build, &mut Connection, u64) -> Result<(), BenchError> + Sync;

/// Runs a connection alone for some time, then builds and drops the index while it continues.
fn run_during_build(
    options: &Options,
    server: &Server,
    build: &Build,
    work: &Work,
) -> Result<(Operations, TimeRanges), BenchError> {
    let start = Instant::now();
    let now = || start.elapsed().as_secs_f64();
    let done = AtomicBool::new(false);
    let (mut worker, mut builder) = (server.connect()?, server.connect()?);
    thread::scope(|scope| {
        let done = &done;
        let operations = scope.spawn(move || -> Result<Operations, BenchError> {
            let mut operations = Operations::new();
            while !done.load(Ordering::Acquire) {
                let begin = now();
                work(build, &mut worker, operations.len() as u64)?;
                operations.push((begin, now()));
            }
            Ok(operations)
        });
        let alone = Duration::from_secs(options.seconds.unwrap_or(ALONE_SECONDS));
        thread::sleep(alone);
        let begin = now();
        let built = load::create_index(&mut builder, build.index);
        let end = now();
        done.store(true, Ordering::Release);
        let ended = || BenchError::Server("a connection's thread ended early".into());
        let operations = operations.join().unwrap_or_else(|_| Err(ended()))?;
        built?;
        drop_index(&mut builder)?;
        let times = TimeRanges {
            alone: (0.0, begin),
            building: (begin, end),
        };
        Ok((operations, times))
    })
}

fn drop_index(connection: &mut Connection) -> Result<(), BenchError> {
    let dropped = connection.run(DATABASE, |writer| {
        writer.string("dropIndexes", COLLECTION);
        writer.string("index", "built");
    });
    dropped.map(drop)
}

fn write(build: &Build, connection: &mut Connection, turn: u64) -> Result<(), BenchError> {
    let first = build.documents + turn * BATCH;
    let mut documents = Vec::new();
    build.corpus.batch(first, first + BATCH, &mut documents);
    let message = insert_message(DATABASE, COLLECTION, &documents, Concern::Acknowledged);
    connection.succeed(&message).map(drop)
}

fn read(build: &Build, connection: &mut Connection, turn: u64) -> Result<(), BenchError> {
    let number = Random::stream(1, turn).below(build.documents);
    let mut document = Vec::new();
    build.corpus.write(number, &mut document);
    find_one(connection, &load::by_id(&document), &document)
}
