//! W2: one writer, documents of 100 URIs each, a multikey index on them: 100 keys in no order a
//! document. What counts is the speed at the end against the speed at the start.
//!
//! The baseline is WiredTiger in process, fed the same keys with the same cache. It slows down by
//! orders of magnitude, so it has a limit of time; its last figure stands for the rest.

use crate::bson::{Document, Value};
use crate::client::Connection;
use crate::corpus::Corpus;
use crate::corpus::weather::Weather;
use crate::error::BenchError;
use crate::load::{self, COLLECTION, DATABASE};
use crate::options::Options;
use crate::report::{Report, Row};
use crate::rival::{self, RivalFolder};
use crate::server::Server;

const DOCUMENTS: u64 = 200_000;
const BATCH: u64 = 100;
const SAMPLES: u64 = 100;

pub fn run(options: &Options) -> Result<(), BenchError> {
    let corpus = Weather::new(options.seed);
    let documents = options.documents_of(DOCUMENTS).max(10);
    let (tenths, hash) = ours(options, &corpus, documents)?;
    let rival = baseline(options, &corpus, documents)?;
    let mut rows: Vec<Row> = (0..10)
        .map(|place| {
            let name = format!("tenth {} of {documents}", place + 1);
            Row::new(
                name,
                "documents/s",
                tenths[place],
                rival.get(place).copied(),
            )
        })
        .collect();
    let last = |tenths: &[f64]| Some(tenths.last()? / tenths.first()?);
    let name = "last measured tenth over the first";
    rows.push(Row::new(name, "ratio", tenths[9] / tenths[0], last(&rival)));
    Report {
        workload: "w2",
        baseline: "WiredTiger in process, entries only",
        rows,
        hash,
    }
    .print(options)
}

fn ours(
    options: &Options,
    corpus: &Weather,
    documents: u64,
) -> Result<(Vec<f64>, u64), BenchError> {
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    load::create_index(&mut connection, "URI_1", |key| key.int32("URI", 1), |_| {})?;
    eprintln!("inserting {documents} documents of 100 URIs over the wire");
    let tenths = load::insert_by_tenths(&mut connection, corpus, documents, BATCH)?;
    let hash = load::verify(&mut connection, corpus, documents)?;
    verify_index(&mut connection, corpus, documents)?;
    server.stop()?;
    Ok((tenths, hash))
}

/// Some documents must be found by one of their URIs, by the index.
fn verify_index(
    connection: &mut Connection,
    corpus: &Weather,
    documents: u64,
) -> Result<(), BenchError> {
    let mut bytes = Vec::new();
    for place in 0..SAMPLES.min(documents) {
        let number = place * documents / SAMPLES.min(documents);
        corpus.batch(number, number + 1, &mut bytes);
        let Some(document) = Document::at(&bytes) else {
            continue;
        };
        let Some(Value::String(uri)) = document.get("URI.57") else {
            continue;
        };
        let reply = connection.run(DATABASE, |one| {
            one.string("find", COLLECTION);
            one.document("filter", |filter| filter.string("URI", uri));
            one.string("hint", "URI_1");
        })?;
        let Some(Value::Array(batch)) = reply.get("cursor.firstBatch") else {
            return Err(BenchError::Server("a reply without a batch".into()));
        };
        if !batch
            .iter()
            .any(|(_, found)| found == Value::Document(document))
        {
            return Err(BenchError::Server(format!(
                "{uri} does not find document {number}"
            )));
        }
    }
    Ok(())
}

fn baseline(options: &Options, corpus: &Weather, documents: u64) -> Result<Vec<f64>, BenchError> {
    eprintln!(
        "WiredTiger in process, the same keys, at most {} s",
        options.rival_seconds
    );
    let folder = RivalFolder::create(options)?;
    let arguments = [
        "multikey".to_owned(),
        folder.argument(),
        options.memory_bytes.to_string(),
        BATCH.to_string(),
        documents.to_string(),
        options.rival_seconds.to_string(),
    ];
    let figures = rival::run(options, "wiredtiger", &arguments, |input| {
        load::feed(corpus, documents, input)
    })?;
    Ok(figures.map_or(Vec::new(), |one| one.series("tenth")))
}
