//! The first read through an index after a minute of writing. The recent entries are already in the
//! index, or are added while the reader waits.

use std::time::{Duration, Instant};

use crate::bson::{self, Document, Value, Writer};
use crate::client::Connection;
use crate::corpus::Corpus;
use crate::corpus::registers::{INDEXES, Registers};
use crate::error::BenchError;
use crate::load::{self, Feed};
use crate::measure::timed;
use crate::options::Options;
use crate::report::{Row, Target, median};
use crate::server::Server;

const BATCH: u64 = 1_000;
const SECONDS: u64 = 60;
const ROUNDS: usize = 3;
const READS_AFTER: u64 = 30;
/// The indexed fields.
const FIELDS: [&str; 4] = ["price", "cashregisterid", "customerid", "dateandtime"];
const NAMES: [&str; 3] = ["price", "register", "date"];

/// Compares the first reads through three indexes with later reads, several times.
pub fn rows(options: &Options) -> Result<Vec<Row>, BenchError> {
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    let corpus = Registers { seed: options.seed };
    for index in INDEXES {
        load::create_index(&mut connection, index)?;
    }
    let writing = Duration::from_secs(options.seconds.unwrap_or(SECONDS));
    let (mut documents, mut firsts, mut later) = (0, Vec::new(), Vec::new());
    for round in 0..ROUNDS.max(options.rounds) {
        eprintln!("writing for {writing:?} into three indexes, then reads");
        let begin = Instant::now();
        while begin.elapsed() < writing {
            let end = documents + BATCH;
            Feed::new(&corpus, BATCH).insert(&mut connection, documents..end)?;
            documents = end;
        }
        // Each index is the first one in some round.
        for place in 0..INDEXES.len() {
            let index = (place + round) % INDEXES.len();
            firsts.push(read(&mut connection, &corpus, documents - 1, index)?);
        }
        for before in 2..2 + READS_AFTER.min(documents - 1) {
            let index = before as usize % INDEXES.len();
            later.push(read(&mut connection, &corpus, documents - before, index)?);
        }
    }
    load::check_count(&mut connection, documents)?;
    server.stop()?;
    let (longest, later) = (firsts.iter().copied().fold(0.0, f64::max), median(&later));
    let name =
        |which| format!("first read by each of 3 indexes after {writing:?} of writing, {which}");
    let row = |which, found| Row::new(name(which), "ms", found, Some(later));
    Ok(vec![
        row("median", median(&firsts)),
        row("longest", longest).with_target(Target::AtMost(50.0)),
    ])
}

/// Returns the milliseconds of a find through an index.
fn read(
    connection: &mut Connection,
    corpus: &Registers,
    number: u64,
    index: usize,
) -> Result<f64, BenchError> {
    let mut expected = Vec::new();
    corpus.batch(number, number + 1, &mut expected);
    let document = Document::from_prefix(&expected);
    let filter = bson::build_document(|filter| {
        for field in FIELDS {
            put(
                filter,
                field,
                document.as_ref().and_then(|it| it.get(field)),
            );
        }
    });
    let find = || load::find_by_index(connection, &filter, NAMES[index], &expected);
    Ok(timed(find)?.0 * 1e3)
}

fn put(filter: &mut Writer, field: &str, value: Option<Value<'_>>) {
    match value {
        Some(Value::Int32(number)) => filter.int32(field, number),
        Some(Value::Int64(number)) => filter.int64(field, number),
        Some(Value::Double(number)) => filter.double(field, number),
        _ => {}
    }
}
