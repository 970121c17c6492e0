//! `$indexStats`: how often each index was used.

use std::time::SystemTime;

use windrow_collection::{Index, Namespace};
use windrow_document::{DocumentBuf, doc};

use super::StatisticsSources;
use crate::clock;

/// Returns one document per index.
pub fn collect(sources: &StatisticsSources, namespace: &Namespace) -> Vec<DocumentBuf> {
    let collection = sources.engine.collection(namespace);
    let indexes = collection.map(|collection| collection.indexes());
    let indexes = indexes.iter().flatten();
    let indexes = indexes.filter(|index| !index.definition.clustered);
    indexes
        .map(|index| describe_index(sources, index))
        .collect()
}

fn describe_index(sources: &StatisticsSources, index: &Index) -> DocumentBuf {
    let since = SystemTime::now().checked_sub(index.counting_since().elapsed());
    let since = clock::date(since.unwrap_or(SystemTime::UNIX_EPOCH));
    let definition = &index.definition;
    let mut stats = doc! {
        "name": (&definition.name), "key": (definition.key_pattern()),
        "host": (&sources.host),
        "accesses": { "ops": (index.uses() as i64), "since": since },
        "spec": (definition.specification.clone()),
    };
    if !index.is_ready() {
        stats.push("building", true);
    }
    stats
}
