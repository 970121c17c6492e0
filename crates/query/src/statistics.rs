//! Statistics of collections for pipelines, such as `$collStats`. A server provides them, as
//! documents.

use windrow_document::DocumentBuf;

use crate::Error;

const BAD_VALUE: i32 = 2;
const NOT_IMPLEMENTED: i32 = 238;

/// A stage that reads statistics.
#[derive(Clone, Debug, PartialEq)]
pub enum Statistics {
    /// `$collStats`
    Collection(CollectionStatistics),
    /// `$indexStats`
    Indexes,
    /// `$planCacheStats`
    Plans,
    /// `$listSearchIndexes`, of all indexes or of one.
    SearchIndexes(Option<SearchIndexName>),
}

/// How `$listSearchIndexes` refers to an index.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchIndexName {
    /// By its id.
    Id(String),
    /// By its name.
    Name(String),
}

impl Statistics {
    /// The name of the stage.
    pub fn stage(&self) -> &'static str {
        match self {
            Statistics::Collection(_) => "$collStats",
            Statistics::Indexes => "$indexStats",
            Statistics::Plans => "$planCacheStats",
            Statistics::SearchIndexes(_) => "$listSearchIndexes",
        }
    }
}

/// The options of `$collStats`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionStatistics {
    /// Latencies, and if `true` with histograms.
    pub latencies: Option<bool>,
    /// Sizes of the storage, divided by this number.
    pub storage: Option<u64>,
    /// The number of documents.
    pub count: bool,
    /// The number of collection scans.
    pub scans: bool,
}

/// Checks a divisor of sizes: it must be at least 1. Larger values than 32 bits can hold are
/// lowered.
pub fn checked_scale(given: i64) -> Result<u64, Error> {
    if given >= 1 {
        Ok(given.unsigned_abs().min(i32::MAX.unsigned_abs().into()))
    } else {
        Err(Error::new(
            BAD_VALUE,
            format!("scale has to be >= 1, and is {given}"),
        ))
    }
}

/// Provides statistics of collections.
pub trait StatisticsProvider: Send + Sync {
    /// Returns the statistics of a collection or view, as documents.
    fn report(
        &self,
        database: &str,
        collection: &str,
        statistics: &Statistics,
    ) -> Result<Vec<DocumentBuf>, Error>;
}

/// The error if there is no provider of statistics.
pub fn unknown() -> Error {
    Error::new(
        NOT_IMPLEMENTED,
        "only a server has statistics of collections",
    )
}
