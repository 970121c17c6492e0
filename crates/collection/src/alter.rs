//! Changes of a collection's name, its options and the options of its indexes.
//!
//! A change that assigns a name takes the lock of names first. Each change then takes the lock of
//! catalog changes, excludes the collection's writers, changes the catalog, and changes the memory.

use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, doc};
use windrow_index::Definition;

use crate::catalog::ddl_event::{DdlEvent, DdlKind};
use crate::catalog::namespace::Namespace;
use crate::catalog::rows::{CollectionRow, IndexRow};
use crate::collection::Collection;
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::CollectionUuid;
use crate::index::Index;
use crate::new_collection::random_uuid;
use crate::transaction_locks::WaitControl;

/// The option of a collection that ends with the process.
const TEMPORARY: &str = "temp";

/// The options of a rename.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renaming {
    /// Drop a collection that has the new name, in the same step.
    pub drop_target: bool,
    /// Keep the option `temp`, so that the collection ends with the process.
    pub stay_temporary: bool,
    /// The UUID that the renamed collection must have. `None`: any.
    pub source: Option<CollectionUuid>,
    /// The UUID that the dropped collection must have. `None`: any.
    pub target: Option<CollectionUuid>,
}

impl Engine {
    /// Renames a collection, possibly into another database. Fails with
    /// [`Error::CollectionChanged`] if a collection has another UUID than `how` requires.
    pub fn rename(&self, from: &Namespace, to: &Namespace, how: &Renaming) -> Result<(), Error> {
        loop {
            match self.rename_found(from, to, how) {
                Err(Error::CollectionChanged(_)) if how.source.or(how.target).is_none() => {}
                ended => return ended,
            }
        }
    }

    /// Renames. Fails with [`Error::CollectionChanged`] also if other collections got the names
    /// while it waited for transactions.
    fn rename_found(&self, from: &Namespace, to: &Namespace, how: &Renaming) -> Result<(), Error> {
        let found = [from, to].map(|name| self.collection(name));
        let interrupt = || self.core.check_progress();
        // Before the lock of names, because transactions that use the collections may wait for that
        // lock to create others.
        let exclusions: Result<Vec<_>, _> = found
            .iter()
            .flatten()
            .map(|it| it.exclude(&interrupt))
            .collect();
        let _ddl_guards = exclusions?;
        let _naming = self.collections.naming.lock();
        let [source, target] = [from, to].map(|name| self.collection(name));
        let waited_for = found.iter().map(|it| it.as_ref().map(Arc::as_ptr));
        let now = [&source, &target]
            .into_iter()
            .map(|it| it.as_ref().map(Arc::as_ptr));
        if !waited_for.eq(now) {
            return Err(Error::CollectionChanged(from.to_string()));
        }
        let source = match source {
            Some(source) => source,
            None if self.view(from)?.is_some() => return Err(Error::IsView(from.to_string())),
            None => return Err(Error::NamespaceNotFound(from.to_string())),
        };
        let is_other = |found: Option<&Arc<Collection>>, required: Option<CollectionUuid>| {
            required.is_some() && found.map(|it| it.uuid()) != required
        };
        if is_other(Some(&source), how.source) || is_other(target.as_ref(), how.target) {
            return Err(Error::CollectionChanged(from.to_string()));
        }
        let is_taken = (target.is_some() && !how.drop_target) || self.view(to)?.is_some();
        if from == to || is_taken {
            return Err(Error::NamespaceExists(to.to_string()));
        }
        self.collections.check_case(&to.database)?;
        self.change_name(&source, target.as_ref(), to, how)
    }

