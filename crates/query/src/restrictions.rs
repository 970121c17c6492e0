//! Restrictions that apply to all queries of a server: index filters and `notablescan`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use windrow_collection::CollectionUuid;
use windrow_document::{Document, DocumentBuf, order};
use windrow_index::Definition;

use crate::shape::{Shape, ShapeParts};

/// The restrictions of a server. They are kept in memory only and end with the process.
#[derive(Debug, Default)]
pub struct Restrictions {
    no_table_scan: AtomicBool,
    /// Index filters by collection UUID, in the order in which they were set. The UUID keeps a new
    /// collection from inheriting the filters of an earlier one with the same name.
    filters: RwLock<HashMap<CollectionUuid, Vec<IndexFilter>>>,
}

/// The only indexes that queries of a shape may use.
#[derive(Clone, Debug)]
pub struct IndexFilter {
    /// The shape of the queries that the filter applies to.
    pub shape: Shape,
    /// The shape as the client wrote it.
    pub parts: ShapeParts,
    /// The indexes that the queries may use.
    pub indexes: Vec<IndexName>,
}

/// How an index filter refers to an index.
#[derive(Clone, Debug)]
pub enum IndexName {
    /// By the name of the index.
    Name(String),
    /// By the key pattern of the index.
    Key(DocumentBuf),
}

impl IndexName {
    fn matches(&self, definition: &Definition) -> bool {
        match self {
            IndexName::Name(name) => definition.name == *name,
            IndexName::Key(key) => same_key(definition.key_pattern(), key.as_document()),
        }
    }
}

fn same_key(one: Document<'_>, other: Document<'_>) -> bool {
    order::compare_documents(one, other).is_eq()
}

impl IndexFilter {
    /// Returns `true` if queries of the shape may use the index.
    pub fn allows(&self, definition: &Definition) -> bool {
        self.indexes.iter().any(|index| index.matches(definition))
    }
}

impl Restrictions {
    /// Returns `true` if the server runs with `notablescan`.
    pub fn forbids_table_scans(&self) -> bool {
        self.no_table_scan.load(Ordering::Relaxed)
    }

    /// Turns `notablescan` on or off.
    pub fn forbid_table_scans(&self, forbid: bool) {
        self.no_table_scan.store(forbid, Ordering::Relaxed);
    }

    /// Returns `true` if any index filter is set. Most servers have none, so this check comes
    /// first.
    pub fn has_filters(&self) -> bool {
        let filters = self.filters.read().unwrap_or_else(PoisonError::into_inner);
        !filters.is_empty()
    }

    /// Returns the index filter for queries of this shape.
    pub fn filter(&self, collection: CollectionUuid, shape: &Shape) -> Option<IndexFilter> {
        let filters = self.filters.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = filters.get(&collection)?.iter();
        found.find(|filter| filter.shape == *shape).cloned()
    }

    /// Returns all index filters of a collection.
    pub fn filters(&self, collection: CollectionUuid) -> Vec<IndexFilter> {
        let filters = self.filters.read().unwrap_or_else(PoisonError::into_inner);
        filters.get(&collection).cloned().unwrap_or_default()
    }

    /// Sets an index filter. It replaces the filter of the same shape.
    pub fn set_filter(&self, collection: CollectionUuid, filter: IndexFilter) {
        let mut filters = self.filters.write().unwrap_or_else(PoisonError::into_inner);
        let all = filters.entry(collection).or_default();
        all.retain(|other| other.shape != filter.shape);
        all.push(filter);
    }

    /// Keeps only the index filters of collections for which `is_kept` returns `true`.
    pub fn retain_filters(&self, is_kept: impl Fn(CollectionUuid) -> bool) {
        let mut filters = self.filters.write().unwrap_or_else(PoisonError::into_inner);
        filters.retain(|collection, _| is_kept(*collection));
    }

    /// Removes the index filter of a shape, or all filters of the collection if `shape` is `None`.
    pub fn clear_filters(&self, collection: CollectionUuid, shape: Option<&Shape>) {
        let mut filters = self.filters.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = filters.get_mut(&collection) {
            all.retain(|filter| shape.is_some_and(|shape| filter.shape != *shape));
            if all.is_empty() {
                filters.remove(&collection);
            }
        }
    }
}
