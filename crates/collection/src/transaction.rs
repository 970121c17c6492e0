//! Transactions: they read at one snapshot, and their writes become visible together at the commit.
//!
//! A transaction writes into a private tail per collection, which its readers add as the newest
//! source. Nothing is in the log before the [commit](Transaction::commit). It locks what it has
//! changed until its end. The first writer wins; see
//! [`transaction_locks`](crate::transaction_locks).

mod commit;
mod creation;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use windrow_document::Document;
use windrow_fold::{Position, RecordId, Snapshot};
use windrow_invariant::Bug;
use windrow_storage::PAYLOAD_BYTES_MAX;

use crate::catalog::namespace::Namespace;
use crate::cluster_snapshot::ClusterSnapshot;
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::Error;
use crate::generation::Generation;
use crate::ids::{CollectionId, MapId};
use crate::read::{OwnWrites, Reader};
use crate::record::statements::NumberedResult;
use crate::record::transaction::{HEADER_BYTES, Origin, PART_HEADER_BYTES};
use crate::record::{Commit, Effect, Operation};
use crate::state::State;
use crate::statement_result::StatementResult;
use crate::transaction_locks::{LockOutcome, LockTarget, TransactionWaiter};

/// A transaction is one log record.
const BYTES_MAX: usize = PAYLOAD_BYTES_MAX;
/// All open transactions together take at most the engine's memory divided by this number.
const MEMORY_DIVISOR: u64 = 8;
/// The length of a statement's result in the log record besides its document, with the header of
/// all results, in bytes.
const RESULT_BYTES: usize = 40;
/// The memory of a lock besides its key, in bytes.
const LOCK_BYTES: usize = 100;

/// An open transaction. Dropping it without a commit discards its writes.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_collection::{Engine, EngineOptions, Error, InsertOrder, Namespace};
/// # use windrow_storage::MemoryDisk;
/// use windrow_collection::{Direction, Origin, WriteOptions};
/// use windrow_document::doc;
///
/// # let options = EngineOptions::with_memory(64 << 20);
/// # let engine = Engine::open(Arc::new(MemoryDisk::new()), options)?;
/// let birds = engine.collection_or_create(&Namespace::new("zoo", "birds")?)?;
/// let transaction = engine.begin(Origin::default());
/// let options = WriteOptions {
///     transaction: Some(&transaction),
///     ..WriteOptions::default()
/// };
/// transaction.collection(&birds.namespace())?.expect("it exists");
/// let heron = doc! { "_id": 1 }.into_bytes();
/// birds.insert_with(heron.into(), InsertOrder::Ordered, &options)?;
///
/// // Other readers see the document after the commit.
/// assert!(!birds.reader()?.records(Direction::Forward).next()?);
/// transaction.commit()?;
/// assert!(birds.reader()?.records(Direction::Forward).next()?);
/// # Ok::<(), Error>(())
/// ```
pub struct Transaction {
    core: Arc<Core>,
    collections: Arc<Collections>,
    origin: Origin,
    snapshot: Snapshot,
    /// The snapshot it reads at, if not the newest at its begin.
    cluster_snapshot: Option<Arc<ClusterSnapshot>>,
    waiter: Arc<TransactionWaiter>,
    state: Mutex<TransactionState>,
}

#[derive(Default)]
struct TransactionState {
    /// By collection id.
    parts: BTreeMap<CollectionId, Part>,
    /// The collections that it has created. No other reader sees them.
    created: BTreeMap<Namespace, Arc<Collection>>,
    /// Its memory in bytes.
    bytes: u64,
    /// The length of its log record so far, in bytes.
    record_bytes: usize,
    /// The results of a retryable write that runs as this transaction.
    results: Vec<NumberedResult>,
    has_ended: bool,
}

/// The transaction's part in one collection.
struct Part {
    collection: Arc<Collection>,
    kind: PartKind,
    /// The commit's payload in this collection as byte strings, without the collection's id.
    payload: Vec<Bytes>,
    /// The same writes in memory, for its own readers.
    tail: Arc<Generation>,
    effect: Effect,
    /// The position of the next write in the tail.
    next: Position,
    /// Documents that it has inserted itself: the first id, and the id after the last.
    inserted: BTreeMap<RecordId, RecordId>,
    locks: Vec<LockTarget>,
}

/// The relation of a collection to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartKind {
    /// The collection exists. The transaction excludes changes of its definition.
    Used,
    /// The transaction creates the collection.
    Created,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Transaction({:?})", self.origin)
    }
}

