//! Statistics of collections, for the stages that return them.

mod of_collection;
mod of_indexes;
mod of_plans;
mod of_search_indexes;

use std::sync::Arc;

use windrow_collection::{Engine, Namespace};
use windrow_document::DocumentBuf;
use windrow_query::{Error, Guidance, Statistician, Statistics};

use crate::usage::Usage;
pub use of_collection::describe;

/// The sources of statistics.
pub struct Known {
    pub engine: Arc<Engine>,
    pub guidance: Arc<Guidance>,
    pub usage: Arc<Usage>,
    /// "host:port", the name of the server in replies.
    pub host: String,
}

impl Statistician for Known {
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
                of_collection::tell(self, &namespace, wanted).map(|stats| vec![stats])
            }
            Statistics::Indexes => Ok(of_indexes::tell(self, &namespace)),
            Statistics::SearchIndexes(wanted) => {
                Ok(of_search_indexes::tell(self, &namespace, wanted.as_ref()))
            }
            Statistics::Plans => of_plans::tell(self, &namespace),
        }
    }
}
