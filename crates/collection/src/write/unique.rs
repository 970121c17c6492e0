//! Unique keys of inserts: claims and lookups.

use std::sync::Arc;

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf, Value, key};
use windrow_fold::RecordId;
use windrow_index::{Definition, KeyKind, Scratch};
use windrow_invariant::Bug;

use super::entries::entries_of;
use super::insert_keys::{InsertKey, InsertKeys};
use super::key_locking::{KeyLocker, KeyOwnership, holder};
use super::plan::{AcceptedDocument, InsertPlan};
use super::{InsertError, InsertOrder};
use crate::collection::Collection;
use crate::error::{DuplicateKey, Error};
use crate::index::Index;
use crate::read::Reader;
use crate::state::IndexState;
use crate::transaction::{Transaction, conflict};
use crate::transaction_locks::TransactionWaiter;
use crate::unique_keys::claims::Claim;

impl Collection {
    /// Claims the unique keys of an insert's documents, and removes documents from the plan whose
    /// keys exist. `ids_are_claimed`: the `_id`s are claimed already and need no lookup.
    pub(super) fn claim_unique(
        &self,
        documents: &Bytes,
        order: InsertOrder,
        ids_are_claimed: bool,
        indexes: &[IndexState],
        claiming: ClaimContext<'_, '_>,
        mut plan: InsertPlan,
    ) -> Result<PlanAttempt, Error> {
        let unique = |state: &&IndexState| {
            let is_claimed = ids_are_claimed && state.index.definition.is_of_ids();
            state.index.enforces_uniqueness() && !is_claimed
        };
        let indexes: Vec<&IndexState> = indexes.iter().filter(unique).collect();
        let mut keys = InsertKeys::new(indexes);
        let document =
            |accepted: &AcceptedDocument| accepted.bytes(documents).map(Document::from_validated);
        let accepted: Vec<Document<'_>> = plan
            .accepted
            .iter()
            .map(document)
            .collect::<Result<_, Bug>>()?;
        keys.add(&accepted)?;
        let has_duplicates = keys.claim(claiming.claim)?;
        if claiming.transaction.is_none()
            && let Some(holder) = keys.blocking_transaction(self)?
        {
            return Ok(PlanAttempt::HeldBy(holder));
        }
        if let Some(transaction) = claiming.transaction {
            // Claimed before any lookup: an earlier holder of a key has committed by then, and is
            // visible.
            keys.sort();
            keys.lock(&KeyLocker::new(self, transaction)?)?;
        }
        let check = UniquenessCheck::new(self)?;
        keys.mark_absent(&check.newest)?;
        if claiming.transaction.is_some() || has_duplicates || keys.have_lookups() {
            keys.sort();
            self.remove_duplicates(&mut keys, documents, order, &check, &mut plan)?;
        }
        plan.hashes = keys.hashes()?;
        Ok(PlanAttempt::Plan(plan))
    }

    /// Removes documents from the plan that have an existing key.
    fn remove_duplicates(
        &self,
        keys: &mut InsertKeys<'_>,
        documents: &Bytes,
        order: InsertOrder,
        check: &UniquenessCheck<'_>,
        plan: &mut InsertPlan,
    ) -> Result<(), Error> {
        let numbers_by_document = keys.numbers_by_document(plan.accepted.len())?;
        let mut accepted = Vec::with_capacity(plan.accepted.len());
        for (document, numbers) in std::mem::take(&mut plan.accepted)
            .into_iter()
            .zip(numbers_by_document)
        {
            match self.take_keys(keys, &numbers, check)? {
                None => accepted.push(document),
                Some(existing) => {
                    let bytes = document.bytes(documents)?;
                    let error =
                        self.duplicate_error(keys, existing, Document::from_validated(bytes))?;
                    let index = document.index;
                    plan.errors.push(InsertError { index, error });
                }
            }
            if plan.ends_with_error(order) {
                break;
            }
        }
        plan.errors.sort_by_key(|refused| refused.index);
        if order.is_ordered() {
            plan.errors.truncate(1);
        }
        plan.count = accepted.len();
        plan.accepted = accepted;
        Ok(())
    }