impl Transaction {
    pub(crate) fn begin(
        collections: &Arc<Collections>,
        origin: Origin,
        snapshot: Snapshot,
        cluster_snapshot: Option<Arc<ClusterSnapshot>>,
    ) -> Transaction {
        let core = &collections.core;
        Transaction {
            core: core.clone(),
            collections: collections.clone(),
            origin,
            snapshot,
            cluster_snapshot,
            waiter: Arc::default(),
            state: Mutex::new(TransactionState {
                record_bytes: HEADER_BYTES,
                ..TransactionState::default()
            }),
        }
    }

    /// Returns the collection with this name, as the transaction sees it. Its definition cannot
    /// change until the transaction ends.
    pub fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>, Error> {
        let mut state = self.state()?;
        if let Some(created) = state.created.get(namespace) {
            return Ok(Some(created.clone()));
        }
        let Some(collection) = self.collections.by_name(namespace) else {
            // As in MongoDB, a collection that was dropped between the begin and the first use does
            // not exist, unless the client asked for a cluster time.
            let past = self.cluster_snapshot.as_ref();
            return match past.map_or(Ok(None), |it| it.collection(namespace))? {
                Some(_) => Err(Error::CollectionChanged(namespace.to_string())),
                None => Ok(None),
            };
        };
        if !state.parts.contains_key(&collection.id) {
            collection.ddl_barrier.begin()?;
            state.add(&collection, self, PartKind::Used);
        }
        // The collection may have been dropped or renamed before this use.
        let is_there = !collection.state().dropped && collection.namespace() == *namespace;
        if !is_there || !collection.is_unchanged_since(self.snapshot.position()) {
            return Err(Error::CollectionChanged(namespace.to_string()));
        }
        Ok(Some(collection))
    }

    /// Returns the snapshot it reads at, if not the newest at its begin.
    pub fn cluster_snapshot(&self) -> Option<&ClusterSnapshot> {
        self.cluster_snapshot.as_deref()
    }

    /// Returns a reader of a collection that it uses or has created.
    pub fn reader(&self, collection: &Collection) -> Result<Reader, Error> {
        let state = self.state()?;
        let snapshot = self.core.reopen_snapshot(&self.snapshot)?;
        let own = state.parts.get(&collection.id).map(|part| OwnWrites {
            tail: part.tail.clone(),
            position: part.next.previous(),
        });
        let next_record = collection.next_record();
        Ok(Reader::new(collection.state(), snapshot, next_record, own))
    }

    /// Locks a document that it is about to change. `seen` is the version that it read. Called with
    /// the document's lock.
    pub(crate) fn lock_document(
        &self,
        collection: &Collection,
        id: RecordId,
        seen: Document<'_>,
    ) -> Result<(), Error> {
        let mut state = self.state()?;
        let part = state.part(collection)?;
        if part.has_inserted(id) {
            return Ok(());
        }
        let taken = part.take(LockTarget::Document(id), &self.waiter);
        match taken {
            LockOutcome::AlreadyHeld => return Ok(()),
            LockOutcome::HeldByOther => return Err(conflict(collection, "a document")),
            LockOutcome::Acquired => {}
        }
        self.grow(&mut state, LOCK_BYTES)?;
        let newest = collection.reader()?.version(id, seen)?;
        if newest.is_some_and(|position| position <= self.snapshot.position()) {
            Ok(())
        } else {
            Err(conflict(collection, "a document"))
        }
    }

    /// Locks a unique key. Called with the key's claim.
    pub(crate) fn lock_key(
        &self,
        collection: &Collection,
        map: MapId,
        key: &[u8],
    ) -> Result<LockOutcome, Error> {
        let mut state = self.state()?;
        let part = state.part(collection)?;
        let taken = part.take(LockTarget::Key(map, key.to_vec()), &self.waiter);
        match taken {
            LockOutcome::AlreadyHeld => {}
            LockOutcome::HeldByOther => return Err(conflict(collection, "a unique key")),
            LockOutcome::Acquired => self.grow(&mut state, LOCK_BYTES + key.len())?,
        }
        Ok(taken)
    }

    /// Adds the result of a statement of a retryable write, of which the number is that of this
    /// transaction. It is recorded with the writes, if there are any.
    pub fn record_result(&self, statement: i32, result: StatementResult) -> Result<(), Error> {
        let mut state = self.state()?;
        let bytes = RESULT_BYTES + result.document().map_or(0, |it| it.as_bytes().len());
        self.grow_record(&mut state, bytes)?;
        state.results.push(NumberedResult { statement, result });
        Ok(())
    }

