//! Updates and deletions: the newest version of a document is locked, shown, and changed.
//!
//! A batch collects changes of several documents for one log record. It holds the locks of its
//! documents until they are in the log. It waits for a lock only while it holds none, so batches
//! cannot wait for each other in a circle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use windrow_document::document::{Element, Elements};
use windrow_document::{Document, DocumentBuf};
use windrow_fold::{HashedKey, Position, RecordId};
use windrow_index::{Scratch, is_mark};
use windrow_invariant::Bug;
use windrow_mql::update::UpdateDescription;
use windrow_storage::StorageError;

use super::checks::check_fits;
use super::entries::{entries_of, entries_of_stored};
use super::key_locking::{KeyLocker, awaited};
use super::options::WriteOptions;
use super::snapshot_validity::SnapshotValidity;
use super::unique::{CheckedKey, UniquenessCheck};
use crate::claims::{self, Claim};
use crate::collection::Collection;
use crate::error::Error;
use crate::event_detail;
use crate::index::Index;
use crate::lock_order::{OrderedGuard, OrderedReadGuard};
use crate::read::Reader;
use crate::record::{self, IndexChange};
use crate::rules::Verdict;
use crate::transaction_locks::{LockTarget, TransactionWaiter, while_waiting};

/// What is to become of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Keep,
    /// The new version in place of the old one, whose `_id` it has.
    Replace(DocumentBuf),
    /// The same, and how it came of the old one.
    Update(DocumentBuf, UpdateDescription),
    Delete,
    /// The same, to make room for others: nobody is told.
    Trim,
}

impl Change {
    /// The new version; a replacement where it is not described.
    pub fn described(new: DocumentBuf, description: Option<UpdateDescription>) -> Change {
        match description {
            Some(description) => Change::Update(new, description),
            None => Change::Replace(new),
        }
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is no such document any more.
    Gone,
    Kept,
    Replaced,
    Deleted,
}

/// A log record is written when so many bytes or changes have come together.
const BYTES_MAX: usize = 1 << 20;
const CHANGES_MAX: usize = 1000;
/// Locks are held about so long at most while nothing else is found to change.
const HELD_MAX: Duration = Duration::from_millis(20);

/// See the module. What was not committed when it is dropped did not happen.
pub struct Batch<'c> {
    collection: &'c Collection,
    payload: Vec<u8>,
    ids: Vec<RecordId>,
    locks: BTreeMap<usize, OrderedGuard<'c>>,
    claim: Claim<'c>,
    schema: Option<OrderedReadGuard<'c>>,
    /// Since when it has held the schema.
    since: Instant,
    options: WriteOptions<'c>,
    /// Where documents that were seen need not be read again.
    validity: Option<SnapshotValidity>,
}

/// What became of a change that was wanted.
enum ChangeAttempt {
    Done(Outcome),
    /// Nothing: a transaction holds a unique key that would come to the document.
    HeldBy(Arc<TransactionWaiter>),
}

/// A key that comes to a unique index.
struct UniqueKey {
    index: Arc<Index>,
    key: Vec<u8>,
    shape: Vec<u8>,
}

impl Collection {
    /// Begins a batch of changes.
    pub fn batch(&self) -> Batch<'_> {
        self.batch_with(WriteOptions::default())
    }

    /// The same on other options.
    pub fn batch_with<'c>(&'c self, options: WriteOptions<'c>) -> Batch<'c> {
        Batch {
            collection: self,
            payload: record::begin(self.id),
            ids: Vec::new(),
            locks: BTreeMap::new(),
            claim: self.claims.begin(),
            schema: None,
            since: Instant::now(),
            options,
            validity: None,
        }
    }
}

