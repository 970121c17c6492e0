//! Unique keys that a transaction locks.

use std::sync::Arc;

use windrow_fold::RecordId;
use windrow_invariant::Bug;

use crate::collection::Collection;
use crate::error::Error;
use crate::index::Index;
use crate::read::Reader;
use crate::transaction::Transaction;
use crate::transaction_locks::{self, LockOutcome, TransactionWaiter};

/// Locks keys for a transaction, whose snapshot shows some of them.
pub(super) struct KeyLocker<'a> {
    collection: &'a Collection,
    transaction: &'a Transaction,
    reader: Reader,
}

/// The state of a key in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOwnership {
    /// It sees a record with the key.
    Visible,
    /// It had locked the key before.
    AlreadyLocked,
    /// It has just locked the key, and has not seen changes since its begin.
    NewlyLocked,
}

impl<'a> KeyLocker<'a> {
    pub fn new(
        collection: &'a Collection,
        transaction: &'a Transaction,
    ) -> Result<KeyLocker<'a>, Error> {
        Ok(KeyLocker {
            collection,
            transaction,
            reader: transaction.reader(collection)?,
        })
    }

    /// Locks a key that no record except `own` has at the snapshot of the transaction.
    pub fn lock(
        &self,
        index: &Index,
        key: &[u8],
        own: Option<RecordId>,
    ) -> Result<KeyOwnership, Error> {
        if holder(&self.reader, index, key, own)? {
            return Ok(KeyOwnership::Visible);
        }
        let taken = self.transaction.lock_key(self.collection, index.map, key)?;
        Ok(match taken {
            LockOutcome::Acquired => KeyOwnership::NewlyLocked,
            _ => KeyOwnership::AlreadyLocked,
        })
    }
}

/// Returns the transaction that must end before it is known whether a record except `own` has the
/// key. If a committed record has it, there is no wait, even if a transaction has deleted that
/// record: the write fails as a duplicate, as in MongoDB.
pub(super) fn blocking_transaction(
    collection: &Collection,
    index: &Index,
    key: &[u8],
    own: Option<RecordId>,
) -> Result<Option<Arc<TransactionWaiter>>, Error> {
    let target = transaction_locks::LockTarget::Key(index.map, key.to_vec());
    match collection.transaction_locks.holder(&target) {
        Some(_) if holder(&collection.reader()?, index, key, own)? => Ok(None),
        other => Ok(other),
    }
}

/// Returns `true` if the reader sees a record except `own` with the key.
pub(super) fn holder(
    reader: &Reader,
    index: &Index,
    key: &[u8],
    own: Option<RecordId>,
) -> Result<bool, Error> {
    let found = reader.indexes().iter().position(|it| it.map() == index.map);
    let number = found.ok_or_else(|| {
        // Answering "absent" for an unknown index would admit duplicates.
        let name = &index.definition.name;
        Bug::new(format!("the reader of a key lookup lacks index '{name}'"))
    })?;
    let mut cursor = reader.postings(number, key)?;
    while cursor.next()? && cursor.key() == key {
        if Some(cursor.id()) != own {
            return Ok(true);
        }
    }
    Ok(false)
}
