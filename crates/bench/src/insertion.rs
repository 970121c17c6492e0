//! Insertion into indexed collections by a single writer: documents per second in each tenth of the
//! run. The point is the rate at the end compared with the rate at the start. W2 and W3 use it. The
//! baseline is WiredTiger in process with the same keys and cache. It slows down by orders of
//! magnitude, so its time is limited.

use crate::client::Connection;
use crate::corpus::Corpus;
use crate::entries::{self, Entries};
use crate::error::BenchError;
use crate::load::{self, Feed};
use crate::measure::{Latencies, timed};
use crate::options::Options;
use crate::report::{Report, Row, Target};
use crate::rival::{self, RivalFolder};
use crate::server::Server;

/// Finds a document by one of its keys. Fails if it is not found.
pub type Find<'a> = &'a dyn Fn(&mut Connection, u64) -> Result<(), BenchError>;

/// An insertion workload.
pub struct InsertionWorkload<'a> {
    /// The name of the workload.
    pub workload: &'a str,
    /// The documents.
    pub corpus: &'a dyn Corpus,
    /// Their index entries, for the baseline.
    pub entries: &'a dyn Entries,
    /// Specifications for `createIndexes`.
    pub indexes: &'a [&'a str],
    /// The number of documents.
    pub documents: u64,
    /// The number of documents per batch.
    pub batch: u64,
    /// The find that runs between batches and at the end.
    pub find: Find<'a>,
    /// The target ratio of the last tenth to the first, and the target rate of the last tenth.
    pub targets: Option<(f64, f64)>,
}

/// The number of documents that are looked up at the end.
const SAMPLES: u64 = 100;

struct InsertionResult {
    tenths: Vec<f64>,
    finds: Latencies,
    hash: u64,
}

impl InsertionWorkload<'_> {
    /// Runs the workload.
    pub fn run(&self, options: &Options) -> Result<(), BenchError> {
        let ours = self.ours(options)?;
        let rival = self.baseline(options)?;
        Report {
            workload: self.workload,
            baseline: "WiredTiger in process, entries only",
            rows: self.rows(&ours, &rival),
            hash: ours.hash,
        }
        .print(options)
    }

    fn rows(&self, ours: &InsertionResult, rival: &[f64]) -> Vec<Row> {
        let tenth = |place: usize| {
            let name = format!("tenth {} of {}", place + 1, self.documents);
            let baseline = rival.get(place).copied();
            let row = Row::new(name, "documents/s", ours.tenths[place], baseline);
            match self.targets.filter(|_| place == 9) {
                Some((_, rate)) => row.with_target(Target::AtLeast(rate)),
                None => row,
            }
        };
        let mut rows: Vec<Row> = (0..10).map(tenth).collect();
        let last = |tenths: &[f64]| Some(tenths.last()? / tenths.first()?);
        let name = "last measured tenth over the first";
        let of_first = ours.tenths[9] / ours.tenths[0];
        let row = Row::new(name, "ratio", of_first, last(rival));
        rows.push(match self.targets {
            Some((part, _)) => row.with_target(Target::AtLeast(part)),
            None => row,
        });
        if ours.finds.count() > 0 {
            rows.extend(
                [(0.5, "p50"), (0.99, "p99"), (1.0, "longest")].map(|(part, word)| {
                    Row::new(
                        format!("a find between, {word}"),
                        "µs",
                        ours.finds.at(part),
                        None,
                    )
                }),
            );
        }
        rows
    }

    fn ours(&self, options: &Options) -> Result<InsertionResult, BenchError> {
        let server = Server::start(options)?;
        let mut connection = server.connect()?;
        for index in self.indexes {
            load::create_index(&mut connection, index)?;
        }
        eprintln!("inserting {} documents over the wire", self.documents);
        let mut finds = Vec::new();
        let between = |connection: &mut Connection, end: u64| {
            if let Some(every) = options
                .find_every
                .filter(|every| end.is_multiple_of(*every))
            {
                // A mixture of old, less old and recent documents.
                let number = end / every * (end / 2 + 1) % end;
                finds.push(timed(|| (self.find)(connection, number))?.0 * 1e6);
            }
            Ok(())
        };
        let feed = Feed::new(self.corpus, self.batch);
        let tenths = feed.by_tenths(&mut connection, self.documents, between)?;
        let hash = load::verify(&mut connection, self.corpus, self.documents)?;
        let samples = SAMPLES.min(self.documents);
        for place in 0..samples {
            (self.find)(&mut connection, place * self.documents / samples)?;
        }
        server.stop()?;
        Ok(InsertionResult {
            tenths,
            finds: Latencies::new(finds),
            hash,
        })
    }

    fn baseline(&self, options: &Options) -> Result<Vec<f64>, BenchError> {
        let seconds = options.rival_seconds;
        eprintln!("WiredTiger in process, the same keys, at most {seconds} s");
        let folder = RivalFolder::create(options)?;
        let arguments = [
            "entries".to_owned(),
            folder.argument(),
            options.memory_bytes.to_string(),
            self.batch.to_string(),
            self.documents.to_string(),
            seconds.to_string(),
            self.entries.tables().to_string(),
        ];
        let figures = rival::run(options, "wiredtiger", &arguments, |input| {
            entries::feed(self.entries, self.documents, input)
        })?;
        Ok(figures.map_or(Vec::new(), |item| item.series("tenth")))
    }
}
