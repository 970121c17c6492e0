//! What plans must keep to, whatever a query asks for: index filters, and no scans of collections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use windrow_document::{Document, DocumentBuf, order};
use windrow_index::Definition;

use crate::shape::{Shape, ShapeParts};

/// The restrictions of all queries of a server. They end with the process.
#[derive(Debug, Default)]
pub struct Restrictions {
    no_table_scan: AtomicBool,
    /// By the collection's UUID, in the order in which they were set. A collection that takes the name of
    /// another starts without filters.
    filters: RwLock<HashMap<[u8; 16], Vec<IndexFilter>>>,
}

/// The indexes that queries of a shape may use, and no others.
#[derive(Clone, Debug)]
pub struct IndexFilter {
    pub shape: Shape,
    /// The shape as it was asked for.
    pub parts: ShapeParts,
    pub indexes: Vec<IndexName>,
}

/// How an index filter names an index.
#[derive(Clone, Debug)]
pub enum IndexName {
    Name(String),
    Key(DocumentBuf),
}

impl IndexName {
    fn means(&self, definition: &Definition) -> bool {
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
    pub fn allows(&self, definition: &Definition) -> bool {
        self.indexes.iter().any(|index| index.means(definition))
    }
}

impl Restrictions {
    /// Whether a filter must not be answered by a scan of the collection.
    pub fn forbids_table_scans(&self) -> bool {
        self.no_table_scan.load(Ordering::Relaxed)
    }

    pub fn forbid_table_scans(&self, forbid: bool) {
        self.no_table_scan.store(forbid, Ordering::Relaxed);
    }

    /// Whether any query may be restricted: most servers never look further.
    pub fn has_filters(&self) -> bool {
        let filters = self.filters.read().unwrap_or_else(PoisonError::into_inner);
        !filters.is_empty()
    }

    /// The filter for queries of this shape.
    pub fn filter(&self, collection: [u8; 16], shape: &Shape) -> Option<IndexFilter> {
        let filters = self.filters.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = filters.get(&collection)?.iter();
        found.find(|filter| filter.shape == *shape).cloned()
    }

    /// All filters of a collection.
    pub fn filters(&self, collection: [u8; 16]) -> Vec<IndexFilter> {
        let filters = self.filters.read().unwrap_or_else(PoisonError::into_inner);
        filters.get(&collection).cloned().unwrap_or_default()
    }

    /// Sets a filter in place of that of the same shape.
    pub fn set_filter(&self, collection: [u8; 16], filter: IndexFilter) {
        let mut filters = self.filters.write().unwrap_or_else(PoisonError::into_inner);
        let all = filters.entry(collection).or_default();
        all.retain(|other| other.shape != filter.shape);
        all.push(filter);
    }

    /// Removes the filters of all collections but these.
    pub fn retain_filters(&self, is_kept: impl Fn(&[u8; 16]) -> bool) {
        let mut filters = self.filters.write().unwrap_or_else(PoisonError::into_inner);
        filters.retain(|collection, _| is_kept(collection));
    }

    /// Takes the filter of a shape away, or (None) all of the collection.
    pub fn clear_filters(&self, collection: [u8; 16], shape: Option<&Shape>) {
        let mut filters = self.filters.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = filters.get_mut(&collection) {
            all.retain(|filter| shape.is_some_and(|shape| filter.shape != *shape));
            if all.is_empty() {
                filters.remove(&collection);
            }
        }
    }
}
