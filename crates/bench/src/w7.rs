//! W7: search in text, compared with tantivy in process.
//!
//! - `words`: terms, OR, AND and phrases. The documents have 1,000 characters of natural text.
//! - `patterns`: fuzzy words, prefixes and wildcards on W1's documents of random words.
//!
//! Both sides answer the same queries on one
//! thread, the best of three rounds. The mean time of an empty find in the same round is subtracted
//! from each request to Windrow, because tantivy's queries cross no socket.
//!
//! tantivy builds an index with positions with two threads, and its segments are not merged. Its
//! documents are in memory. Windrow's time of the build includes reading them from the collection.
//!
//! Windrow is measured three times: over the wire by `$search`, over the wire by `$text` on another
//! collection, and in process by `$search`. In process, no time is subtracted.
//!
//! `$text` finds a phrase as a part of the text, tantivy and `$search` find it as a sequence of
//! words. So "coffee shop" is in "coffee shopping" only for the former, and in "coffee-shop" only
//! for the latter. AND is written as phrases of one word, so it differs likewise: "cat" is in
//! "concatenate".

mod baseline;
mod interface;
mod queries;
mod results;
mod times;
mod writers;

use std::time::Duration;

use crate::corpus::Corpus;
use crate::corpus::natural::{Cut, Natural};
use crate::corpus::words::Words;
use crate::error::BenchError;
use crate::load::{self, Feed};
use crate::measure::timed;
use crate::options::Options;
use crate::report::{Report, Row, hash, median};
use crate::rival::Figures;
use crate::server::Server;
use crate::settle::settle;
use interface::{Interface, SEARCH_STAGE, TEXT_OPERATOR};
use queries::Queries;
use results::{CountComparison, QueryResults};
use times::{Schedule, Task, TaskTimes};

const DOCUMENTS: u64 = 200_000;
/// As in W1.
const PATTERN_DOCUMENTS: u64 = 600_000;
const CHARACTERS: usize = 1_000;
const BATCH: u64 = 1_000;
const ROUND_SECONDS: u64 = 1;
/// The folder of `bench/corpus.sh`, below `--rivals`.
const CORPUS: &str = "corpus";

/// Our side of the comparison, by one interface.
struct WindrowResults {
    suffix: &'static str,
    build_seconds: f64,
    index_bytes: f64,
    times: Vec<TaskTimes>,
    /// The times beside writers, and the documents that these inserted per second.
    beside_writers: Option<(Vec<TaskTimes>, f64)>,
    results: QueryResults,
    hash: u64,
}

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    for case in options.cases_or(&["words"]) {
        match case.as_str() {
            "words" => run_words(options)?,
            "patterns" => run_patterns(options)?,
            other => return Err(BenchError::Usage(format!("no case {other:?}"))),
        }
    }
    Ok(())
}

/// Terms, OR, AND and phrases on natural text.
fn run_words(options: &Options) -> Result<(), BenchError> {
    let corpus = corpus(options)?;
    eprintln!("drawing queries from {} documents", corpus.documents());
    let queries = Queries::draw(&corpus, options.queries, options.seed)?;
    let interfaces: &[&Interface] = &[&SEARCH_STAGE, &TEXT_OPERATOR];
    compare(options, "w7", interfaces, &corpus, &queries)
}

/// Fuzzy words, prefixes and wildcards on W1's random words, which have 15 million terms.
fn run_patterns(options: &Options) -> Result<(), BenchError> {
    let words = Words { seed: options.seed };
    let bodies = (0..options.documents_of(PATTERN_DOCUMENTS)).map(|number| {
        let mut body = Vec::new();
        words.body(number, &mut body);
        String::from_utf8_lossy(&body).into_owned()
    });
    let corpus = Natural::from_bodies(bodies);
    let queries = Queries::draw_patterns(&corpus, options.queries, options.seed)?;
    compare(options, "w7-patterns", &[&SEARCH_STAGE], &corpus, &queries)
}