impl<'c> Batch<'c> {
    /// Locks a document and makes of its newest version what `decide` says.
    pub fn change<E: From<Error>>(
        &mut self,
        id: RecordId,
        decide: impl FnMut(Document<'_>) -> Result<Change, E>,
    ) -> Result<Outcome, E> {
        self.change_found(id, None, |reader| reader.get(id), decide)
    }

    /// Says that what [`change_seen`](Self::change_seen) will be given are the documents of the snapshot at
    /// a position, as they were stored, each once. Then they are not read again while nobody else changes
    /// any. None: they are not.
    pub fn trust_snapshot(&mut self, position: Option<Position>) {
        let position = position.filter(|_| self.options.transaction.is_none());
        self.validity = position.map(SnapshotValidity::since);
    }

    /// As [`change`](Self::change), of a document of which some version has been seen: so it is found
    /// faster.
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
            seen.is_none() || self.validity.as_mut().is_none_or(|it| it.meets_first(id)),
            "a batch that trusts its snapshot met {id:?} again"
        );
        let outcome = loop {
            self.lock(id)?;
            let newest;
            let old = match seen.filter(|_| self.is_unaltered()) {
                Some(seen) => seen,
                None => {
                    let Some(bytes) = find(&self.reader()?)? else {
                        return Ok(Outcome::Gone);
                    };
                    newest = bytes;
                    Document::from_validated(&newest)
                }
            };
            let change = decide(old)?;
            match self.make(id, old, &change)? {
                ChangeAttempt::Done(outcome) => break outcome,
                ChangeAttempt::HeldBy(transaction) => self.wait_for(&transaction)?,
            }
        };
        if self.payload.len() >= BYTES_MAX || self.ids.len() >= CHANGES_MAX {
            self.commit()?;
        }
        Ok(outcome)
    }

    /// Whether the documents of the snapshot are the newest still. Asked while the document is locked, so
    /// that it stays so.
    fn is_unaltered(&mut self) -> bool {
        let Some(validity) = &mut self.validity else {
            return false;
        };
        let holds = validity.holds(self.collection.state().generations());
        if !holds {
            self.validity = None;
        }
        holds
    }

    /// What the batch sees: the newest there is, or what its transaction does.
    fn reader(&self) -> Result<Reader, Error> {
        match self.options.transaction {
            None => self.collection.reader(),
            Some(transaction) => transaction.reader(self.collection),
        }
    }

    /// Makes of a version that was seen what is to become of it.
    fn make(
        &mut self,
        id: RecordId,
        old: Document<'_>,
        change: &Change,
    ) -> Result<ChangeAttempt, Error> {
        if *change == Change::Keep {
            return Ok(ChangeAttempt::Done(Outcome::Kept));
        }
        if let Some(transaction) = self.options.transaction {
            self.collection.check_writes_of(Some(transaction))?;
            transaction.hold_document(self.collection, id, old)?;
        }
        match change {
            Change::Keep => Ok(ChangeAttempt::Done(Outcome::Kept)),
            Change::Replace(new) => self.replace(id, old, new.as_document(), None),
            Change::Update(new, description) => {
                self.replace(id, old, new.as_document(), Some(description))
            }
            Change::Delete => self.delete(id, old, false),
            Change::Trim => self.delete(id, old, true),
        }
    }

    /// Lets go of everything, and waits for a transaction's end.
    fn wait_for(&mut self, transaction: &TransactionWaiter) -> Result<(), Error> {
        self.commit()?;
        transaction.wait(self.options.interrupt)
    }

    /// TransactionLocks the document's lock, once no other transaction holds the document.
    fn lock(&mut self, id: RecordId) -> Result<(), Error> {
        loop {
            self.lock_shortly(id)?;
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

    /// TransactionLocks the document's lock; commits first where waiting for it could be waiting in a circle,
    /// or where this batch has changed the document already.
    fn lock_shortly(&mut self, id: RecordId) -> Result<(), Error> {
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
                    "a collection has {} locks, none {slot}",
                    locks.len()
                ))
            })?;
            let guard = match lock.try_lock() {
                Some(guard) => guard,
                None => {
                    self.commit()?;
                    while_waiting(self.options.interrupt, || lock.lock())
                }
            };
            self.locks.insert(slot, guard);
        }
        if self.schema.is_none() {
            let schema = &self.collection.schema;
            let waiting = || while_waiting(self.options.interrupt, || schema.read_recursive());
            self.schema = Some(schema.try_read_recursive().unwrap_or_else(waiting));
            self.since = Instant::now();
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
        if self.options.validation.is_asked() {
            self.validate(old, new)?;
        }
        let changed = changed_names(old, new)?;
        let mut scratch = Scratch::default();
        let mut changes = Vec::new();
        let mut unique = Vec::new();
        for state in &self.collection.state().indexes {
            let index = &state.index;
            // An `_id` stays equal, but 1 may become 1.0: its key does not change, what stands beside it
            // does. Where the index carries the documents, its entry is the document.
            let reads = |name: &&str| index.definition.reads(name);
            if index.definition.clustered || !changed.iter().any(reads) {
                continue;
            }
            check_fits(&index.definition, new, &mut scratch)?;
            let change = difference(index, old, new, &mut scratch)?;
            if index.enforces_uniqueness() {
                self.hold_gone(&change)?;
                let come = change.come.iter().filter(|(key, _)| !is_mark(key));
                unique.extend(come.map(|(key, shape)| UniqueKey {
                    index: index.clone(),
                    key: key.clone(),
                    shape: shape.clone(),
                }));
            }
            if !(change.gone.is_empty() && change.come.is_empty()) {
                changes.push(change);
            }
        }
        unique.sort_by(|a, b| (a.index.map, &a.key).cmp(&(b.index.map, &b.key)));
        if let Some(holder) = self.claim(&unique, id)? {
            return Ok(ChangeAttempt::HeldBy(holder));
        }
        let kept = self.collection.rules().keeps_old_versions().then_some(old);
        let detail = event_detail::of_update(description, kept);
        let old_bytes = old.as_bytes().len();
        if let Some(statements) = &self.options.statements {
            record::statements::push_updated(&mut self.payload, statements, old)?;
        }
        record::push_update(&mut self.payload, id, old_bytes, new, &changes, &detail);
        self.ids.push(id);
        Ok(ChangeAttempt::Done(Outcome::Replaced))
    }

    /// A transaction holds unique keys that it gives up, too: it may not commit.
    fn hold_gone(&self, change: &IndexChange) -> Result<(), Error> {
        let Some(transaction) = self.options.transaction else {
            return Ok(());
        };
        let mut gone = change.gone.iter().filter(|key| !is_mark(key));
        gone.try_for_each(|key| {
            transaction
                .hold_key(self.collection, change.map, key)
                .map(drop)
        })
    }

    fn validate(&self, old: Document<'_>, new: Document<'_>) -> Result<(), Error> {
        match self.collection.rules().check(new, Some(old))? {
            Verdict::Accepted => Ok(()),
            Verdict::Warned(warning) => {
                self.collection.warn(&warning);
                Ok(())
            }
            Verdict::Refused(error) => Err(error),
        }
    }

    /// Claims the unique keys that come to a record, which are in order. What this batch has changed
    /// before is written first: it may free a key, and must not hold one while this waits.
    fn claim(
        &mut self,
        unique: &[UniqueKey],
        own: RecordId,
    ) -> Result<Option<Arc<TransactionWaiter>>, Error> {
        if unique.is_empty() {
            return Ok(None);
        }
        self.flush(Some(own))?;
        let claimed = unique.iter().map(|wanted| claims::ClaimedKey {
            key: HashedKey::new(&wanted.key),
            map: wanted.index.map,
            is_of_ids: false,
        });
        self.claim.add(&claimed.collect::<Vec<_>>());
        if self.options.transaction.is_none() && self.collection.transaction_locks.any() {
            for UniqueKey { index, key, .. } in unique {
                let awaited = awaited(self.collection, index, key, Some(own))?;
                if awaited.is_some() {
                    return Ok(awaited);
                }
            }
        }
        // Held before anybody looks: who held one of them before has committed then, and is seen.
        let transaction = self.options.transaction;
        let holding = transaction.map(|it| KeyLocker::new(self.collection, it));
        let holding = holding.transpose()?;
        let hold = |it: &UniqueKey| {
            let held = holding
                .as_ref()
                .map(|all| all.hold(&it.index, &it.key, Some(own)));
            held.transpose()
        };
        let held: Vec<_> = unique.iter().map(hold).collect::<Result<_, Error>>()?;
        let check = UniquenessCheck::new(self.collection)?;
        for (UniqueKey { index, key, shape }, held) in unique.iter().zip(held) {
            let key_to_check = CheckedKey {
                index,
                key,
                look_up: true,
                held,
            };
            if check.is_there(&key_to_check, Some(own))? {
                return Err(self.collection.duplicate(index, key, shape));
            }
        }
        Ok(None)
    }

    fn delete(
        &mut self,
        id: RecordId,
        old: Document<'_>,
        is_silent: bool,
    ) -> Result<ChangeAttempt, Error> {
        let mut scratch = Scratch::default();
        let mut changes = Vec::new();
        for state in &self.collection.state().indexes {
            let gone = entries_of_stored(&state.index, old, &mut scratch)?;
            let gone: Vec<Vec<u8>> = gone.into_keys().collect();
            if gone.is_empty() {
                continue;
            }
            let change = IndexChange {
                map: state.index.map,
                gone,
                come: Vec::new(),
            };
            if state.index.enforces_uniqueness() {
                self.hold_gone(&change)?;
            }
            changes.push(change);
        }
        let whole = self.collection.rules().keeps_old_versions();
        let detail = event_detail::of_deletion(old, whole, is_silent);
        let old_bytes = old.as_bytes().len();
        if let Some(statements) = self.options.statements.as_ref().filter(|_| !is_silent) {
            record::statements::push_deleted(&mut self.payload, statements, old)?;
        }
        record::push_delete(&mut self.payload, id, old_bytes, &changes, &detail);
        self.ids.push(id);
        Ok(ChangeAttempt::Done(Outcome::Deleted))
    }

    /// Writes what has come together, and lets go of the locks.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.flush(None)
    }

    /// Commits where it has held locks for long: asked now and then by who looks for more documents to
    /// change, and may not find any for a long time.
    pub fn commit_if_old(&mut self) -> Result<(), Error> {
        if self.schema.is_some() && self.since.elapsed() >= HELD_MAX {
            self.commit()
        } else {
            Ok(())
        }
    }

    /// As [`commit`](Self::commit), but keeps the lock of a document that is being looked at.
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
        let noted = record::statements::read_own(&payload, &operations)?;
        match self.options.transaction {
            None => {
                let own = collection.append(&[&payload], operations, bytes, effect, noted)?;
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

/// The names at the top under which the documents may have different values: all that is under others stands
/// in both in the same order, however often. An index that reads a name that is left out would keep the
/// old entries.
fn changed_names<'d>(old: Document<'d>, new: Document<'d>) -> Result<Vec<&'d str>, Error> {
    let old_name = |element: Element<'d>| element.name_str().ok_or_else(damaged_name);
    let new_name = |element: Element<'d>| {
        let not_text = || Bug::new("a document that was checked has a name that is not UTF-8");
        Ok::<_, Error>(element.name_str().ok_or_else(not_text)?)
    };
    let rest = |first: Option<Element<'d>>, mut others: Elements<'d>| {
        let others = std::iter::from_fn(move || others.next_raw());
        first.into_iter().chain(others)
    };
    let (mut olds, mut news) = (old.elements(), new.elements());
    let mut changed = Vec::new();
    loop {
        match (olds.next_raw(), news.next_raw()) {
            (None, None) => return Ok(changed),
            (Some(one), Some(other)) if one.name == other.name => {
                if (one.type_of, one.bytes) != (other.type_of, other.bytes) {
                    changed.push(old_name(one)?);
                }
            }
            (one, other) => {
                let olds = rest(one, olds).map(old_name);
                let all = olds.chain(rest(other, news).map(new_name));
                changed.extend(all.collect::<Result<Vec<_>, Error>>()?);
                return Ok(changed);
            }
        }
    }
}

#[cold]
fn damaged_name() -> Error {
    let (place, what) = ("a stored document", "a name is not UTF-8");
    StorageError::Damaged {
        place: place.to_owned(),
        what: what.to_owned(),
    }
    .into()
}

fn difference(
    index: &Index,
    old: Document<'_>,
    new: Document<'_>,
    scratch: &mut Scratch,
) -> Result<IndexChange, Error> {
    let before = entries_of_stored(index, old, scratch)?;
    let after = entries_of(index, new, scratch)?;
    let gone = before
        .keys()
        .filter(|key| !after.contains_key(*key))
        .cloned()
        .collect();
    let come = after
        .into_iter()
        .filter(|(key, payload)| before.get(key) != Some(payload));
    Ok(IndexChange {
        map: index.map,
        gone,
        come: come.collect(),
    })
}
