//! Transactions: reading at one snapshot, writing where nobody else sees it, all at once in the end.
//!
//! What a transaction writes stands in a tail of its own for each collection, which its readers take
//! as the youngest source. Nothing is in the log before the [commit](Transaction::commit). What it has
//! changed it holds until its end: the first writer wins, see [`holds`](crate::transaction_locks).

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

use crate::cluster_snapshot::ClusterSnapshot;
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::Error;
use crate::generation::Generation;
use crate::ids::{CollectionId, MapId};
use crate::namespace::Namespace;
use crate::read::{OwnWrites, Reader};
use crate::record::transaction::{HEADER_BYTES, Origin, PART_HEADER_BYTES};
use crate::record::{Commit, Effect, Operation};
use crate::state::State as CollectionState;
use crate::transaction_locks::{LockOutcome, LockTarget, TransactionWaiter};

/// A transaction is one record of the log.
const BYTES_MAX: usize = PAYLOAD_BYTES_MAX;
/// All open transactions have so great a part of the engine's memory.
const MEMORY_PART: u64 = 8;
/// What holding something costs in memory beside its key, in bytes.
const HOLD_BYTES: usize = 100;

/// See the module. What was not committed when it is dropped did not happen.
pub struct Transaction {
    core: Arc<Core>,
    collections: Arc<Collections>,
    origin: Origin,
    snapshot: Snapshot,
    /// What it reads at, where it did not begin with the newest.
    cluster_snapshot: Option<Arc<ClusterSnapshot>>,
    ticket: Arc<TransactionWaiter>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the collection's id.
    parts: BTreeMap<CollectionId, Part>,
    /// Collections that it has created, which nobody else knows.
    created: BTreeMap<Namespace, Arc<Collection>>,
    /// Memory that it takes, in bytes.
    bytes: u64,
    /// Bytes of its record so far.
    record_bytes: usize,
    has_ended: bool,
}

