//! Statistics of collections, for the stages that return them.

mod collection;
mod indexes;
mod plans;
mod search_indexes;

use std::sync::Arc;

use windrow_collection::{Engine, Namespace};
use windrow_document::DocumentBuf;
use windrow_query::{Error, PlannerSettings, Statistics, StatisticsProvider};

use crate::usage::Usage;
pub use collection::describe;

/// The sources of statistics.
pub struct StatisticsSources {
    pub engine: Arc<Engine>,
    pub planner_settings: Arc<PlannerSettings>,
    pub usage: Arc<Usage>,
    /// "host:port", the name of the server in replies.
    pub host: String,
}

impl StatisticsProvider for StatisticsSources {
    fn report(
        &self,
        database: &str,
        collection: &str,
        selected: &Statistics,
    ) -> Result<Vec<DocumentBuf>, Error> {
        let namespace = Namespace {
            database: database.to_owned(),
            collection: collection.to_owned(),
        };
        match selected {
            Statistics::Collection(selected) => {
                collection::collect(self, &namespace, selected).map(|stats| vec![stats])
            }
            Statistics::Indexes => Ok(indexes::collect(self, &namespace)),
            Statistics::SearchIndexes(selected) => {
                Ok(search_indexes::collect(self, &namespace, selected.as_ref()))
            }
            Statistics::Plans => plans::collect(self, &namespace),
        }
    }
}
