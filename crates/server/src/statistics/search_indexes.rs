//! `$listSearchIndexes`: the search indexes of a collection.

use std::sync::Arc;

use windrow_collection::{Collection, Index, Namespace};
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_index::search::SearchDefinition;
use windrow_query::SearchIndexName;

use super::StatisticsSources;

/// Returns one document per index, or that of the requested index.
pub fn collect(
    sources: &StatisticsSources,
    namespace: &Namespace,
    selected: Option<&SearchIndexName>,
) -> Vec<DocumentBuf> {
    let Some(collection) = sources.engine.collection(namespace) else {
        return Vec::new();
    };
    let mut listed = list(&collection, &sources.host);
    if let Some(selected) = selected {
        let (field, value) = match selected {
            SearchIndexName::Id(id) => ("id", id),
            SearchIndexName::Name(name) => ("name", name),
        };
        listed.retain(|one| one.get(field) == Some(ValueRef::String(value)));
    }
    listed
}

fn search_of(index: &Index) -> Option<&SearchDefinition> {
    index.definition.search.as_deref()
}

fn version_of(index: &Index) -> i32 {
    search_of(index).map_or(0, |search| search.version)
}

/// Returns one document for each index name.
fn list(collection: &Collection, host: &str) -> Vec<DocumentBuf> {
    let mut indexes = collection.search_indexes();
    indexes.retain(|index| !index.is_dropped());
    indexes.sort_by(|one, other| {
        let order = |index: &Index| {
            let search = search_of(index);
            search.map(|search| (search.created_at, search.name.clone(), search.version))
        };
        order(one).cmp(&order(other))
    });
    let mut listed = Vec::new();
    for index in &indexes {
        let Some(search) = search_of(index) else {
            continue;
        };
        let versions = indexes.iter().filter(|other| {
            let other = search_of(other);
            other.is_some_and(|other| other.name == search.name)
        });
        let versions: Vec<&Arc<Index>> = versions.collect();
        let is_newest = versions
            .iter()
            .all(|other| version_of(other) <= search.version);
        if is_newest {
            listed.push(describe(search, &versions, host));
        }
    }
    listed
}

/// Returns the description of an index. `versions` are its one or two definitions.
fn describe(search: &SearchDefinition, versions: &[&Arc<Index>], host: &str) -> DocumentBuf {
    let is_ready = |index: &&&Arc<Index>| index.is_ready();
    let queryable = versions
        .iter()
        .filter(is_ready)
        .max_by_key(|it| version_of(it));
    let is_newest_ready = queryable.is_some_and(|it| version_of(it) == search.version);
    let status = if is_newest_ready { "READY" } else { "BUILDING" };
    let is_queryable = queryable.is_some();
    let mut detail = doc! { "hostname": host, "status": status, "queryable": is_queryable };
    if let Some(main) = queryable.and_then(|index| search_of(index)) {
        detail.push("mainIndex", part("READY", true, main));
    }
    if !is_newest_ready {
        detail.push("stagedIndex", part("BUILDING", false, search));
    }
    doc! {
        "id": (search.id.to_string()), "name": search.name.as_str(), "type": "search",
        "status": status, "queryable": is_queryable,
        "latestDefinitionVersion": (version_document(search)),
        "latestDefinition": (search.source.clone()),
        "statusDetail": (vec![Value::from(detail)]),
    }
}

fn part(status: &str, is_queryable: bool, search: &SearchDefinition) -> DocumentBuf {
    doc! {
        "status": status, "queryable": is_queryable,
        "definitionVersion": (version_document(search)), "definition": (search.source.clone()),
    }
}

fn version_document(search: &SearchDefinition) -> DocumentBuf {
    let created_at = ValueRef::DateTime(search.created_at);
    doc! { "version": (search.version), "createdAt": created_at }
}