    /// Takes a document's keys. Returns the number of one that exists already.
    fn take_keys(
        &self,
        keys: &mut InsertKeys<'_>,
        numbers: &[usize],
        check: &UniquenessCheck<'_>,
    ) -> Result<Option<usize>, Error> {
        for number in numbers {
            let key = keys.key(*number)?;
            let lookup = KeyLookup {
                index: key.index,
                key: key.bytes,
                look_up: key.first_equal.look_up,
                ownership: key.first_equal.ownership,
            };
            if key.first_equal.is_taken || check.exists(&lookup, None)? {
                return Ok(Some(*number));
            }
        }
        numbers.iter().try_for_each(|number| keys.take(*number))?;
        Ok(None)
    }

    /// Returns the error of a document with an existing key.
    fn duplicate_error(
        &self,
        keys: &InsertKeys<'_>,
        number: usize,
        document: Document<'_>,
    ) -> Result<Error, Error> {
        let InsertKey { index, bytes, .. } = keys.key(number)?;
        let entries = entries_of(index, document, &mut Scratch::default())?;
        // Only the message needs the shape; without it, 1.0 is shown as 1.
        let shape = entries.get(bytes).map(Vec::as_slice).unwrap_or_default();
        Ok(self.duplicate(index, bytes, shape))
    }

    /// Returns the error for a duplicate key of an index. `shape` may be empty if it is not known.
    pub(crate) fn duplicate(&self, index: &Index, key: &[u8], shape: &[u8]) -> Error {
        let definition = &index.definition;
        Error::DuplicateKey(Box::new(DuplicateKey {
            namespace: self.namespace().to_string(),
            index: definition.name.clone(),
            collation: definition
                .collation
                .as_ref()
                .map(|it| it.specification().to_buf()),
            key_pattern: definition.key_pattern().to_buf(),
            key_value: key_value(definition, key, shape),
        }))
    }
}

/// The claim of an insert, and its transaction.
pub(super) struct ClaimContext<'a, 'c> {
    pub claim: &'a mut Claim<'c>,
    /// The transaction, which locks the keys until its end.
    pub transaction: Option<&'a Transaction>,
}

/// The result of planning an insert.
pub(super) enum PlanAttempt {
    Plan(InsertPlan),
    /// The end of this transaction decides whether a key is free. The caller must hold nothing
    /// while it waits.
    HeldBy(Arc<TransactionWaiter>),
}

/// Looks up claimed keys, and the locks of a transaction if there is one.
pub(super) struct UniquenessCheck<'a> {
    collection: &'a Collection,
    newest: Reader,
}

/// A key to look up.
pub(super) struct KeyLookup<'a> {
    pub index: &'a Index,
    pub key: &'a [u8],
    /// `true` if it must be looked up because a record may have it.
    pub look_up: bool,
    /// What the transaction knows about it. `None` outside of transactions.
    pub ownership: Option<KeyOwnership>,
}

impl<'a> UniquenessCheck<'a> {
    pub fn new(collection: &'a Collection) -> Result<UniquenessCheck<'a>, Error> {
        Ok(UniquenessCheck {
            collection,
            newest: collection.reader()?,
        })
    }

    /// Returns `true` if a record except `own` has the key. In a transaction, a record that only
    /// others can see is a conflict.
    pub fn exists(&self, lookup: &KeyLookup<'_>, own: Option<RecordId>) -> Result<bool, Error> {
        let is_known = || {
            Ok::<_, Error>(lookup.look_up && holder(&self.newest, lookup.index, lookup.key, own)?)
        };
        match lookup.ownership {
            Some(KeyOwnership::Visible) => Ok(true),
            Some(KeyOwnership::AlreadyLocked) => Ok(false),
            Some(KeyOwnership::NewlyLocked) if is_known()? => {
                Err(conflict(self.collection, "a unique key"))
            }
            Some(KeyOwnership::NewlyLocked) => Ok(false),
            None => is_known(),
        }
    }
}

/// Returns the key's values under the names of the index's fields.
pub(crate) fn key_value(definition: &Definition, key: &[u8], shape: &[u8]) -> DocumentBuf {
    // The payload of a text index is no shape.
    let shape = if definition.is_text() { &[] } else { shape };
    let mut reader = key::KeyReader::new(key, shape);
    // Fields without a value in the key, such as those after the terms of a text index, are shown
    // as null.
    let mut read = |descending| reader.value(descending).unwrap_or(Value::Null);
    let mut value = DocumentBuf::new();
    for field in &definition.fields {
        let descending = field.kind == KeyKind::Descending;
        value.push(&field.path.to_string(), read(descending));
        if field.kind == KeyKind::Text {
            value.push("_ftsx", read(false));
        }
    }
    value
}
