//! W5: a clustered collection compared with an ordinary one in the same run: insertion, finds of
//! single documents, lists and ranges by `_id`, deletion, and the size of a secondary index; with
//! growing and with random `_id`s.

use crate::bson::{self, Writer};
use crate::client::{Connection, message};
use crate::corpus::Corpus;
use crate::corpus::readings::{Id, IdKind, Readings};
use crate::cursor;
use crate::error::BenchError;
use crate::json;
use crate::load::{self, COLLECTION, DATABASE, Feed};
use crate::measure::{median_us, timed};
use crate::options::Options;
use crate::random::Random;
use crate::report::{HASH_START, Report, Row, hash, median};
use crate::server::Server;

const DOCUMENTS: u64 = 20_000_000;
const BATCH: u64 = 1_000;
const INDEX: &str = r#"{"key": {"name": 1}, "name": "name_1"}"#;
const CLUSTERED: &str =
    r#"{"create": "documents", "clusteredIndex": {"key": {"_id": 1}, "unique": true}}"#;
const LOOKUPS: usize = 2_000;
const REPEATS: u64 = 5;
/// The number of `_id`s of a list, and the approximate number of documents of a range.
const LISTED: u64 = 1_000;
const RANGED: u64 = 10_000;

/// The measured figures, in this order.
const MEASURED: [(&str, &str); 6] = [
    ("insert by 1,000", "documents/s"),
    ("find by _id", "µs"),
    ("$in of 1,000 _ids", "ms"),
    ("range of 10,000 _ids", "ms"),
    ("delete of 10,000 by a range of _ids", "ms"),
    ("secondary index", "bytes"),
];

/// A figure for each of [`MEASURED`].
type Figures = Vec<f64>;

struct Collection<'a> {
    connection: &'a mut Connection,
    corpus: &'a Readings,
    documents: u64,
}

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let documents = options.documents_of(DOCUMENTS);
    let kinds = [("objectid", IdKind::Growing), ("uuid", IdKind::Random)];
    let chosen = options.cases_or(&kinds.map(|(name, _)| name));
    let (mut rows, mut sum) = (Vec::new(), HASH_START);
    for (name, ids) in kinds {
        if !chosen.iter().any(|item| item == name) {
            continue;
        }
        let corpus = Readings {
            seed: options.seed,
            ids,
        };
        let (mut ordinary, holds) = measure(options, &corpus, documents, None)?;
        sum = hash(sum, &holds.to_le_bytes());
        let mut clustered = clustered(options, &corpus, documents, holds)?;
        if let Some(clustered) = &mut clustered {
            insert_again(options, &corpus, documents, clustered, Some(CLUSTERED))?;
            insert_again(options, &corpus, documents, &mut ordinary, None)?;
        }
        rows.extend(compared(name, &ordinary, clustered.as_deref()));
    }
    Report {
        workload: "w5",
        baseline: "an ordinary collection",
        rows,
        hash: sum,
    }
    .print(options)
}

/// Inserts once more and uses the better rate: the first insertion has to allocate memory from the
/// system.
fn insert_again(
    options: &Options,
    corpus: &Readings,
    documents: u64,
    figures: &mut [f64],
    create: Option<&str>,
) -> Result<(), BenchError> {
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    let rate = insert(&mut connection, corpus, documents, create)?;
    if let Some(best) = figures.first_mut() {
        *best = best.max(rate);
    }
    server.stop()
}

/// Creates the collection and inserts. Returns documents per second.
fn insert(
    connection: &mut Connection,
    corpus: &Readings,
    documents: u64,
    create: Option<&str>,
) -> Result<f64, BenchError> {
    if let Some(create) = create {
        let create = json::document(create)?;
        connection.run(DATABASE, |writer| writer.append_fields(&create))?;
    }
    eprintln!("{documents} documents, {}", create.unwrap_or("ordinary"));
    let seconds = Feed::new(corpus, BATCH).insert(connection, 0..documents)?;
    Ok(documents as f64 / seconds)
}

/// Without a clustered collection, the figures of the ordinary one have no comparison.
fn compared(name: &str, ordinary: &[f64], clustered: Option<&[f64]>) -> Vec<Row> {
    let row = |place: usize| {
        let ((what, unit), ordinary) = (MEASURED[place], ordinary[place]);
        match clustered {
            Some(ours) => Row::new(format!("{name}: {what}"), unit, ours[place], Some(ordinary)),
            None => Row::new(format!("{name}, ordinary: {what}"), unit, ordinary, None),
        }
    };
    (0..MEASURED.len()).map(row).collect()
}