    /// Adds operations: their payload without the collection's id, and their decoded form.
    pub(crate) fn write(
        &self,
        collection: &Collection,
        payload: Vec<Bytes>,
        operations: Vec<Operation>,
        effect: Effect,
    ) -> Result<(), Error> {
        let bytes: usize = payload.iter().map(Bytes::len).sum();
        let mut state = self.state()?;
        self.grow_record(&mut state, bytes)?;
        let part = state.part(collection)?;
        part.record_inserted(&operations, effect);
        part.payload.extend(payload);
        part.tail.push(Commit {
            position: part.next,
            operations,
            bytes,
        });
        part.next = part.next.next();
        part.effect.add(effect);
        Ok(())
    }

    /// Reserves bytes of the log record, and memory. Fails if the record would be too long.
    fn grow_record(&self, state: &mut TransactionState, bytes: usize) -> Result<(), Error> {
        state.record_bytes += bytes;
        if state.record_bytes > BYTES_MAX {
            return Err(Error::TransactionTooLarge {
                bytes: state.record_bytes,
                limit: BYTES_MAX,
            });
        }
        self.grow(state, bytes)
    }

    /// Reserves memory. Fails if there is none.
    fn grow(&self, state: &mut TransactionState, bytes: usize) -> Result<(), Error> {
        let all = &self.core.transaction_bytes;
        let before = all.fetch_add(bytes as u64, Ordering::Relaxed);
        state.bytes += bytes as u64;
        if before + bytes as u64 > self.core.options.memory / MEMORY_DIVISOR {
            Err(Error::NoRoomForTransactions)
        } else {
            Ok(())
        }
    }

    /// Ends the transaction without its writes.
    pub fn abort(&self) {
        self.end(&mut self.state.lock());
    }

    /// Releases all locks, and wakes the threads that wait for them.
    fn end(&self, state: &mut TransactionState) {
        if std::mem::replace(&mut state.has_ended, true) {
            return;
        }
        for part in state.parts.values() {
            part.collection
                .transaction_locks
                .release(&part.locks, &self.waiter);
            if part.kind == PartKind::Used {
                part.collection.ddl_barrier.end();
            }
        }
        let bytes = state.bytes;
        let all = &self.core.transaction_bytes;
        let before = all.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} of {before} bytes of transactions");
        *state = TransactionState {
            has_ended: true,
            ..TransactionState::default()
        };
        self.waiter.end();
    }

    fn state(&self) -> Result<MutexGuard<'_, TransactionState>, Error> {
        let state = self.state.lock();
        if state.has_ended {
            Err(Error::interrupted("the transaction has ended"))
        } else {
            Ok(state)
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abort();
    }
}

/// Returns the error for another transaction's lock or a change since the snapshot.
pub(crate) fn conflict(collection: &Collection, what: &str) -> Error {
    Error::WriteConflict(format!(
        "{what} of {} is another's, or has been changed",
        collection.namespace()
    ))
}

impl TransactionState {
    /// Adds the part of a collection.
    fn add(&mut self, collection: &Arc<Collection>, transaction: &Transaction, kind: PartKind) {
        let position = transaction.snapshot.position();
        let clustered = State::clustered_by(&collection.state().indexes);
        // The transaction counts the memory of this tail.
        let tail = Generation::new(position, clustered, &Arc::default());
        let part = Part {
            collection: collection.clone(),
            kind,
            payload: Vec::new(),
            tail: Arc::new(tail),
            effect: Effect::default(),
            next: position.next(),
            inserted: BTreeMap::new(),
            locks: Vec::new(),
        };
        self.record_bytes += PART_HEADER_BYTES;
        self.parts.insert(collection.id, part);
    }

    /// Returns the part of a collection that it [uses](Transaction::collection).
    fn part(&mut self, collection: &Collection) -> Result<&mut Part, Bug> {
        let part = self.parts.get_mut(&collection.id);
        part.ok_or_else(|| {
            let name = collection.namespace();
            Bug::new(format!(
                "a transaction writes to {name}, which it does not use"
            ))
        })
    }
}

impl Part {
    fn take(&mut self, what: LockTarget, waiter: &Arc<TransactionWaiter>) -> LockOutcome {
        let taken = self.collection.transaction_locks.take(&what, waiter);
        if taken == LockOutcome::Acquired {
            self.locks.push(what);
        }
        taken
    }

    fn has_inserted(&self, id: RecordId) -> bool {
        let before = self.inserted.range(..=id).next_back();
        before.is_some_and(|(_, end)| id < *end)
    }

    /// Returns all its operations in order.
    fn operations(&self) -> Vec<Operation> {
        let commits = self.tail.commits_since(Position::ZERO);
        let operations = commits.iter().flat_map(|commit| &commit.operations);
        operations.cloned().collect()
    }

    fn record_inserted(&mut self, operations: &[Operation], effect: Effect) {
        for operation in operations {
            if let Operation::Insert { first, .. } = operation {
                self.inserted.insert(*first, effect.next_record);
            }
        }
    }
}
