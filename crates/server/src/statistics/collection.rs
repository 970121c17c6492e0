//! `$collStats` and `collStats`: the statistics of a collection in one document.

use std::time::SystemTime;

use windrow_collection::{Collection, Namespace};
use windrow_document::{DocumentBuf, Value, doc};
use windrow_query::{CollectionStatistics, Error};

use super::StatisticsSources;
use crate::{clock, latency};

const NOT_FOUND: i32 = 26;
const NOTHING_TO_COUNT: i32 = 40_481;

/// Returns the statistics of a collection.
///
/// # Errors
///
/// - 166: it is a view.
/// - 26, 40481: there is no collection.
pub fn collect(
    sources: &StatisticsSources,
    namespace: &Namespace,
    selected: &CollectionStatistics,
) -> Result<DocumentBuf, Error> {
    let mut stats = doc! {
        "ns": (namespace.to_string()), "host": (&sources.host),
        "localTime": (clock::date(SystemTime::now())),
    };
    if let Some(histograms) = selected.latencies {
        let latencies = sources.usage.latencies(&namespace.to_string());
        stats.push("latencyStats", latency::describe(&latencies, histograms));
    }
    if selected.storage.is_some() || selected.count || selected.scans {
        match sources.engine.collection(namespace) {
            Some(collection) => add(selected, &collection, &mut stats),
            None => return Err(missing(sources, selected, namespace)?),
        }
    }
    Ok(stats)
}

fn add(selected: &CollectionStatistics, collection: &Collection, stats: &mut DocumentBuf) {
    if let Some(scale) = selected.storage {
        stats.push("storageStats", describe(collection, scale));
    }
    if selected.count {
        stats.push("count", size(collection.count()));
    }
    if selected.scans {
        let scans = collection.scans();
        let counted = doc! {
            "total": (scans.all() as i64), "nonTailable": (scans.not_tailable() as i64),
        };
        stats.push("queryExecStats", doc! { "collectionScans": counted });
    }
}

/// Returns the error if there is no collection with this name.
fn missing(
    sources: &StatisticsSources,
    selected: &CollectionStatistics,
    namespace: &Namespace,
) -> Result<Error, Error> {
    if sources.engine.view(namespace)?.is_some() {
        return Ok(windrow_collection::Error::IsView(namespace.to_string()).into());
    }
    let (code, what) = match selected {
        selected if selected.storage.is_some() => (NOT_FOUND, "storageStats"),
        selected if selected.count => (NOTHING_TO_COUNT, "count"),
        _ => (NOT_FOUND, "queryExecStats"),
    };
    let message = format!("Unable to retrieve {what}: {namespace} does not exist");
    Ok(Error::new(code, message))
}

/// Returns a size, as an int or a long.
fn size(bytes: u64) -> Value {
    Value::whole(bytes as i64)
}

/// Returns the sizes of a collection: the bytes in run files, and those in memory that are in no
/// file yet.
pub fn describe(collection: &Collection, scale: u64) -> DocumentBuf {
    let statistics = collection.statistics();
    let cap = collection.cap();
    let storage = statistics.bytes_stored + statistics.tail_bytes;
    let indexes: u64 = statistics.indexes.iter().map(|one| one.bytes()).sum();
    let (mut sizes, mut details, mut builds) = (DocumentBuf::new(), DocumentBuf::new(), Vec::new());
    let mut searched = DocumentBuf::new();
    for index in &statistics.indexes {
        if let Some(name) = &index.search_name {
            if index.is_ready {
                searched.push(name, size(index.bytes() / scale));
            }
            continue;
        }
        sizes.push(&index.name, size(index.bytes() / scale));
        details.push(
            &index.name,
            doc! {
                "entriesStored": (size(index.entries_stored)), "sections": (size(index.sections)),
            },
        );
        if !index.is_ready {
            builds.push(index.name.clone());
        }
    }
    let mut described = doc! {
        "size": (size(statistics.bytes / scale)), "count": (size(statistics.documents)),
    };
    if let Some(average) = statistics.bytes.checked_div(statistics.documents) {
        described.push("avgObjSize", size(average));
    }
    let rest = doc! {
        "storageSize": (size(storage / scale)),
        "freeStorageSize": 0,
        "capped": (cap.is_some()),
        "windrow": {
            "bytesInRuns": (size(statistics.bytes_stored / scale)),
            "bytesInTails": (size(statistics.tail_bytes / scale)),
            "sections": (size(statistics.sections)),
            "searchIndexSizes": searched,
        },
        "nindexes": (statistics.index_count() as i32),
        "indexDetails": details,
        "indexBuilds": builds,
        "totalIndexSize": (size(indexes / scale)),
        "totalSize": (size((storage + indexes) / scale)),
        "indexSizes": sizes,
        "scaleFactor": (size(scale)),
    };
    rest.iter()
        .for_each(|(name, value)| described.push(name, value));
    if collection.is_clustered() {
        described.push("clustered", true);
    }
    if let Some(cap) = cap {
        described.push("max", size(cap.documents.unwrap_or(0)));
        described.push("maxSize", size(cap.bytes / scale));
    }
    described
}
