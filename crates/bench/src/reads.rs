//! Reads through a secondary index: single documents, ranges, and the first read after many writes.
//! The baseline is the same read by `_id`, in turn.

mod first;

use crate::bson::{self, Writer};
use crate::client::{Connection, message};
use crate::corpus::Corpus;
use crate::corpus::pairs::Pairs;
use crate::cursor;
use crate::error::BenchError;
use crate::load::{self, COLLECTION, DATABASE, Feed};
use crate::measure::{Pair, median_us, timed};
use crate::options::Options;
use crate::random::Random;
use crate::report::{Report, Row, Target};
use crate::server::Server;
use crate::settle::settle;

const DOCUMENTS: u64 = 5_000_000;
const BATCH: u64 = 1_000;
const INDEX: &str = r#"{"key": {"key": 1}, "name": "key_1"}"#;
const ROUNDS: usize = 5;
const LOOKUPS: usize = 2_000;
/// The number of runs of an index in addition to the merged one.
const RUNS_MORE: f64 = 7.0;

struct Reads<'a> {
    options: &'a Options,
    server: Server,
    connection: Connection,
    corpus: Pairs,
    documents: u64,
}

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let mut reads = Reads::load(options)?;
    let mut rows = Vec::new();
    let merged = reads.sections_row("sections, merged")?;
    rows.push(merged);
    let row = reads.lookups("find by key over by _id, merged")?;
    rows.push(row.with_target(Target::RatioAtMost(1.5)));
    rows.push(reads.scans("count of a range", Reads::count)?);
    let row = reads.scans("count of a range with a test on the keys", Reads::tested)?;
    rows.push(row);
    let row = reads.scans("largest key of a range, by reading all", Reads::largest)?;
    rows.push(row);
    rows.push(reads.scans("covered find of a range", Reads::covered)?);
    reads.add_runs()?;
    rows.push(reads.sections_row("sections, after more insertion")?);
    let row = reads.lookups("find by key over by _id, 8 runs")?;
    rows.push(row.with_target(Target::RatioAtMost(3.0)));
    load::check_count(&mut reads.connection, reads.documents)?;
    let loaded = options.documents_of(DOCUMENTS).max(10);
    let hash = load::check_documents(&mut reads.connection, &reads.corpus, loaded)?;
    reads.server.stop()?;
    rows.extend(first::rows(options)?);
    Report {
        workload: "reads",
        baseline: "the same by _id; of the first read: later ones",
        rows,
        hash,
    }
    .print(options)
}

impl<'a> Reads<'a> {
    fn load(options: &'a Options) -> Result<Self, BenchError> {
        let server = Server::start(options)?;
        let mut connection = server.connect()?;
        let corpus = Pairs { seed: options.seed };
        let documents = options.documents_of(DOCUMENTS).max(10);
        eprintln!("loading {documents} documents, then an index on key");
        Feed::new(&corpus, BATCH).insert(&mut connection, 0..documents)?;
        load::create_index(&mut connection, INDEX)?;
        settle(&mut connection, options)?;
        Ok(Self {
            options,
            server,
            connection,
            corpus,
            documents,
        })
    }

    fn sections(&mut self) -> Result<f64, BenchError> {
        load::statistic(&mut self.connection, "indexDetails.key_1.sections")
    }

    fn sections_row(&mut self, name: &str) -> Result<Row, BenchError> {
        let found = self.sections()?;
        Ok(Row::new(name, "count", found, None))
    }

    /// Returns the median time of a find.
    fn lookups(&mut self, name: &str) -> Result<Row, BenchError> {
        eprintln!("{name}");
        let (corpus, documents) = (&self.corpus, self.documents);
        let connection = std::cell::RefCell::new(&mut self.connection);
        let measure = |round: usize, by: &dyn Fn(u64, &mut Writer)| {
            let mut random = Random::stream(self.options.seed, round as u64);
            let mut expected = Vec::new();
            median_us(LOOKUPS, |_| {
                let number = random.below(documents);
                corpus.batch(number, number + 1, &mut expected);
                let filter = bson::build_document(|filter| by(number, filter));
                load::find_one(&mut connection.borrow_mut(), &filter, &expected)
            })
        };
        let by_key = |number: u64, filter: &mut Writer| filter.int64("key", corpus.key(number));
        let by_id = |number: u64, filter: &mut Writer| filter.int32("_id", number as i32);
        let pair = Pair::measure(
            ROUNDS,
            |round| measure(round, &by_key),
            |round| measure(round, &by_id),
        )?;
        Ok(pair.row(name, "µs"))
    }