/// What it does in one collection.
struct Part {
    collection: Arc<Collection>,
    /// Whether it keeps others from changing what the collection is: not one that it has created.
    uses: bool,
    /// The pieces of the payload of a commit of the collection, without its id.
    payload: Vec<Bytes>,
    /// The same in memory, for its own readers.
    tail: Arc<Generation>,
    effect: Effect,
    /// The position that the next writes have in the tail.
    next: Position,
    /// Documents that it has inserted itself: the first id, and the one behind the last.
    inserted: BTreeMap<RecordId, RecordId>,
    held: Vec<LockTarget>,
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
            ticket: Arc::default(),
            state: Mutex::new(State {
                record_bytes: HEADER_BYTES,
                ..State::default()
            }),
        }
    }

    /// The collection of that name as the transaction sees it. It is the transaction's until its end:
    /// nobody changes what the collection is.
    pub fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>, Error> {
        let mut state = self.state()?;
        if let Some(created) = state.created.get(namespace) {
            return Ok(Some(created.clone()));
        }
        let Some(collection) = self.collections.by_name(namespace) else {
            // What is dropped between the begin and the first use is not there, as in MongoDB: but for who
            // asked for a time at which it was.
            let past = self.cluster_snapshot.as_ref();
            return match past.map_or(Ok(None), |it| it.collection(namespace))? {
                Some(_) => Err(Error::CollectionChanged(namespace.to_string())),
                None => Ok(None),
            };
        };
        if !state.parts.contains_key(&collection.id) {
            collection.ddl_barrier.begin()?;
            state.add(&collection, self, true);
        }
        // A collection that was dropped, or has another name, before it was used.
        let is_there = !collection.state().dropped && collection.namespace() == *namespace;
        if !is_there || !collection.is_unchanged_since(self.snapshot.position()) {
            return Err(Error::CollectionChanged(namespace.to_string()));
        }
        Ok(Some(collection))
    }

    /// What it reads at, where it did not begin with the newest.
    pub fn cluster_snapshot(&self) -> Option<&ClusterSnapshot> {
        self.cluster_snapshot.as_deref()
    }

    /// What it sees of a collection: of that it uses or has created.
    pub fn reader(&self, collection: &Collection) -> Result<Reader, Error> {
        let state = self.state()?;
        let snapshot = self.core.snapshot_again(&self.snapshot)?;
        let own = state.parts.get(&collection.id).map(|part| OwnWrites {
            tail: part.tail.clone(),
            position: part.next.previous(),
        });
        let next_record = collection.next_record();
        Ok(Reader::new(collection.state(), snapshot, next_record, own))
    }

    /// TransactionLocks a document that it is to change. `seen`: the version that it sees. Called with the
    /// document's lock.
    pub(crate) fn hold_document(
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
        let taken = part.take(LockTarget::Document(id), &self.ticket);
        match taken {
            LockOutcome::AlreadyHeld => return Ok(()),
            LockOutcome::HeldByOther => return Err(conflict(collection, "a document")),
            LockOutcome::Acquired => {}
        }
        self.grow(&mut state, HOLD_BYTES)?;
        let newest = collection.reader()?.version(id, seen)?;
        if newest.is_some_and(|position| position <= self.snapshot.position()) {
            Ok(())
        } else {
            Err(conflict(collection, "a document"))
        }
    }

    /// TransactionLocks a unique key. Called with the key's claim.
    pub(crate) fn hold_key(
        &self,
        collection: &Collection,
        map: MapId,
        key: &[u8],
    ) -> Result<LockOutcome, Error> {
        let mut state = self.state()?;
        let part = state.part(collection)?;
        let taken = part.take(LockTarget::Key(map, key.to_vec()), &self.ticket);
        match taken {
            LockOutcome::AlreadyHeld => {}
            LockOutcome::HeldByOther => return Err(conflict(collection, "a unique key")),
            LockOutcome::Acquired => self.grow(&mut state, HOLD_BYTES + key.len())?,
        }
        Ok(taken)
    }

    /// Writes operations: the pieces of their payload, without the collection's id, and what they are.
    pub(crate) fn write(
        &self,
        collection: &Collection,
        payload: Vec<Bytes>,
        operations: Vec<Operation>,
        effect: Effect,
    ) -> Result<(), Error> {
        let bytes: usize = payload.iter().map(Bytes::len).sum();
        let mut state = self.state()?;
        state.record_bytes += bytes;
        if state.record_bytes > BYTES_MAX {
            return Err(Error::TransactionTooLarge {
                bytes: state.record_bytes,
                limit: BYTES_MAX,
            });
        }
        self.grow(&mut state, bytes)?;
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

    /// Takes memory, where there is any.
    fn grow(&self, state: &mut State, bytes: usize) -> Result<(), Error> {
        let all = &self.core.transaction_bytes;
        let before = all.fetch_add(bytes as u64, Ordering::Relaxed);
        state.bytes += bytes as u64;
        if before + bytes as u64 > self.core.options.memory / MEMORY_PART {
            Err(Error::NoRoomForTransactions)
        } else {
            Ok(())
        }
    }

    /// Ends it without its writes.
    pub fn abort(&self) {
        self.end(&mut self.state.lock());
    }

    /// Lets go of everything, and lets those go on who wait.
    fn end(&self, state: &mut State) {
        if std::mem::replace(&mut state.has_ended, true) {
            return;
        }
        for part in state.parts.values() {
            part.collection
                .transaction_locks
                .release(&part.held, &self.ticket);
            if part.uses {
                part.collection.ddl_barrier.end();
            }
        }
        let bytes = state.bytes;
        let all = &self.core.transaction_bytes;
        let before = all.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} of {before} bytes of transactions");
        *state = State {
            has_ended: true,
            ..State::default()
        };
        self.ticket.end();
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.state.lock();
        if state.has_ended {
            Err(Error::Interrupted("the transaction has ended".to_owned()))
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

/// The error of what another transaction holds, or somebody has changed since the snapshot.
pub(crate) fn conflict(collection: &Collection, what: &str) -> Error {
    Error::WriteConflict(format!(
        "{what} of {} is another's, or has been changed",
        collection.namespace()
    ))
}

impl State {
    /// Begins a part for a collection.
    fn add(&mut self, collection: &Arc<Collection>, transaction: &Transaction, uses: bool) {
        let position = transaction.snapshot.position();
        let clustered = CollectionState::clustered_by(&collection.state().indexes);
        // Its memory is counted by the transaction.
        let tail = Generation::new(position, clustered, &Arc::default());
        let part = Part {
            collection: collection.clone(),
            uses,
            payload: Vec::new(),
            tail: Arc::new(tail),
            effect: Effect::default(),
            next: position.next(),
            inserted: BTreeMap::new(),
            held: Vec::new(),
        };
        self.record_bytes += PART_HEADER_BYTES;
        self.parts.insert(collection.id, part);
    }

    /// What it does in a collection that it [uses](Transaction::collection).
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
    fn take(&mut self, what: LockTarget, ticket: &Arc<TransactionWaiter>) -> LockOutcome {
        let taken = self.collection.transaction_locks.take(&what, ticket);
        if taken == LockOutcome::Acquired {
            self.held.push(what);
        }
        taken
    }

    fn has_inserted(&self, id: RecordId) -> bool {
        let before = self.inserted.range(..=id).next_back();
        before.is_some_and(|(_, end)| id < *end)
    }

    /// All that it has written, in order.
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
