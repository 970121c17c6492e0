//! Builds search indexes again whose entries were made by analyzers of another version. The old
//! index answers searches until the new one is ready. It may miss documents until then.

use std::sync::Arc;
use std::time::Duration;

use windrow_collection::Collection;
use windrow_document::doc;
use windrow_index::Definition;

use crate::index_builds::{self, Build};
use crate::state::State;

const THREAD: &str = "SearchIndexRenewal";

/// Renews all search indexes that are outdated, one collection after the other. Ends when the
/// server stops: the next start continues the build.
pub fn run_search_index_renewal(state: &State) {
    let engine = &state.services.engine;
    while engine.is_following() {
        if state.stop.wait(ROLE_INTERVAL) {
            return;
        }
    }
    for database in engine.databases() {
        for collection in engine.collections(&database) {
            if state.stop.is_requested() {
                return;
            }
            let outdated = collection.outdated_search_indexes();
            let renewed = outdated.iter().map(|search| search.renewed());
            let definitions: Vec<Definition> = renewed.map(Definition::from_search).collect();
            if !definitions.is_empty() {
                renew(state, &collection, definitions);
            }
        }
    }
}

/// The interval at which a follower checks if it has become the primary.
const ROLE_INTERVAL: Duration = Duration::from_secs(1);

fn renew(state: &State, collection: &Arc<Collection>, definitions: Vec<Definition>) {
    let log = &state.services.log;
    let attr = || doc! { "namespace": (collection.namespace().to_string()) };
    let message = "Search indexes of an older version are built again";
    log.info("INDEX", 51_807, THREAD, message, attr());
    let build = Build {
        engine: state.services.engine.clone(),
        collection: collection.clone(),
        definitions,
        log: log.clone(),
        context: THREAD.to_owned(),
    };
    let built =
        index_builds::run_here(&build).and_then(|_| collection.drop_replaced_search_indexes());
    if let Err(error) = built
        && !state.stop.is_requested()
    {
        let mut attr = attr();
        attr.push("error", error.to_string());
        let message = "Search indexes of an older version could not be built again";
        log.warn("INDEX", 51_808, THREAD, message, attr);
    }
}
