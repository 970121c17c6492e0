//! The results of the queries, which must be equal on both sides wherever the words are.

use super::interface::Interface;
use super::queries::{Kind, Queries};
use crate::bson::{Document, Value};
use crate::client::Connection;
use crate::error::BenchError;
use crate::report::{HASH_START, hash};
use crate::rival::Figures;

/// The numbers of documents that the queries find, and a hash of the best ones.
pub struct QueryResults {
    counts: Vec<(Kind, Vec<u64>)>,
    pub hash: u64,
}

/// The counts of a kind of queries beside those of the baseline.
pub struct CountComparison {
    pub kind: Kind,
    /// The documents that all queries find.
    pub ours: u64,
    /// `None` without the baseline.
    pub baseline: Option<u64>,
    /// The queries whose counts differ.
    pub different: usize,
    pub queries: usize,
}

/// Runs each query once.
pub fn gather(
    connection: &mut Connection,
    interface: &Interface,
    queries: &Queries,
) -> Result<QueryResults, BenchError> {
    let mut results = QueryResults {
        counts: Vec::new(),
        hash: HASH_START,
    };
    for kind in queries.kinds {
        let mut counts = Vec::new();
        for query in queries.with_kind(kind) {
            let reply = connection.succeed(&(interface.count)(query))?;
            let count = count_of(&reply, interface.counted_as)?;
            let reply = connection.succeed(&(interface.top)(query, 10))?;
            let Some(Value::Array(top)) = reply.get("cursor.firstBatch") else {
                return Err(BenchError::Server("a reply without a batch".into()));
            };
            let found = top.iter().count() as u64;
            if found != count.min(10) {
                let text = format!("{found} of {count} documents for {query:?}");
                return Err(BenchError::Server(text));
            }
            results.hash = hash(hash(results.hash, &count.to_le_bytes()), top.bytes());
            counts.push(count);
        }
        results.counts.push((kind, counts));
    }
    Ok(results)
}

/// Returns the count at `path` of the first document, or 0 if there is no document.
fn count_of(reply: &Document, path: &str) -> Result<u64, BenchError> {
    if reply.get("cursor.firstBatch.0").is_none() {
        return Ok(0);
    }
    let count = reply.number(&format!("cursor.firstBatch.0.{path}"));
    let count = count.ok_or_else(|| BenchError::Server("a count without a number".into()))?;
    Ok(count as u64)
}

impl QueryResults {
    /// Compares the counts with the baseline's figures `count.KIND.N`.
    pub fn compare(&self, figures: Option<&Figures>) -> Result<Vec<CountComparison>, BenchError> {
        let compare = |(kind, counts): &(Kind, Vec<u64>)| {
            let baseline = figures
                .map(|figures| baseline_counts(figures, *kind, counts.len()))
                .transpose()?;
            let different = |baseline: &Vec<u64>| {
                let pairs = counts.iter().zip(baseline);
                pairs.filter(|(ours, other)| ours != other).count()
            };
            Ok(CountComparison {
                kind: *kind,
                ours: counts.iter().sum(),
                different: baseline.as_ref().map_or(0, different),
                baseline: baseline.map(|counts| counts.iter().sum()),
                queries: counts.len(),
            })
        };
        self.counts.iter().map(compare).collect()
    }
}

fn baseline_counts(figures: &Figures, kind: Kind, queries: usize) -> Result<Vec<u64>, BenchError> {
    let count = |number| figures.get(&format!("count.{}.{number}", kind.name()));
    (0..queries)
        .map(|number| Ok(count(number)? as u64))
        .collect()
}
