//! Updates and deletions: lock a document, read its newest version, and change it.
//!
//! A batch collects changes of several documents for one log record. It holds the locks of its
//! documents until the record is in the log. It waits for a lock only while it holds none, so
//! batches cannot deadlock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf};
use windrow_fold::{HashedKey, Position, RecordId};
use windrow_index::{Scratch, is_mark};
use windrow_invariant::Bug;
use windrow_mql::update::UpdateDescription;

use super::checks::check_fits;
use super::difference::{changed_names, difference};
use super::entries::entries_of_stored;
use super::key_locking::{KeyLocker, blocking_transaction};
use super::options::WriteOptions;
use super::snapshot_validity::SnapshotValidity;
use super::unique::{KeyLookup, UniquenessCheck};
use crate::collection::Collection;
use crate::error::Error;
use crate::event_detail::{self, DeletionCause, RecordedVersion};
use crate::index::Index;
use crate::lock_order::{OrderedGuard, OrderedReadGuard};
use crate::read::Reader;
use crate::record::{self, IndexChange};
use crate::rules::Verdict;
use crate::transaction_locks::{LockTarget, TransactionWaiter, while_waiting};
use crate::unique_keys::claims::{self, Claim};

/// How to change a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Leave it unchanged.
    Keep,
    /// Replace it by this version, which has the same `_id`.
    Replace(DocumentBuf),
    /// Replace it by this version, with a description of the difference for change events.
    Update(DocumentBuf, UpdateDescription),
    /// Delete it.
    Delete,
    /// Delete it to make room in a capped collection, which change events do not report.
    Trim,
}

impl Change {
    /// Returns an [`Update`](Change::Update), or a [`Replace`](Change::Replace) without a
    /// description.
    pub fn described(new: DocumentBuf, description: Option<UpdateDescription>) -> Change {
        match description {
            Some(description) => Change::Update(new, description),
            None => Change::Replace(new),
        }
    }
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The document does not exist any more.
    NotFound,
    /// It was left unchanged.
    Unchanged,
    /// It was replaced.
    Replaced,
    /// It was deleted.
    Deleted,
}

/// A log record is written at this many bytes of changes, or at as many changes.
const BYTES_MAX: usize = 1 << 20;
const CHANGES_MAX: usize = 1000;
/// The time after which a batch without further changes commits, to release its locks.
const HELD_MAX: Duration = Duration::from_millis(20);

/// A batch of updates and deletions. Dropping it discards the changes that are not committed.
pub struct Batch<'c> {
    collection: &'c Collection,
    /// The log record of the changes that are not committed.
    payload: Vec<u8>,
    /// The records that these change.
    ids: Vec<RecordId>,
    locks: BTreeMap<usize, OrderedGuard<'c>>,
    claim: Claim<'c>,
    schema: Option<OrderedReadGuard<'c>>,
    /// Since when it has locked the schema.
    locked_since: Instant,
    options: WriteOptions<'c>,
    /// Whether documents of the snapshot are still the newest, so they need not be read again.
    validity: Option<SnapshotValidity>,
}

/// The result of one attempt to change a document.
enum ChangeAttempt {
    Done(Outcome),
    /// Nothing was changed, because a transaction has locked a unique key that the new version
    /// adds.
    HeldBy(Arc<TransactionWaiter>),
}

/// A unique key that a change adds.
struct UniqueKey {
    index: Arc<Index>,
    key: Vec<u8>,
    shape: Vec<u8>,
}

impl Collection {
    /// Starts a batch of changes.
    pub fn batch(&self) -> Batch<'_> {
        self.batch_with(WriteOptions::default())
    }

    /// Starts a batch of changes with other options.
    pub fn batch_with<'c>(&'c self, options: WriteOptions<'c>) -> Batch<'c> {
        Batch {
            collection: self,
            payload: record::begin(self.id),
            ids: Vec::new(),
            locks: BTreeMap::new(),
            claim: self.claims.begin(),
            schema: None,
            locked_since: Instant::now(),
            options,
            validity: None,
        }
    }
}

