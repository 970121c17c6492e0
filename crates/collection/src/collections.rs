//! The collections of an engine, by name and by id.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;

use windrow_fold::Position;

use crate::catalog::namespace::{self, Namespace};
use crate::collection::Collection;
use crate::core::Core;
use crate::error::Error;
use crate::ids::CollectionId;
use crate::lock_order::{OrderedLock, Rank};
use crate::name_history::{NameEnd, NameHistory};

/// The collections of an engine.
pub(crate) struct Collections {
    pub core: Arc<Core>,
    /// Held from the check that a name is free until a collection or view has it.
    pub naming: OrderedLock,
    all: RwLock<CollectionTable>,
    name_history: NameHistory,
}

#[derive(Default)]
struct CollectionTable {
    by_name: BTreeMap<Namespace, Arc<Collection>>,
    by_id: HashMap<CollectionId, Arc<Collection>>,
}

impl std::fmt::Debug for Collections {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.names()).finish()
    }
}

impl Collections {
    pub fn new(core: Arc<Core>) -> Collections {
        Collections {
            core,
            naming: OrderedLock::new(Rank::Naming),
            all: RwLock::default(),
            name_history: NameHistory::default(),
        }
    }

    /// Returns all collections, sorted by name.
    pub fn all(&self) -> Vec<Arc<Collection>> {
        self.all.read().by_name.values().cloned().collect()
    }

    pub fn names(&self) -> Vec<Namespace> {
        self.all.read().by_name.keys().cloned().collect()
    }

    pub fn by_name(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.all.read().by_name.get(namespace).cloned()
    }

    /// Fails if a new database's name differs from an existing one only in the case of letters. The
    /// result holds as long as the caller has the lock of names.
    pub fn check_case(&self, database: &str) -> Result<(), Error> {
        let all = self.all.read();
        let first = Namespace {
            database: database.to_owned(),
            collection: String::new(),
        };
        let next = all.by_name.range(first..).next();
        if next.is_some_and(|(name, _)| name.database == database) {
            Ok(())
        } else {
            namespace::check_case(database, all.by_name.keys())
        }
    }

    pub fn by_id(&self, id: CollectionId) -> Option<Arc<Collection>> {
        self.all.read().by_id.get(&id).cloned()
    }

    pub fn insert(&self, collection: &Arc<Collection>) {
        let mut all = self.all.write();
        let name = collection.namespace();
        all.by_name.insert(name, collection.clone());
        all.by_id.insert(collection.id, collection.clone());
    }

    /// Returns the collection that had a name at the position of an open snapshot. Fails if it
    /// cannot be read any more.
    pub fn by_name_at(
        &self,
        namespace: &Namespace,
        position: Position,
    ) -> Result<Option<Arc<Collection>>, Error> {
        // The current name is read first: if the collection loses the name in between, the history
        // contains it by then.
        let now = self.by_name(namespace).map(|it| (it.named_from(), it));
        match now.filter(|(named_from, _)| *named_from <= position) {
            Some((_, it)) => Ok(Some(it)),
            None => self.name_history.at(namespace, position),
        }
    }

    /// Removes a collection that was dropped at a position. Called with the lock of catalog
    /// changes, before any snapshot can have this position.
    pub fn drop_at(&self, collection: &Arc<Collection>, position: Position) {
        self.name_history
            .add(collection, position, NameEnd::Dropped);
        self.remove(collection);
    }

    /// Removes former names and dropped collections that no snapshot can read.
    pub fn forget_name_history(&self) {
        if self.name_history.is_empty() {
            return;
        }
        let bytes_max = self.core.options.tail_bytes;
        self.name_history
            .forget(self.core.oldest_position(), bytes_max);
    }

    pub fn remove(&self, collection: &Collection) {
        let mut all = self.all.write();
        all.by_name.remove(&collection.namespace());
        all.by_id.remove(&collection.id);
    }

    /// Renames a collection in one step for concurrent lookups; `rename` changes the name as the
    /// catalog did at the position. `replaced` is dropped. Called with the lock of catalog changes,
    /// before any snapshot can have this position.
    pub fn rename(
        &self,
        collection: &Arc<Collection>,
        replaced: Option<&Arc<Collection>>,
        position: Position,
        rename: impl FnOnce(),
    ) {
        self.name_history
            .add(collection, position, NameEnd::Renamed);
        if let Some(replaced) = replaced {
            self.name_history.add(replaced, position, NameEnd::Dropped);
        }
        let mut all = self.all.write();
        all.by_name.remove(&collection.namespace());
        rename();
        collection.set_named_from(position);
        let name = collection.namespace();
        all.by_name.insert(name, collection.clone());
        if let Some(replaced) = replaced {
            all.by_id.remove(&replaced.id);
        }
    }

    /// Returns the bytes of all sections before compression.
    pub fn bytes_raw(&self) -> u64 {
        let of_collection = |collection: &Arc<Collection>| -> u64 {
            let state = collection.state();
            let indexes = state.indexes.iter().map(|it| it.sections.bytes_raw());
            state.records.bytes_raw() + indexes.sum::<u64>()
        };
        self.all().iter().map(of_collection).sum()
    }
}