    /// Gives a collection the free name `to`, and drops `target`, which has the name. Called with
    /// the lock of names, while no transaction uses the collections.
    fn change_name(
        &self,
        source: &Arc<Collection>,
        target: Option<&Arc<Collection>>,
        to: &Namespace,
        how: &Renaming,
    ) -> Result<(), Error> {
        let _changing = self.core.catalog_change.lock();
        let source_schema = source.schema.write();
        let target_schema = target.map(|target| &target.schema);
        let _target_schema = target_schema.map(|schema| schema.write_beside(&source_schema));
        let old = source.row();
        let options = old.options.as_document();
        let options = options
            .iter()
            .filter(|(name, _)| how.stay_temporary || *name != TEMPORARY);
        let row = CollectionRow {
            namespace: to.clone(),
            options: options.collect(),
            ..CollectionRow::clone(&old)
        };
        let mut changes = row.replace(&old, source.id);
        changes.extend(self.core.retire_name(source.id, old.named()));
        let replaced = target.map(|target| target.uuid());
        changes.push(DdlEvent::rename(&old, to, replaced).put());
        if let Some(target) = target {
            changes.extend(self.drop_changes(target));
        }
        let (collections, renamed) = (self.collections.clone(), source.clone());
        let replaced = target.cloned();
        self.core.storage.catalog.change(changes, move |position| {
            // Before the new name is visible: a transaction that knows the collection by its old
            // name must not use it under the new one.
            renamed.record_change_at(position);
            let rename = || renamed.set_row(row);
            collections.rename(&renamed, replaced.as_ref(), position, rename);
        })?;
        target.map_or(Ok(()), |target| self.forget(target))
    }
}

/// Returns the options with this limit in bytes.
fn capped_options(old: Document<'_>, bytes: u64) -> DocumentBuf {
    let mut new = doc! { "capped": true, "size": (bytes as i64) };
    let others = old.iter();
    others
        .filter(|(name, _)| !matches!(*name, "capped" | "size" | "max"))
        .for_each(|(name, value)| new.push(name, value));
    new
}

/// Computes a new version of an options or index document.
pub type DocumentChange<'m, E> = Box<dyn FnOnce(Document<'_>) -> Result<DocumentBuf, E> + 'm>;

/// Changes of one collection, made in one step.
pub struct Modification<'m, E> {
    /// The change of its options.
    pub options: Option<DocumentChange<'m, E>>,
    /// The index to change.
    pub index: Option<IndexModification<'m, E>>,
    /// The event that change streams report. `None`: no event.
    pub event: Option<ModificationEvent>,
}

/// A change of the specification of an index. Only properties of its use may change, not its
/// entries.
pub struct IndexModification<'m, E> {
    /// The name of the index.
    pub name: &'m str,
    /// The change of the specification.
    pub change: DocumentChange<'m, E>,
}

/// The event of a modification for change streams.
#[derive(Clone, Debug, PartialEq)]
pub struct ModificationEvent {
    /// `operationDescription`: what was changed.
    pub description: DocumentBuf,
    /// `stateBeforeChange`.
    pub before: DocumentBuf,
}

impl<E> Default for Modification<'_, E> {
    fn default() -> Self {
        Modification {
            options: None,
            index: None,
            event: None,
        }
    }
}

impl Collection {
    /// Changes options and an index, with an event for change streams, in one log record: all or
    /// nothing.
    pub fn modify<E: From<Error>>(&self, modification: Modification<'_, E>) -> Result<(), E> {
        let core = self.core()?;
        let _ddl_guard = self.exclude(&|| core.check_progress())?;
        let _changing = core.catalog_change.lock();
        let _schema = self.schema.write();
        self.check_exists()?;
        let (old, mut changes) = (self.row(), Vec::new());
        let mut new = None;
        if let Some(change) = modification.options {
            let row = CollectionRow {
                options: change(old.options.as_document())?,
                ..CollectionRow::clone(&old)
            };
            changes.extend(row.replace(&old, self.id));
            new = Some(row);
        }
        let mut changed = None;
        if let Some(IndexModification { name, change }) = modification.index {
            let (index, definition) = self.changed_index(name, change)?;
            let old = index.row();
            let row = IndexRow {
                specification: definition.specification.clone(),
                ..old.clone()
            };
            changes.extend(row.replace(&old, self.id, index.map));
            changed = Some((index, definition));
        }
        changes.extend(modification.event.map(|event| {
            let modified = DdlEvent::new(DdlKind::Modify, &old).with_description(event.description);
            modified.with_state_before(event.before).put()
        }));
        let catalog = &core.storage.catalog;
        catalog.change(changes, |_| {}).map_err(Error::from)?;
        self.record_change(&core);
        if let Some(row) = new {
            self.set_row(row);
        }
        if let Some((index, definition)) = changed {
            self.publish_definition(&index, definition);
        }
        Ok(())
    }