impl<'c> Batch<'c> {
    /// Locks a document, and changes its newest version as `decide` says.
    pub fn change<E: From<Error>>(
        &mut self,
        id: RecordId,
        decide: impl FnMut(Document<'_>) -> Result<Change, E>,
    ) -> Result<Outcome, E> {
        self.change_found(id, None, |reader| reader.get(id), decide)
    }

    /// Declares that [`change_seen`](Self::change_seen) is called with the documents of the
    /// snapshot at a position, unmodified and each once. Then it reads none of them again unless
    /// another thread changes one. `None` revokes this.
    pub fn trust_snapshot(&mut self, position: Option<Position>) {
        let position = position.filter(|_| self.options.transaction.is_none());
        self.validity = position.map(SnapshotValidity::since);
    }

    /// Changes a document like [`change`](Self::change), given any of its versions, which makes it
    /// faster to find.
    pub fn change_seen<E: From<Error>>(
        &mut self,
        id: RecordId,
        seen: Document<'_>,
        decide: impl FnMut(Document<'_>) -> Result<Change, E>,
    ) -> Result<Outcome, E> {
        let find = |reader: &Reader| reader.get_seen(id, seen);
        self.change_found(id, Some(seen), find, decide)
    }

    fn change_found<E: From<Error>>(
        &mut self,
        id: RecordId,
        seen: Option<Document<'_>>,
        find: impl Fn(&Reader) -> Result<Option<Bytes>, Error>,
        mut decide: impl FnMut(Document<'_>) -> Result<Change, E>,
    ) -> Result<Outcome, E> {
        #[cfg(debug_assertions)]
        assert!(
            seen.is_none()
                || self
                    .validity
                    .as_mut()
                    .is_none_or(|it| it.is_first_visit(id)),
            "a batch that trusts its snapshot met {id:?} again"
        );
        let outcome = loop {
            self.lock(id)?;
            let newest;
            let old = match seen.filter(|_| self.is_snapshot_valid()) {
                Some(seen) => seen,
                None => {
                    let Some(bytes) = find(&self.reader()?)? else {
                        return Ok(Outcome::NotFound);
                    };
                    newest = bytes;
                    Document::from_validated(&newest)
                }
            };
            let change = decide(old)?;
            match self.apply(id, old, &change)? {
                ChangeAttempt::Done(outcome) => break outcome,
                ChangeAttempt::HeldBy(transaction) => self.wait_for(&transaction)?,
            }
        };
        if self.payload.len() >= BYTES_MAX || self.ids.len() >= CHANGES_MAX {
            self.commit()?;
        }
        Ok(outcome)
    }

    /// Returns `true` if the snapshot's documents are still the newest. Called with the document's
    /// lock, so the answer stays true.
    fn is_snapshot_valid(&mut self) -> bool {
        let Some(validity) = &mut self.validity else {
            return false;
        };
        let holds = validity.holds(self.collection.state().generations());
        if !holds {
            self.validity = None;
        }
        holds
    }

    /// Returns a reader of what the batch sees: the newest versions, or those of its transaction.
    fn reader(&self) -> Result<Reader, Error> {
        match self.options.transaction {
            None => self.collection.reader(),
            Some(transaction) => transaction.reader(self.collection),
        }
    }

    /// Changes the given version of a document.
    fn apply(
        &mut self,
        id: RecordId,
        old: Document<'_>,
        change: &Change,
    ) -> Result<ChangeAttempt, Error> {
        if *change == Change::Keep {
            return Ok(ChangeAttempt::Done(Outcome::Unchanged));
        }
        if let Some(transaction) = self.options.transaction {
            self.collection.check_writes_of(Some(transaction))?;
            transaction.lock_document(self.collection, id, old)?;
        }
        match change {
            Change::Keep => Ok(ChangeAttempt::Done(Outcome::Unchanged)),
            Change::Replace(new) => self.replace(id, old, new.as_document(), None),
            Change::Update(new, description) => {
                self.replace(id, old, new.as_document(), Some(description))
            }
            Change::Delete => self.delete(id, old, DeletionCause::Request),
            Change::Trim => self.delete(id, old, DeletionCause::Trim),
        }
    }

    /// Releases all locks, and waits for a transaction to end.
    fn wait_for(&mut self, transaction: &TransactionWaiter) -> Result<(), Error> {
        self.commit()?;
        transaction.wait(self.options.wait_control)
    }

    /// Acquires the document's lock, once no other transaction has locked the document.
    fn lock(&mut self, id: RecordId) -> Result<(), Error> {
        loop {
            self.lock_against_writes(id)?;
            let locks = &self.collection.transaction_locks;
            if self.options.transaction.is_some() || !locks.any() {
                return Ok(());
            }
            match locks.holder(&LockTarget::Document(id)) {
                Some(transaction) => self.wait_for(&transaction)?,
                None => return Ok(()),
            }
        }
    }

    /// Acquires the document's lock. Commits first if the wait could deadlock, or if this batch has
    /// changed the document already.
    fn lock_against_writes(&mut self, id: RecordId) -> Result<(), Error> {
        if self.ids.contains(&id) {
            self.commit()?;
        }
        if self.schema.is_none() {
            self.collection.admit()?;
        }
        let locks = &self.collection.document_locks;
        let slot = self.slot(id);
        if !self.locks.contains_key(&slot) {
            let lock = locks.get(slot).ok_or_else(|| {
                Bug::new(format!(
                    "a collection with {} locks has no lock {slot}",
                    locks.len()
                ))
            })?;
            let guard = match lock.try_lock() {
                Some(guard) => guard,
                None => {
                    self.commit()?;
                    while_waiting(self.options.wait_control, || lock.lock())
                }
            };
            self.locks.insert(slot, guard);
        }
        if self.schema.is_none() {
            let schema = &self.collection.schema;
            let waiting = || while_waiting(self.options.wait_control, || schema.read_recursive());
            self.schema = Some(schema.try_read_recursive().unwrap_or_else(waiting));
            self.locked_since = Instant::now();
        }
        Ok(())
    }

    fn replace(
        &mut self,
        id: RecordId,
        old: Document<'_>,
        new: Document<'_>,
        description: Option<&UpdateDescription>,
    ) -> Result<ChangeAttempt, Error> {
        let bytes = new.as_bytes().len();
        if bytes > crate::DOCUMENT_BYTES_MAX {
            return Err(Error::DocumentTooLarge { bytes });
        }
        if let Some(cap) = self.collection.cap() {
            cap.check_change(old, new)?;
        }
        if self.options.validation.is_enabled() {
            self.validate(old, new)?;
        }
        let changed = changed_names(old, new)?;
        let mut scratch = Scratch::default();
        let mut changes = Vec::new();
        let mut unique = Vec::new();
        for state in &self.collection.state().indexes {
            let index = &state.index;
            // An `_id` stays equal, but may change from 1 to 1.0, which changes its payload and not
            // its key. In the index that contains the documents, the payload is the document.
            let reads = |name: &&str| index.definition.reads(name);
            if index.definition.clustered || !changed.iter().any(reads) {
                continue;
            }
            check_fits(&index.definition, new, &mut scratch)?;
            let change = difference(index, old, new, &mut scratch)?;
            if index.enforces_uniqueness() {
                self.lock_removed_keys(&change)?;
                let added = change.added.iter().filter(|added| !is_mark(&added.key));
                unique.extend(added.map(|added| UniqueKey {
                    index: index.clone(),
                    key: added.key.clone(),
                    shape: added.payload.clone(),
                }));
            }
            if !(change.removed.is_empty() && change.added.is_empty()) {
                changes.push(change);
            }
        }
        unique.sort_by(|a, b| (a.index.map, &a.key).cmp(&(b.index.map, &b.key)));
        if let Some(holder) = self.claim(&unique, id)? {
            return Ok(ChangeAttempt::HeldBy(holder));
        }
        let recorded = self.collection.rules().keeps_old_versions().then_some(old);
        let detail = event_detail::encode_update(description, recorded);
        let old_bytes = old.as_bytes().len();
        if let Some(statements) = &self.options.statements {
            record::statements::push_updated(&mut self.payload, statements, old)?;
        }
        record::push_update(&mut self.payload, id, old_bytes, new, &changes, &detail);
        self.ids.push(id);
        Ok(ChangeAttempt::Done(Outcome::Replaced))
    }

    /// Locks the unique keys that a transaction removes, too, because it may not commit.
    fn lock_removed_keys(&self, change: &IndexChange) -> Result<(), Error> {
        let Some(transaction) = self.options.transaction else {
            return Ok(());
        };
        let mut removed = change.removed.iter().filter(|key| !is_mark(key));
        removed.try_for_each(|key| {
            transaction
                .lock_key(self.collection, change.map, key)
                .map(drop)
        })
    }

    fn validate(&self, old: Document<'_>, new: Document<'_>) -> Result<(), Error> {
        match self
            .collection
            .rules()
            .check(new, Some(old), self.options.validation)?
        {
            Verdict::Accepted => Ok(()),
            Verdict::Warned(warning) => {
                self.collection.warn(&warning);
                Ok(())
            }
            Verdict::Refused(error) => Err(error),
        }
    }

    /// Claims the unique keys that a change adds; they are sorted. Earlier changes of the batch are
    /// committed first: they may free a key, and must not hold one during the wait.
    fn claim(
        &mut self,
        unique: &[UniqueKey],
        own: RecordId,
    ) -> Result<Option<Arc<TransactionWaiter>>, Error> {
        if unique.is_empty() {
            return Ok(None);
        }
        self.flush(Some(own))?;
        let claimed = unique.iter().map(|unique| claims::ClaimedKey {
            key: HashedKey::new(&unique.key),
            map: unique.index.map,
            is_of_ids: false,
        });
        self.claim.add(&claimed.collect::<Vec<_>>());
        if self.options.transaction.is_none() && self.collection.transaction_locks.any() {
            for UniqueKey { index, key, .. } in unique {
                let blocking_transaction =
                    blocking_transaction(self.collection, index, key, Some(own))?;
                if blocking_transaction.is_some() {
                    return Ok(blocking_transaction);
                }
            }
        }
        // Claimed before any lookup: an earlier holder of a key has committed by then, and is
        // visible.
        let transaction = self.options.transaction;
        let locker = transaction.map(|it| KeyLocker::new(self.collection, it));
        let locker = locker.transpose()?;
        let lock = |it: &UniqueKey| {
            let locked = locker
                .as_ref()
                .map(|locker| locker.lock(&it.index, &it.key, Some(own)));
            locked.transpose()
        };
        let ownerships: Vec<_> = unique.iter().map(lock).collect::<Result<_, Error>>()?;
        let check = UniquenessCheck::new(self.collection)?;
        for (UniqueKey { index, key, shape }, ownership) in unique.iter().zip(ownerships) {
            let lookup = KeyLookup {
                index,
                key,
                look_up: true,
                ownership,
            };
            if check.exists(&lookup, Some(own))? {
                return Err(self.collection.duplicate(index, key, shape));
            }
        }
        Ok(None)
    }

    fn delete(
        &mut self,
        id: RecordId,
        old: Document<'_>,
        cause: DeletionCause,
    ) -> Result<ChangeAttempt, Error> {
        let mut scratch = Scratch::default();
        let mut changes = Vec::new();
        for state in &self.collection.state().indexes {
            let removed = entries_of_stored(&state.index, old, &mut scratch)?;
            let removed: Vec<Vec<u8>> = removed.into_keys().collect();
            if removed.is_empty() {
                continue;
            }
            let change = IndexChange {
                map: state.index.map,
                removed,
                added: Vec::new(),
            };
            if state.index.enforces_uniqueness() {
                self.lock_removed_keys(&change)?;
            }
            changes.push(change);
        }
        let recorded = if self.collection.rules().keeps_old_versions() {
            RecordedVersion::Whole
        } else {
            RecordedVersion::Id
        };
        let detail = event_detail::encode_deletion(old, recorded, cause);
        let old_bytes = old.as_bytes().len();
        if let Some(statements) = &self.options.statements
            && cause == DeletionCause::Request
        {
            record::statements::push_deleted(&mut self.payload, statements, old)?;
        }
        record::push_delete(&mut self.payload, id, old_bytes, &changes, &detail);
        self.ids.push(id);
        Ok(ChangeAttempt::Done(Outcome::Deleted))
    }

    /// Commits the collected changes, and releases the locks.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.flush(None)
    }

    /// Commits if the batch has held locks for long. Called now and then by a search for
    /// more documents to change, as that may take long.
    pub fn commit_if_old(&mut self) -> Result<(), Error> {
        if self.schema.is_some() && self.locked_since.elapsed() >= HELD_MAX {
            self.commit()
        } else {
            Ok(())
        }
    }

    /// Commits like [`commit`](Self::commit), but keeps the lock of the document `keep`.
    fn flush(&mut self, keep: Option<RecordId>) -> Result<(), Error> {
        let written = if self.ids.is_empty() {
            Ok(())
        } else {
            self.append()
        };
        self.ids.clear();
        self.payload = record::begin(self.collection.id);
        self.claim = self.collection.claims.begin();
        match keep {
            Some(id) => {
                let kept = self.slot(id);
                self.locks.retain(|slot, _| *slot == kept);
            }
            None => {
                self.locks.clear();
                self.schema = None;
            }
        }
        written
    }

    fn slot(&self, id: RecordId) -> usize {
        id.0 as usize % self.collection.document_locks.len()
    }

    fn append(&mut self) -> Result<(), Error> {
        let payload = Bytes::from(std::mem::take(&mut self.payload));
        let decoded = record::decode(Position::ZERO, payload.clone());
        let (commit, effect) =
            decoded.ok_or_else(|| Bug::new("a log record cannot be read back"))?;
        if self.collection.state().dropped {
            return Err(Error::NamespaceNotFound(
                self.collection.namespace().to_string(),
            ));
        }
        let collection = self.collection;
        let (operations, bytes) = (commit.operations, commit.bytes);
        let statements = record::statements::read_own(&payload, &operations)?;
        match self.options.transaction {
            None => {
                let own = collection.append(&[&payload], operations, bytes, effect, statements)?;
                if let Some(validity) = &mut self.validity {
                    validity.record_own(own);
                }
                Ok(())
            }
            Some(transaction) => {
                let pieces = vec![payload.slice(record::ID_BYTES..)];
                transaction.write(collection, pieces, operations, effect)
            }
        }
    }
}
