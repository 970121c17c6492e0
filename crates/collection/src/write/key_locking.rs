//! Keys that a transaction takes hold of.

use std::sync::Arc;

use windrow_fold::RecordId;
use windrow_invariant::Bug;

use crate::collection::Collection;
use crate::error::Error;
use crate::index::Index;
use crate::read::Reader;
use crate::transaction::Transaction;
use crate::transaction_locks::{self, LockOutcome, TransactionWaiter};

/// Takes hold of keys for a transaction, which sees some of them.
pub(super) struct KeyLocker<'a> {
    collection: &'a Collection,
    transaction: &'a Transaction,
    reader: Reader,
}

/// What a transaction has of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOwnership {
    /// It sees a record that has it.
    Visible,
    /// It held it before.
    AlreadyLocked,
    /// What has happened to it since the transaction began, it has not seen.
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

    /// TransactionLocks a key that no record other than `own` has, as far as the transaction sees.
    pub fn hold(
        &self,
        index: &Index,
        key: &[u8],
        own: Option<RecordId>,
    ) -> Result<KeyOwnership, Error> {
        if holder(&self.reader, index, key, own)? {
            return Ok(KeyOwnership::Visible);
        }
        let taken = self.transaction.hold_key(self.collection, index.map, key)?;
        Ok(match taken {
            LockOutcome::Acquired => KeyOwnership::NewlyLocked,
            _ => KeyOwnership::AlreadyLocked,
        })
    }
}

/// A transaction whose end decides whether a record other than `own` has the key, if there is one. That a
/// committed record has the key needs no wait, even if a transaction has deleted it: the write fails then
/// as a duplicate, as in MongoDB.
pub(super) fn awaited(
    collection: &Collection,
    index: &Index,
    key: &[u8],
    own: Option<RecordId>,
) -> Result<Option<Arc<TransactionWaiter>>, Error> {
    let held = transaction_locks::LockTarget::Key(index.map, key.to_vec());
    match collection.transaction_locks.holder(&held) {
        Some(_) if holder(&collection.reader()?, index, key, own)? => Ok(None),
        other => Ok(other),
    }
}

/// Whether a record other than `own` has the key, as far as the reader sees.
pub(super) fn holder(
    reader: &Reader,
    index: &Index,
    key: &[u8],
    own: Option<RecordId>,
) -> Result<bool, Error> {
    let found = reader.indexes().iter().position(|it| it.map() == index.map);
    let number = found.ok_or_else(|| {
        // Nobody would have the key.
        let name = &index.definition.name;
        Bug::new(format!(
            "a key is looked for in index '{name}', which the reader lacks"
        ))
    })?;
    let mut cursor = reader.postings(number, key)?;
    while cursor.next()? && cursor.key() == key {
        if Some(cursor.id()) != own {
            return Ok(true);
        }
    }
    Ok(false)
}
