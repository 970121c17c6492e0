//! The former names of collections. A log record contains only a collection's id, so change streams
//! that read old records need the name of that time.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use windrow_fold::Position;
use windrow_storage::{Catalog, RowChange, StorageError};

use crate::catalog::rows::NamedRow;
use crate::ids::CollectionId;

/// The former names of collections that were dropped or renamed, while the log retains records from
/// before.
#[derive(Debug, Default)]
pub(crate) struct RetiredNames {
    /// By collection and the last position at which it had the name.
    past: RwLock<BTreeMap<(CollectionId, Position), NamedRow>>,
}

impl RetiredNames {
    /// Loads the names that the catalog contains.
    pub fn load(&self, catalog: &Catalog) -> Result<(), StorageError> {
        let mut past = self.past.write();
        for former in NamedRow::former(catalog)? {
            past.insert((former.collection, former.until), former.name);
        }
        Ok(())
    }

    /// Returns the name that a collection had at a position, or `None` if it still has that name.
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

    /// Removes names that no reader of the log from this position on needs. Returns the changes
    /// that delete their rows.
    pub fn forget_before(&self, first: Position) -> Vec<RowChange> {
        let mut past = self.past.write();
        let mut removed = Vec::new();
        past.retain(|(collection, until), _| {
            let is_kept = *until >= first;
            if !is_kept {
                removed.push(NamedRow::delete(*collection, *until));
            }
            is_kept
        });
        removed
    }
}
