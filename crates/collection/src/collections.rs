//! The collections of an engine, by name and by number.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;

use windrow_fold::Position;

use crate::collection::Collection;
use crate::core::Core;
use crate::error::Error;
use crate::ids::CollectionId;
use crate::lock_order::{OrderedLock, Rank};
use crate::name_history::NameHistory;
use crate::namespace::{self, Namespace};

/// See the module.
pub(crate) struct Collections {
    pub core: Arc<Core>,
    /// Held from the look whether a name is free until it is given: to a collection or a view.
    pub naming: OrderedLock,
    all: RwLock<All>,
    name_history: NameHistory,
}

#[derive(Default)]
struct All {
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

    /// All of them, by name.
    pub fn all(&self) -> Vec<Arc<Collection>> {
        self.all.read().by_name.values().cloned().collect()
    }

    pub fn names(&self) -> Vec<Namespace> {
        self.all.read().by_name.keys().cloned().collect()
    }

    pub fn by_name(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.all.read().by_name.get(namespace).cloned()
    }

    /// Fails where a database is to be made whose name differs from that of another one in the case of
    /// letters alone. That stays so for who has the lock of names.
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

    /// The collection that had a name at a position that is being read at. Error where it cannot be read
    /// any more.
    pub fn by_name_at(
        &self,
        namespace: &Namespace,
        position: Position,
    ) -> Result<Option<Arc<Collection>>, Error> {
        // Asked first, both of it: one that loses its name meanwhile is in the past before.
        let now = self.by_name(namespace).map(|it| (it.named_from(), it));
        match now.filter(|(named_from, _)| *named_from <= position) {
            Some((_, it)) => Ok(Some(it)),
            None => self.name_history.at(namespace, position),
        }
    }

    /// Takes out a collection that was dropped at a position. Called with the lock of catalog changes, before
    /// anybody can read at the position.
    pub fn drop_at(&self, collection: &Arc<Collection>, position: Position) {
        self.name_history.add(collection, position, true);
        self.remove(collection);
    }

    /// Forgets names and collections that nobody reads any more.
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

    /// Lets `rename` change the name of a collection, as the catalog did at a position, in one step for who
    /// looks for it. `replaced` goes. Called with the lock of catalog changes, before anybody can read at the
    /// position.
    pub fn rename(
        &self,
        collection: &Arc<Collection>,
        replaced: Option<&Arc<Collection>>,
        position: Position,
        rename: impl FnOnce(),
    ) {
        self.name_history.add(collection, position, false);
        if let Some(replaced) = replaced {
            self.name_history.add(replaced, position, true);
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

    /// Bytes that the sections of all collections have, before they are compressed.
    pub fn bytes_raw(&self) -> u64 {
        let of_collection = |collection: &Arc<Collection>| -> u64 {
            let state = collection.state();
            let indexes = state.indexes.iter().map(|it| it.sections.bytes_raw());
            state.records.bytes_raw() + indexes.sum::<u64>()
        };
        self.all().iter().map(of_collection).sum()
    }
}
