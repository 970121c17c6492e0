//! The times of `$search` within one process: W7's queries on the layer below the server's
//! commands, without messages and sockets. The documents are the bodies on standard input, one a
//! line.
//!
//! Arguments: a folder for data, bytes of memory, the file of the queries (lines `KIND WORD
//! [WORD]`), seconds of a round. Prints `mean.KIND.TASK` and `median.KIND.TASK` in microseconds and
//! `count.KIND.N`, as `bench/rivals/tantivy/src/search` does.

mod load;

use std::sync::Arc;
use std::time::{Duration, Instant};

use load::Failure;
use windrow_collection::{BuildControl, Engine, EngineOptions, Namespace, Work};
use windrow_document::{ArrayBuf, Document, DocumentBuf, ObjectId, Value, array, doc};
use windrow_index::Definition;
use windrow_mql::filter::Environment;
use windrow_query::{Aggregate, Collections, EngineCollections, Pipeline, Uninterrupted};
use windrow_storage::RealDisk;

const DATABASE: &str = "w7";
const COLLECTION: &str = "documents";
/// The best of these rounds counts. Another one before them warms up.
const ROUNDS: usize = 3;
/// Any id: an index has one.
const INDEX_ID: ObjectId = ObjectId([7; 12]);

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, memory, queries, round] = arguments.as_slice() else {
        return Err("arguments: a folder, bytes of memory, queries, seconds".into());
    };
    let round = Duration::from_secs_f64(round.parse()?);
    let queries = std::fs::read_to_string(queries)?;
    let engine = build(folder.as_ref(), memory.parse()?)?;
    let database = Database {
        collections: Arc::new(EngineCollections::new(engine.clone())),
    };
    let lines: Vec<(&str, &str)> = queries
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    for chunk in lines.chunk_by(|one, other| one.0 == other.0) {
        let kind = chunk.first().map_or("", |(kind, _)| *kind);
        let of_kind: Vec<&str> = chunk.iter().map(|(_, words)| *words).collect();
        for (number, words) in of_kind.iter().enumerate() {
            let count = database.count(&Prepared::count(kind, words)?)?;
            println!("count.{kind}.{number} {count}");
        }
        for (task, prepare) in TASKS {
            let prepared = of_kind.iter().map(|words| prepare(kind, words));
            let prepared: Vec<Prepared> = prepared.collect::<Result<_, _>>()?;
            let times = best_round(&database, &prepared, round)?;
            println!("mean.{kind}.{task} {:.3}", mean(&times));
            println!("median.{kind}.{task} {:.3}", median(times));
        }
    }
    engine.close()?;
    Ok(())
}

/// Loads the documents and builds the search index.
fn build(folder: &std::path::Path, memory: u64) -> Result<Arc<Engine>, Failure> {
    let bodies = load::bodies()?;
    let disk = RealDisk::new(folder)?;
    let engine = Engine::open(Arc::new(disk), EngineOptions::with_memory(memory))?;
    let collection = engine.create(&Namespace::new(DATABASE, COLLECTION)?, Document::EMPTY)?;
    load::insert(&collection, &bodies)?;
    engine.fold()?;
    let fields = doc! { "body": { "type": "string", "analyzer": "lucene.standard" } };
    let specification = doc! {
        "v": 2, "key": { "_search": "search" }, "name": "$search.default",
        "searchIndex": {
            "id": (Value::ObjectId(INDEX_ID)), "name": "default", "version": 0,
            "createdAt": (Value::DateTime(0)),
            "definition": { "mappings": { "dynamic": false, "fields": fields } },
        },
    };
    let definition = Definition::parse(specification.as_document())
        .map_err(|error| format!("the definition of the index: {error:?}"))?;
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| {},
    };
    collection.create_indexes(vec![definition], &control)?;
    // The engine does this by itself after some seconds without writes.
    while engine.work(Work::Compact)? {}
    Ok(engine)
}

/// What is asked for, by the name of the figures.
type Task = fn(&str, &str) -> Result<Prepared, Failure>;

const TASKS: [(&str, Task); 3] = [
    ("top10", |kind, words| Prepared::top(kind, words, 10)),
    ("top100", |kind, words| {
        Prepared::top_with_count(kind, words, 100)
    }),
    ("count", Prepared::count),
];

/// A parsed pipeline.
struct Prepared(Pipeline);

impl Prepared {
    /// The ids and scores of the best documents.
    fn top(kind: &str, words: &str, limit: i32) -> Result<Prepared, Failure> {
        Prepared::parse(&array![
            { "$search": (Value::Document(operator(kind, words)?)) },
            { "$limit": limit },
            { "$project": { "score": { "$meta": "searchScore" } } },
        ])
    }

