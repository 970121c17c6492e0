//! Disk space: of indexes after all merges, compared with RocksDB with LZ4 on the same entries; and
//! of a collection after all documents were overwritten, compared with its size before.

use crate::client::{Connection, message};
use crate::corpus::Corpus;
use crate::corpus::registers::Registers;
use crate::corpus::users::Users;
use crate::corpus::weather::Weather;
use crate::entries::{self, Entries};
use crate::error::BenchError;
use crate::load::{self, COLLECTION, DATABASE, Feed};
use crate::options::Options;
use crate::report::{CaseResult, HASH_START, Report, Row, Target, hash};
use crate::rival::{self, RivalFolder};
use crate::server::Server;
use crate::settle::settle;

/// A corpus with its indexes and their entries.
struct Case<'a> {
    name: &'a str,
    corpus: &'a dyn Corpus,
    entries: &'a dyn Entries,
    /// Keys for `createIndexes`, in the order of the entries' tables.
    indexes: &'a [&'a str],
    documents: u64,
}

const BATCH: u64 = 1_000;
const USER_INDEXES: [&str; 2] = [r#"{"user": 1}"#, r#"{"age": 1, "x": 1}"#];
const INDEX_TARGET: Target = Target::RatioAtMost(0.7);
const OVERWRITTEN_TARGET: Target = Target::RatioAtMost(1.3);

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let weather = Weather::new(options.seed);
    let registers = Registers { seed: options.seed };
    let users = Users { seed: options.seed };
    let cases = [
        Case {
            name: "uris",
            corpus: &weather,
            entries: &weather,
            indexes: &[r#"{"URI": 1}"#],
            documents: options.documents_of(100_000),
        },
        Case {
            name: "registers",
            corpus: &registers,
            entries: &registers,
            indexes: &[
                r#"{"price": 1, "customerid": 1}"#,
                r#"{"cashregisterid": 1, "price": 1, "customerid": 1}"#,
                r#"{"price": 1, "dateandtime": 1, "customerid": 1}"#,
            ],
            documents: options.documents_of(2_000_000),
        },
        Case {
            name: "users",
            corpus: &users,
            entries: &users,
            indexes: &USER_INDEXES,
            documents: options.documents_of(2_000_000),
        },
    ];
    let (mut rows, mut sum) = (Vec::new(), HASH_START);
    let chosen = options.cases_or(&["uris", "registers", "users", "overwrite"]);
    for case in cases
        .iter()
        .filter(|case| chosen.iter().any(|name| name == case.name))
    {
        let result = indexes(options, case)?;
        rows.extend(result.rows);
        sum = hash(sum, &result.hash.to_le_bytes());
    }
    if chosen.iter().any(|name| name == "overwrite") {
        let (row, holds) = overwrite(options)?;
        rows.push(row);
        sum = hash(sum, &holds.to_le_bytes());
    }
    Report {
        workload: "space",
        baseline: "RocksDB with LZ4; of overwriting: fresh",
        rows,
        hash: sum,
    }
    .print(options)
}

/// Measures the indexes after insertion, when they are merged from folds, and after a bulk build.
fn indexes(options: &Options, case: &Case) -> Result<CaseResult, BenchError> {
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    create_all(&mut connection, case.indexes)?;
    eprintln!("{}: {} documents", case.name, case.documents);
    Feed::new(case.corpus, BATCH).insert(&mut connection, 0..case.documents)?;
    settle_and_compact(&mut connection, options)?;
    let merged = sizes(&mut connection, case)?;
    connection.run(DATABASE, |writer| {
        writer.string("dropIndexes", COLLECTION);
        writer.string("index", "*");
    })?;
    create_all(&mut connection, case.indexes)?;
    settle_and_compact(&mut connection, options)?;
    let built = sizes(&mut connection, case)?;
    let hash = load::verify(&mut connection, case.corpus, case.documents)?;
    server.stop()?;
    let rival = rocksdb(options, case)?;
    let row = |how: &str, place: usize, bytes: f64| {
        let name = format!("{} {place}, {how}", case.name);
        Row::new(name, "bytes", bytes, rival.get(place).copied()).with_target(INDEX_TARGET)
    };
    let both = |place| {
        [
            row("merged", place, merged[place]),
            row("built", place, built[place]),
        ]
    };
    Ok(CaseResult {
        rows: (0..case.indexes.len()).flat_map(both).collect(),
        hash,
    })
}

/// Waits for folds and merges, then runs `compact`, which an idle server does by itself.
fn settle_and_compact(connection: &mut Connection, options: &Options) -> Result<(), BenchError> {
    settle(connection, options)?;
    connection.run(DATABASE, |writer| writer.string("compact", COLLECTION))?;
    Ok(())
}

/// Creates the indexes index0, index1, …
fn create_all(connection: &mut Connection, keys: &[&str]) -> Result<(), BenchError> {
    keys.iter().enumerate().try_for_each(|(place, key)| {
        let index = format!(r#"{{"key": {key}, "name": "index{place}"}}"#);
        load::create_index(connection, &index)
    })
}

/// Returns the size of each index, including its entries in memory.
fn sizes(connection: &mut Connection, case: &Case) -> Result<Vec<f64>, BenchError> {
    let size = |place: usize| {
        // A read first, because entries in memory may not be created before.
        connection.run(DATABASE, |writer| {
            writer.string("find", COLLECTION);
            writer.string("hint", &format!("index{place}"));
            writer.int32("limit", 1);
        })?;
        load::statistic(connection, &format!("indexSizes.index{place}"))
    };
    (0..case.indexes.len()).map(size).collect()
}

fn rocksdb(options: &Options, case: &Case) -> Result<Vec<f64>, BenchError> {
    eprintln!("{}: RocksDB, the same entries", case.name);
    let folder = RivalFolder::create(options)?;
    let arguments = [folder.argument(), case.entries.tables().to_string()];
    let figures = rival::run(options, "rocksdb", &arguments, |input| {
        entries::feed(case.entries, case.documents, input)
    })?;
    Ok(figures.map_or(Vec::new(), |item| item.series("table")))
}

/// Replaces every document by another one of the same size and `_id`.
fn overwrite(options: &Options) -> Result<(Row, u64), BenchError> {
    let documents = options.documents_of(500_000);
    let (first, second) = (
        Users { seed: options.seed },
        Users {
            seed: options.seed + 1,
        },
    );
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    create_all(&mut connection, &USER_INDEXES)?;
    eprintln!("{documents} documents, then each replaced");
    Feed::new(&first, BATCH).insert(&mut connection, 0..documents)?;
    settle_and_compact(&mut connection, options)?;
    let fresh = load::statistic(&mut connection, "totalSize")?;
    for start in (0..documents).step_by(BATCH as usize) {
        let end = (start + BATCH).min(documents);
        connection.succeed(&replace_message(&second, start, end))?;
    }
    settle_and_compact(&mut connection, options)?;
    let after = load::statistic(&mut connection, "totalSize")?;
    let hash = load::verify(&mut connection, &second, documents)?;
    server.stop()?;
    let row = Row::new(
        "a collection after overwriting all",
        "bytes",
        after,
        Some(fresh),
    );
    Ok((row.with_target(OVERWRITTEN_TARGET), hash))
}

fn replace_message(corpus: &dyn Corpus, start: u64, end: u64) -> Vec<u8> {
    let mut document = Vec::new();
    message(DATABASE, |writer| {
        writer.string("update", COLLECTION);
        writer.array("updates", |list| {
            for (place, number) in (start..end).enumerate() {
                document.clear();
                corpus.write(number, &mut document);
                list.document(&place.to_string(), |update| {
                    update.document("q", |q| q.append_fields(&load::by_id(&document)));
                    update.document("u", |u| u.append_fields(&document));
                });
            }
        });
    })
}