/// Returns `None` if the server has no clustered collections.
fn clustered(
    options: &Options,
    corpus: &Readings,
    documents: u64,
    holds: u64,
) -> Result<Option<Figures>, BenchError> {
    match measure(options, corpus, documents, Some(CLUSTERED)) {
        Ok((_, same)) if holds != same => Err(BenchError::Server(
            "the clustered collection holds something else".into(),
        )),
        Ok((figures, _)) => Ok(Some(figures)),
        Err(BenchError::Server(said)) if said.contains("clusteredIndex") => {
            eprintln!("no clustered collection in this run: {said}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the figures of a collection that `create` or its first insert creates, and a hash of its
/// content.
fn measure(
    options: &Options,
    corpus: &Readings,
    documents: u64,
    create: Option<&str>,
) -> Result<(Figures, u64), BenchError> {
    let server = Server::start(options)?;
    let mut connection = server.connect()?;
    let rate = insert(&mut connection, corpus, documents, create)?;
    let hash = load::verify(&mut connection, corpus, documents)?;
    let mut collection = Collection {
        connection: &mut connection,
        corpus,
        documents,
    };
    let figures = vec![
        rate,
        collection.find_one()?,
        collection.find_listed()?,
        collection.find_range()?,
        collection.delete_range()?,
        collection.index_bytes()?,
    ];
    server.stop()?;
    Ok((figures, hash))
}

impl Collection<'_> {
    /// The median in microseconds.
    fn find_one(&mut self) -> Result<f64, BenchError> {
        let mut random = Random::new(2);
        let mut expected = Vec::new();
        median_us(LOOKUPS, |_| {
            let number = random.below(self.documents);
            self.corpus.batch(number, number + 1, &mut expected);
            load::find_one(self.connection, &load::by_id(&expected), &expected)
        })
    }

    /// The median in milliseconds.
    fn find_listed(&mut self) -> Result<f64, BenchError> {
        let mut random = Random::new(3);
        let listed = LISTED.min(self.documents);
        let stretch = self.documents / listed;
        let taken: Result<Vec<f64>, BenchError> = (0..REPEATS)
            .map(|_| {
                let ids: Vec<Id> = (0..listed)
                    .map(|place| self.corpus.id(place * stretch + random.below(stretch)))
                    .collect();
                let find = find_message(|filter| {
                    filter.document("_id", |inner| {
                        inner.array("$in", |list| {
                            let all = ids.iter().enumerate();
                            all.for_each(|(place, id)| id.write(&place.to_string(), list));
                        });
                    });
                });
                self.drained(&find, listed)
            })
            .collect();
        Ok(median(&taken?))
    }

    fn find_range(&mut self) -> Result<f64, BenchError> {
        let taken: Result<Vec<f64>, BenchError> = (0..REPEATS)
            .map(|part| {
                let (range, count) = self.range(part, 2 * REPEATS);
                let find = find_message(|filter| filter.append_fields(&range));
                self.drained(&find, count)
            })
            .collect();
        Ok(median(&taken?))
    }

    /// Other ranges than those of the finds.
    fn delete_range(&mut self) -> Result<f64, BenchError> {
        let taken: Result<Vec<f64>, BenchError> = (REPEATS..2 * REPEATS)
            .map(|part| {
                let (range, count) = self.range(part, 2 * REPEATS);
                let delete = message(DATABASE, |writer| {
                    writer.string("delete", COLLECTION);
                    writer.array("deletes", |list| {
                        list.document("0", |writer| {
                            writer.document("q", |q| q.append_fields(&range));
                            writer.int32("limit", 0);
                        });
                    });
                });
                let deleted = || Ok(self.connection.succeed(&delete)?.number("n"));
                let (seconds, found) = timed(deleted)?;
                check_equal(found.unwrap_or_default() as u64, count)?;
                Ok(seconds * 1e3)
            })
            .collect();
        Ok(median(&taken?))
    }

    fn index_bytes(&mut self) -> Result<f64, BenchError> {
        load::create_index(self.connection, INDEX)?;
        load::statistic(self.connection, "indexSizes.name_1")
    }

    /// The milliseconds to read all results of a find.
    fn drained(&mut self, find: &[u8], count: u64) -> Result<f64, BenchError> {
        let (seconds, found) = timed(|| cursor::drain(self.connection, find))?;
        check_equal(found, count)?;
        Ok(seconds * 1e3)
    }

    /// Returns a filter for a range of `_id`s that begins at `part` of `parts`, and the number of
    /// documents in it.
    fn range(&self, part: u64, parts: u64) -> (Vec<u8>, u64) {
        let ranged = RANGED.min(self.documents / parts).max(1);
        let (first, end) = self.corpus.range(part, parts, ranged, self.documents);
        let is_within = |number: &u64| (&first..&end).contains(&&self.corpus.id(*number));
        let count = (0..self.documents).filter(is_within).count();
        let filter = bson::build_document(|filter| {
            filter.document("_id", |range| {
                first.write("$gte", range);
                end.write("$lt", range);
            });
        });
        (filter, count as u64)
    }
}

fn find_message(filter: impl FnOnce(&mut Writer)) -> Vec<u8> {
    message(DATABASE, |writer| {
        writer.string("find", COLLECTION);
        writer.document("filter", filter);
    })
}

fn check_equal(found: u64, expected: u64) -> Result<(), BenchError> {
    if found == expected {
        Ok(())
    } else {
        Err(BenchError::Server(format!(
            "{found} documents instead of {expected}"
        )))
    }
}
