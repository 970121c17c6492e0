//! The names that collections have had: a record of the log says only a collection's number, and who
//! reads it later has to know how it was called then.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use windrow_fold::Position;
use windrow_storage::{Catalog, RowChange, StorageError};

use crate::ids::CollectionId;
use crate::rows::{self, NamedRow};

/// Of collections that were dropped or renamed, while the log may still be asked about them.
#[derive(Debug, Default)]
pub(crate) struct RetiredNames {
    /// By collection, and the position up to which it was so.
    past: RwLock<BTreeMap<(CollectionId, Position), NamedRow>>,
}

impl RetiredNames {
    /// Takes what the catalog remembers.
    pub fn load(&self, catalog: &Catalog) -> Result<(), StorageError> {
        let mut past = self.past.write();
        for (key, value) in catalog.scan(&[rows::NAMED]) {
            let [collection, until] = rows::numbers_of(&key)?;
            let name = (CollectionId(collection), Position(until));
            past.insert(name, NamedRow::read(&value)?);
        }
        Ok(())
    }

    /// The name that a collection had at this position; None where it has it still.
    pub fn at(&self, collection: CollectionId, position: Position) -> Option<NamedRow> {
        let past = self.past.read();
        let (_, name) = past
            .range((collection, position)..=(collection, Position::MAX))
            .next()?;
        Some(name.clone())
    }

    pub fn retire(&self, collection: CollectionId, until: Position, name: NamedRow) {
        self.past.write().insert((collection, until), name);
    }

    /// Forgets what nobody can ask for who reads the log from this position on; the rows that go.
    pub fn forget_before(&self, first: Position) -> Vec<RowChange> {
        let mut past = self.past.write();
        let mut gone = Vec::new();
        past.retain(|(collection, until), _| {
            let is_kept = *until >= first;
            if !is_kept {
                let key = rows::key(rows::NAMED, &[collection.0, until.0]);
                gone.push(RowChange::delete(key));
            }
            is_kept
        });
        gone
    }
}
