//! Statistics of collections, for the stages that return them.

mod collection;
mod indexes;
mod plans;
mod search_indexes;

use std::sync::Arc;

use windrow_collection::{Engine, Namespace};
use windrow_document::DocumentBuf;
use windrow_query::{Error, Guidance, Statistician, Statistics};

use crate::usage::Usage;
pub use collection::describe;

/// The sources of statistics.
pub struct StatisticsSources {
    pub engine: Arc<Engine>,
    pub guidance: Arc<Guidance>,
    pub usage: Arc<Usage>,
    /// "host:port", the name of the server in replies.
    pub host: String,
}

impl Statistician for StatisticsSources {
    fn tell(
        &self,
        database: &str,
        collection: &str,
        wanted: &Statistics,
    ) -> Result<Vec<DocumentBuf>, Error> {
        let namespace = Namespace {
            database: database.to_owned(),
            collection: collection.to_owned(),
        };
        match wanted {
            Statistics::Collection(wanted) => {
                collection::collect(self, &namespace, wanted).map(|stats| vec![stats])
            }
            Statistics::Indexes => Ok(indexes::collect(self, &namespace)),
            Statistics::SearchIndexes(wanted) => {
                Ok(search_indexes::collect(self, &namespace, wanted.as_ref()))
            }
            Statistics::Plans => plans::collect(self, &namespace),
        }
    }
}