    /// Returns the entries per second of a range of half of all keys and of half of all `_id`s.
    fn scans(
        &mut self,
        name: &str,
        scan: fn(&mut Self, &str) -> Result<u64, BenchError>,
    ) -> Result<Row, BenchError> {
        eprintln!("{name}");
        let own = self.options.rounds.max(3);
        let reads = std::cell::RefCell::new(self);
        let rate = |field: &str| {
            let (seconds, entries) = timed(|| scan(&mut reads.borrow_mut(), field))?;
            reads.borrow().must_be_half(field, entries)?;
            Ok(entries as f64 / seconds)
        };
        let pair = Pair::measure(own, |_| rate("key"), |_| rate("_id"))?;
        Ok(pair.row(name, "entries/s"))
    }

    fn count(&mut self, field: &str) -> Result<u64, BenchError> {
        let filter = self.half(field);
        self.counted(&filter, field)
    }

    /// Every entry is tested, and all of them match.
    fn tested(&mut self, field: &str) -> Result<u64, BenchError> {
        let filter = self.half_tested(field);
        self.counted(&filter, field)
    }

    fn counted(&mut self, filter: &[u8], field: &str) -> Result<u64, BenchError> {
        let reply = self.connection.run(DATABASE, |writer| {
            writer.string("count", COLLECTION);
            writer.document("query", |query| query.append_fields(filter));
            writer.string("hint", index_of(field));
        })?;
        Ok(reply.number("n").unwrap_or_default() as u64)
    }

    /// Groups all entries, reading nothing but keys.
    fn largest(&mut self, field: &str) -> Result<u64, BenchError> {
        let filter = self.half(field);
        let value = format!("${field}");
        let reply = self.connection.run(DATABASE, |writer| {
            writer.string("aggregate", COLLECTION);
            writer.array("pipeline", |stages| {
                stages.document("0", |stage| {
                    stage.document("$match", |out| out.append_fields(&filter));
                });
                stages.document("1", |stage| {
                    stage.document("$group", |group| {
                        group.null("_id");
                        group.document("n", |sum| sum.int32("$sum", 1));
                        group.document("largest", |largest| largest.string("$max", &value));
                    });
                });
            });
            writer.document("cursor", |_| {});
            writer.string("hint", index_of(field));
        })?;
        Ok(reply.number("cursor.firstBatch.0.n").unwrap_or_default() as u64)
    }

    fn covered(&mut self, field: &str) -> Result<u64, BenchError> {
        let filter = self.half(field);
        let find = message(DATABASE, |writer| {
            writer.string("find", COLLECTION);
            writer.document("filter", |out| out.append_fields(&filter));
            writer.document("projection", |out| {
                if field != "_id" {
                    out.int32("_id", 0);
                }
                out.int32(field, 1);
            });
        });
        cursor::drain(&mut self.connection, &find)
    }

    fn half(&self, field: &str) -> Vec<u8> {
        bson::build_document(|filter| filter.document(field, |range| self.below_half(field, range)))
    }

    /// The same with a condition that matches all integers.
    fn half_tested(&self, field: &str) -> Vec<u8> {
        bson::build_document(|filter| {
            filter.document(field, |range| {
                self.below_half(field, range);
                range.array("$mod", |arguments| {
                    arguments.int32("0", 1);
                    arguments.int32("1", 0);
                });
            });
        })
    }

    fn below_half(&self, field: &str, range: &mut Writer) {
        match field {
            "_id" => range.int32("$lt", (self.documents / 2) as i32),
            _ => range.int64("$lt", 0),
        }
    }

    fn must_be_half(&self, field: &str, found: u64) -> Result<(), BenchError> {
        let expected = match field {
            "_id" => self.documents / 2,
            _ => (0..self.documents)
                .filter(|number| self.corpus.key(*number) < 0)
                .count() as u64,
        };
        if found == expected {
            Ok(())
        } else {
            Err(BenchError::Server(format!(
                "a range of {field} has {found} entries, not {expected}"
            )))
        }
    }

    fn insert(&mut self, documents: u64) -> Result<(), BenchError> {
        let end = self.documents + documents;
        let range = self.documents..end;
        Feed::new(&self.corpus, BATCH).insert(&mut self.connection, range)?;
        self.documents = end;
        Ok(())
    }

    /// Inserts until the index has enough runs, at most as many documents as there are.
    fn add_runs(&mut self) -> Result<(), BenchError> {
        eprintln!("inserting until the index has {RUNS_MORE} sections more");
        let enough = self.sections()? + RUNS_MORE;
        let most = 2 * self.documents;
        while self.documents < most && self.sections()? < enough {
            self.insert(BATCH.min(most - self.documents))?;
        }
        Ok(())
    }
}

fn index_of(field: &str) -> &'static str {
    match field {
        "_id" => "_id_",
        _ => "key_1",
    }
}
