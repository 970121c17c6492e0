//! What a pipeline may ask a server of a collection, besides its documents. What the server answers
//! are documents, too.

use windrow_document::DocumentBuf;

use crate::Error;

const BAD_VALUE: i32 = 2;
const NOT_IMPLEMENTED: i32 = 238;

/// A stage that asks.
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

/// How `$listSearchIndexes` names an index.
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

/// What `$collStats` is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionStatistics {
    /// Whether with histograms.
    pub latencies: Option<bool>,
    /// By what sizes are divided.
    pub storage: Option<u64>,
    pub count: bool,
    pub scans: bool,
}

/// By what sizes are divided: at least 1, at most what 32 bits hold.
pub fn checked_scale(given: i64) -> Result<u64, Error> {
    match given >= 1 {
        true => Ok(given.unsigned_abs().min(i32::MAX.unsigned_abs().into())),
        false => Err(Error::new(
            BAD_VALUE,
            format!("scale has to be >= 1, and is {given}"),
        )),
    }
}

/// Who knows.
pub trait Statistician: Send + Sync {
    /// The documents; the names are those of a database and of a collection or view in it.
    fn tell(
        &self,
        database: &str,
        collection: &str,
        wanted: &Statistics,
    ) -> Result<Vec<DocumentBuf>, Error>;
}

/// The error where nobody knows.
pub fn unknown() -> Error {
    Error::new(
        NOT_IMPLEMENTED,
        "only a server has statistics of collections",
    )
}