/// Measures the interfaces, the baseline and Windrow in process.
fn compare(
    options: &Options,
    workload: &str,
    interfaces: &[&Interface],
    corpus: &Natural,
    queries: &Queries,
) -> Result<(), BenchError> {
    let interfaces = interfaces.iter();
    let ours: Vec<WindrowResults> = interfaces
        .map(|interface| ours(options, interface, corpus, queries))
        .collect::<Result<_, _>>()?;
    let written = baseline::write_queries(options, queries)?;
    let figures = baseline::run(options, corpus, &written, round(options))?;
    let inside = baseline::run_inside(options, corpus, &written, round(options))?;
    let (mut all, mut hashes) = (Vec::new(), 0);
    let mut counts = Vec::new();
    for one in &ours {
        let compared = one.results.compare(figures.as_ref())?;
        all.extend(rows(corpus.documents(), one, figures.as_ref(), &compared)?);
        hashes = hash(hashes ^ one.hash, &one.results.hash.to_le_bytes());
        counts.push((one.suffix, compared));
    }
    if let Some(inside) = &inside {
        all.extend(inside_rows(queries, inside, figures.as_ref())?);
    }
    Report {
        workload,
        baseline: &describe_baseline(figures.as_ref(), &counts),
        rows: all,
        hash: hashes,
    }
    .print(options)
}

fn round(options: &Options) -> Duration {
    Duration::from_secs(options.seconds.unwrap_or(ROUND_SECONDS))
}

/// An underscore separates words for tantivy, but not for MongoDB. Without underscores, both index
/// the same words.
fn corpus(options: &Options) -> Result<Natural, BenchError> {
    let own = options.rivals.join(CORPUS);
    let folder = options.natural.as_ref().unwrap_or(&own);
    if !folder.exists() {
        return Err(BenchError::Usage(format!(
            "{} does not exist (`make corpus`, or --natural)",
            folder.display()
        )));
    }
    let cut = Cut::Characters(CHARACTERS);
    Ok(Natural::read(folder, options.documents_of(DOCUMENTS), cut)?.without_underscores())
}

fn ours(
    options: &Options,
    interface: &Interface,
    corpus: &Natural,
    queries: &Queries,
) -> Result<WindrowResults, BenchError> {
    let documents = corpus.documents();
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    eprintln!("loading {documents} documents over the wire");
    Feed::new(corpus, BATCH).insert(&mut connection, 0..documents)?;
    let (build_seconds, ()) = timed(|| (interface.create_index)(&mut connection))?;
    eprintln!("built the index in {build_seconds:.2} s");
    settle(&mut connection, options)?;
    let index_bytes = (interface.index_bytes)(&mut connection)?;
    let results = results::gather(&mut connection, interface, queries)?;
    let round = round(options);
    let mut measure = |schedule| times::measure(&mut connection, interface, queries, schedule);
    let times = measure(Schedule::quiet(round))?;
    let beside_writers = if options.writers > 0 {
        eprintln!("the same beside {} writers", options.writers);
        let measure = || measure(Schedule::beside_writers(round));
        let (corpus, count) = (Repeated(corpus), options.writers);
        Some(writers::beside(
            &server, &corpus, documents, count, measure,
        )?)
    } else {
        None
    };
    let hash = load::check_documents(&mut connection, corpus, documents)?;
    server.stop()?;
    Ok(WindrowResults {
        suffix: interface.suffix,
        build_seconds,
        index_bytes,
        times,
        beside_writers,
        results,
        hash,
    })
}

/// The corpus without an end: its bodies again and again, with ids of their own.
struct Repeated<'a>(&'a Natural);

impl Corpus for Repeated<'_> {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        self.0.write_body(number, number % self.0.documents(), out);
    }
}