    /// These and the number of all documents.
    fn top_with_count(kind: &str, words: &str, limit: i32) -> Result<Prepared, Failure> {
        let project =
            doc! { "score": { "$meta": "searchScore" }, "found": "$$SEARCH_META.count.total" };
        Prepared::parse(&array![
            { "$search": (Value::Document(counted(kind, words)?)) },
            { "$limit": limit },
            { "$project": (Value::Document(project)) },
        ])
    }

    /// The number of documents.
    fn count(kind: &str, words: &str) -> Result<Prepared, Failure> {
        Prepared::parse(&array![{ "$searchMeta": (Value::Document(counted(kind, words)?)) }])
    }

    fn parse(stages: &ArrayBuf) -> Result<Prepared, Failure> {
        let parsed = Pipeline::parse(stages.as_array(), &Environment::default());
        parsed
            .map(Prepared)
            .map_err(|error| error.to_string().into())
    }
}

fn operator(kind: &str, words: &str) -> Result<DocumentBuf, Failure> {
    let text = |criteria: &str| doc! { "path": "body", "query": words, "matchCriteria": criteria };
    Ok(match kind {
        "term" | "or" => doc! { "text": (Value::Document(text("any"))) },
        "and" => doc! { "text": (Value::Document(text("all"))) },
        "phrase" => doc! { "phrase": { "path": "body", "query": words } },
        "fuzzy1" | "fuzzy2" => {
            let edits = if kind == "fuzzy1" { 1 } else { 2 };
            let fuzzy = doc! { "maxEdits": edits, "maxExpansions": 1000 };
            doc! { "text": { "path": "body", "query": words, "fuzzy": fuzzy } }
        }
        "prefix" | "wildcard" => doc! {
            "wildcard": { "path": "body", "query": words, "allowAnalyzedField": true },
        },
        other => return Err(format!("a query of the kind {other}").into()),
    })
}

/// An operator whose records are counted.
fn counted(kind: &str, words: &str) -> Result<DocumentBuf, Failure> {
    let mut search = operator(kind, words)?;
    search.push("count", Value::Document(doc! { "type": "total" }));
    Ok(search)
}

struct Database {
    collections: Arc<EngineCollections>,
}

impl Database {
    /// Runs a pipeline on a new snapshot and passes its rows to `take`.
    fn run(&self, prepared: &Prepared, mut take: impl FnMut(Document<'_>)) -> Result<(), Failure> {
        let source = self.collections.source(DATABASE, COLLECTION)?;
        let mut cursor = Aggregate::new(prepared.0.clone()).open(&source, &self.collections)?;
        while let Some(row) = cursor.next(&Uninterrupted)? {
            take(row.as_document());
        }
        Ok(())
    }

    fn count(&self, prepared: &Prepared) -> Result<i64, Failure> {
        let mut count = None;
        self.run(prepared, |row| {
            let found = row
                .get("count")
                .and_then(|count| count.as_document()?.get("total"));
            count = found.and_then(|total| total.as_whole());
        })?;
        count.ok_or_else(|| "a reply without a count".into())
    }
}

/// Returns the microseconds of each query in the round with the smallest mean.
fn best_round(
    database: &Database,
    queries: &[Prepared],
    length: Duration,
) -> Result<Vec<f64>, Failure> {
    run_round(database, queries, Duration::ZERO)?;
    let rounds: Result<Vec<_>, _> = (0..ROUNDS)
        .map(|_| run_round(database, queries, length))
        .collect();
    let best = rounds?
        .into_iter()
        .min_by(|one, other| mean(one).total_cmp(&mean(other)));
    best.ok_or_else(|| "no rounds".into())
}

/// Runs all queries in turn, each at least once. Returns the mean microseconds of each.
fn run_round(
    database: &Database,
    queries: &[Prepared],
    length: Duration,
) -> Result<Vec<f64>, Failure> {
    let mut sums = vec![0.0; queries.len()];
    let (begin, mut turns) = (Instant::now(), 0.0);
    while turns == 0.0 || begin.elapsed() < length {
        for (query, sum) in queries.iter().zip(&mut sums) {
            let begin = Instant::now();
            database.run(query, |row| {
                std::hint::black_box(row.as_bytes());
            })?;
            *sum += begin.elapsed().as_secs_f64() * 1e6;
        }
        turns += 1.0;
    }
    Ok(sums.into_iter().map(|sum| sum / turns).collect())
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    if times.len() % 2 == 1 {
        times[middle]
    } else {
        (times[middle - 1] + times[middle]) / 2.0
    }
}