    /// Returns the index, and its changed version.
    fn changed_index<E: From<Error>>(
        &self,
        name: &str,
        change: DocumentChange<'_, E>,
    ) -> Result<(Arc<Index>, Definition), E> {
        let mut indexes = self.all_indexes().into_iter();
        let found = indexes.find(|index| index.definition.name == name);
        let index = found.ok_or_else(|| Error::IndexNotFound(name.to_owned()))?;
        let specification = change(index.definition.specification.as_document())?;
        let definition = Definition::parse(specification.as_document()).map_err(Error::Language)?;
        Ok((index, definition))
    }

    /// Replaces the definition of an index for readers and writers.
    fn publish_definition(&self, index: &Index, definition: Definition) {
        if definition.hidden != index.definition.hidden {
            index.reset_uses();
        }
        let changed = Arc::new(index.with_definition(definition));
        self.change_state(|state| {
            let found = state.indexes.iter_mut();
            for state in found.filter(|state| state.index.map == changed.map) {
                state.index = changed.clone();
            }
        });
    }

    /// Replaces the options by the changed ones.
    pub fn change_options<E: From<Error>>(
        &self,
        change: impl FnOnce(Document<'_>) -> Result<DocumentBuf, E>,
    ) -> Result<(), E> {
        self.modify(Modification {
            options: Some(Box::new(change)),
            ..Modification::default()
        })
    }

    /// Converts the collection to a capped one of at most this many bytes. Deletes the oldest
    /// documents that exceed it, and all indexes but the one on `_id`. As in MongoDB, the
    /// collection gets a new UUID, which invalidates plans and index filters of the old one. If
    /// `wait_control` interrupts the deletion, the next insert continues it.
    pub fn cap_to(&self, bytes: u64, wait_control: &dyn WaitControl) -> Result<(), Error> {
        let names = self
            .all_indexes()
            .into_iter()
            .map(|index| index.definition.name.clone());
        names
            .filter(|name| name != Definition::new_id_index(None).name.as_str())
            .try_for_each(|name| self.drop_index(&name))?;
        self.become_capped(bytes)?;
        self.cap()
            .map_or(Ok(()), |cap| self.trim(&cap, 0, wait_control))
    }

    /// Changes options and UUID. Change streams see a collection of a temporary name that takes
    /// this one's name; they do not see the deleted documents.
    fn become_capped(&self, bytes: u64) -> Result<(), Error> {
        let core = self.core()?;
        let _ddl_guard = self.exclude(&|| core.check_progress())?;
        let _changing = core.catalog_change.lock();
        let _schema = self.schema.write();
        self.check_exists()?;
        let old = self.row();
        let row = CollectionRow {
            uuid: random_uuid(core.options.random),
            options: capped_options(old.options.as_document(), bytes),
            ..CollectionRow::clone(&old)
        };
        let mut copy = row.clone();
        copy.namespace.collection = format!("tmp.convertToCapped.{}", old.namespace.collection);
        let mut changes = row.replace(&old, self.id);
        changes.extend(core.retire_name(self.id, old.named()));
        changes.push(DdlEvent::rename(&copy, &row.namespace, Some(old.uuid)).put());
        core.storage.catalog.change(changes, |_| {})?;
        self.record_change(&core);
        self.set_row(row);
        Ok(())
    }

    /// Fails if the collection was dropped.
    pub(crate) fn check_exists(&self) -> Result<(), Error> {
        if self.state().dropped {
            Err(Error::NamespaceNotFound(self.namespace().to_string()))
        } else {
            Ok(())
        }
    }
}
