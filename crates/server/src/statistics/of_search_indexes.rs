//! `$listSearchIndexes`: the search indexes of a collection.

use windrow_collection::Namespace;
use windrow_document::{DocumentBuf, ValueRef};
use windrow_query::SearchIndexName;

use super::Known;
use crate::search_indexes;

/// Returns one document an index, or that of the index that is asked for.
pub fn tell(
    known: &Known,
    namespace: &Namespace,
    wanted: Option<&SearchIndexName>,
) -> Vec<DocumentBuf> {
    let Some(collection) = known.engine.collection(namespace) else {
        return Vec::new();
    };
    let mut listed = search_indexes::list(&collection, &known.host);
    if let Some(wanted) = wanted {
        let (field, value) = match wanted {
            SearchIndexName::Id(id) => ("id", id),
            SearchIndexName::Name(name) => ("name", name),
        };
        listed.retain(|one| one.get(field) == Some(ValueRef::String(value)));
    }
    listed
}
