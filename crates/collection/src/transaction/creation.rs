//! Collections and indexes that a transaction creates.
//!
//! No other reader sees them before the commit. It has three steps:
//!
//! 1. Write the catalog rows of each collection, with a row that marks it as being created.
//! 2. Append the transaction's log record, which names the collections.
//! 3. Delete the marks.
//!
//! A start that finds a mark keeps the collection if the log contains the record, and drops it
//! otherwise. The lock of catalog changes is held throughout, so no fold truncates the record
//! before the marks are deleted.

use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_index::Definition;

use super::{PartKind, Transaction, TransactionState, conflict};
use crate::building::{CreatedIndexes, missing_indexes};
use crate::catalog::namespace::{Namespace, check_case};
use crate::catalog::rows;
use crate::collection::Collection;
use crate::error::Error;
use crate::new_collection;

impl Transaction {
    /// Creates a collection.
    pub fn create(
        &self,
        namespace: &Namespace,
        options: Document<'_>,
    ) -> Result<Arc<Collection>, Error> {
        if self.collection(namespace)?.is_some() || self.has_view(namespace)? {
            return Err(Error::NamespaceExists(namespace.to_string()));
        }
        let mut state = self.state()?;
        self.collections.check_case(&namespace.database)?;
        check_case(&namespace.database, state.created.keys())?;
        let since = self.snapshot.position();
        let collection =
            new_collection::new_collection(&self.core, namespace, options.to_buf(), since)?;
        state.add(&collection, self, PartKind::Created);
        state.created.insert(namespace.clone(), collection.clone());
        Ok(collection)
    }

    /// Returns the collection with this name. Creates it if it does not exist. Fails if the name
    /// belongs to a view.
    pub fn collection_or_create(&self, namespace: &Namespace) -> Result<Arc<Collection>, Error> {
        match self.collection(namespace)? {
            Some(collection) => Ok(collection),
            None if self.has_view(namespace)? => Err(Error::IsView(namespace.to_string())),
            None => self.create(namespace, DocumentBuf::new().as_document()),
        }
    }

    /// Creates indexes on a collection that the transaction has created itself and that is still
    /// empty.
    pub fn create_indexes(
        &self,
        collection: &Collection,
        definitions: Vec<Definition>,
    ) -> Result<CreatedIndexes, Error> {
        let state = self.state()?;
        let part = state.parts.get(&collection.id);
        let is_new =
            part.is_some_and(|part| part.kind == PartKind::Created && part.payload.is_empty());
        let before = collection.index_count();
        let new = missing_indexes(&collection.all_indexes(), definitions)?;
        if !is_new && !new.is_empty() {
            let name = collection.namespace();
            let message = format!(
                "Cannot create new indexes on existing collection {name} in a multi-document transaction."
            );
            return Err(Error::NotInTransaction(message));
        }
        let created = new.iter().map(|one| one.name.clone()).collect();
        let new: Vec<_> = new
            .into_iter()
            .map(|one| new_collection::new_index(&self.core, one, self.snapshot.position()))
            .collect();
        collection.change_state(|state| state.indexes.extend(new));
        Ok(CreatedIndexes {
            before,
            after: collection.index_count(),
            created,
        })
    }

    /// Returns `true` if a view has this name.
    fn has_view(&self, namespace: &Namespace) -> Result<bool, Error> {
        let Some(views) = self
            .collections
            .by_name(&Namespace::views_of(&namespace.database))
        else {
            return Ok(false);
        };
        let name = namespace.to_string();
        let found = views.reader()?.find_id(ValueRef::String(&name))?;
        Ok(found.is_some())
    }

    /// Commits a transaction that created collections, in the three steps above.
    pub(super) fn append_creating(&self, state: &mut TransactionState) -> Result<(), Error> {
        let core = &*self.core;
        let _naming = self.collections.naming.lock();
        for (namespace, created) in &state.created {
            if self.collections.by_name(namespace).is_some() || self.has_view(namespace)? {
                return Err(conflict(created, "the name"));
            }
            self.collections.check_case(&namespace.database)?;
        }
        let _changing = core.catalog_change.lock();
        let created: Vec<Arc<Collection>> = state.created.values().cloned().collect();
        let rows = created
            .iter()
            .flat_map(|it| new_collection::rows_of(core, it));
        let mut rows: Vec<_> = rows.collect();
        // Each collection's rows end with the next id, but a catalog change may contain each row
        // only once.
        let next_id = rows::put_next_id(core.next_id());
        rows.retain(|row| row.key != next_id.key);
        rows.push(next_id);
        rows.extend(created.iter().map(|it| rows::put_creation(it.id)));
        core.storage.catalog.change(rows, |_| {})?;
        let appended = self.append(state);
        if let Err(error) = appended {
            if core.storage.log.takes_writes() {
                let removed = created
                    .iter()
                    .flat_map(|it| new_collection::deletions_of(core, it));
                let marks = created.iter().map(|it| rows::delete_creation(it.id));
                let changes = removed.chain(marks).collect();
                core.storage.catalog.change(changes, |_| {})?;
            }
            return Err(error);
        }
        created.iter().for_each(|it| it.record_change(core));
        let marks = created.iter().map(|it| rows::delete_creation(it.id));
        core.storage.catalog.change(marks.collect(), |_| {})?;
        Ok(())
    }
}