fn describe_baseline(figures: Option<&Figures>, counts: &[(&str, Vec<CountComparison>)]) -> String {
    let Some(segments) = figures.and_then(|figures| figures.get("segments").ok()) else {
        return "tantivy, not compiled".into();
    };
    let mut different = Vec::new();
    for (suffix, counts) in counts {
        different.extend(counts.iter().map(|item| {
            let (name, queries) = (item.kind.name(), item.queries);
            format!("{name}{suffix} {} of {queries}", item.different)
        }));
    }
    format!(
        "tantivy in process, {segments} segments. Queries with different counts: {}",
        different.join("; ")
    )
}

fn rows(
    documents: u64,
    ours: &WindrowResults,
    figures: Option<&Figures>,
    counts: &[CountComparison],
) -> Result<Vec<Row>, BenchError> {
    let figure = |name: &str| figures.map(|figures| figures.get(name)).transpose();
    let (build, size) = (figure("seconds")?, figure("bytes")?);
    let suffix = ours.suffix;
    let mut rows = vec![
        Row::new(
            format!("text index on {documents} documents{suffix}"),
            "s",
            ours.build_seconds,
            build,
        ),
        Row::new(
            format!("size of the index{suffix}"),
            "bytes",
            ours.index_bytes,
            size,
        ),
    ];
    rows.extend(counts.iter().map(|item| {
        let name = format!("documents found by {} queries{suffix}", item.kind.name());
        let baseline = item.baseline.map(|count| count as f64);
        Row::new(name, "documents", item.ours as f64, baseline)
    }));
    let empty: Vec<f64> = ours.times.iter().map(|item| item.empty_find_us).collect();
    let name = format!("an empty find, subtracted from each request{suffix}");
    rows.push(Row::new(name, "µs", median(&empty), None));
    rows.extend(time_rows(&ours.times, figures, "", suffix)?);
    if let Some((times, rate)) = &ours.beside_writers {
        rows.extend(time_rows(times, figures, "writing.", suffix)?);
        let baseline = figure("writing.rate")?;
        rows.push(Row::new(
            format!("inserted meanwhile{suffix}"),
            "documents/s",
            *rate,
            baseline,
        ));
    }
    Ok(rows)
}

/// The rows of Windrow in process.
fn inside_rows(
    queries: &Queries,
    inside: &Figures,
    baseline: Option<&Figures>,
) -> Result<Vec<Row>, BenchError> {
    let mut times = Vec::new();
    for kind in queries.kinds {
        for task in Task::ALL {
            let key = format!("{}.{}", kind.name(), task.key());
            times.push(TaskTimes {
                kind,
                task,
                mean_us: inside.get(&format!("mean.{key}"))?,
                median_us: inside.get(&format!("median.{key}"))?,
                empty_find_us: 0.0,
            });
        }
    }
    time_rows(&times, baseline, "", ", in process")
}

/// The rows of a series of measurements. The baseline's figures begin with `prefix`, the names of
/// the rows end with `suffix`.
fn time_rows(
    times: &[TaskTimes],
    figures: Option<&Figures>,
    prefix: &str,
    suffix: &str,
) -> Result<Vec<Row>, BenchError> {
    let figure = |name: String| figures.map(|figures| figures.get(&name)).transpose();
    let beside = if prefix.is_empty() { "" } else { ", writers" };
    let beside = format!("{beside}{suffix}");
    let mut rows = Vec::new();
    let (mut sum, mut baseline_sum) = (0.0, None);
    for item in times {
        let key = format!("{}.{}", item.kind.name(), item.task.key());
        let mean = figure(format!("{prefix}mean.{key}"))?;
        let median = figure(format!("{prefix}median.{key}"))?;
        let name = format!("{}, {}", item.kind.name(), item.task.title());
        rows.push(Row::new(
            format!("{name}{beside}"),
            "µs",
            item.mean_us,
            mean,
        ));
        let name = format!("{name}, median{beside}");
        rows.push(Row::new(name, "µs", item.median_us, median));
        sum += item.mean_us;
        baseline_sum = mean.map(|mean| mean + baseline_sum.unwrap_or(0.0));
    }
    rows.push(Row::new(
        format!("sum of the means{beside}"),
        "µs",
        sum,
        baseline_sum,
    ));
    Ok(rows)
}
