//! Change events, read from the log.
//!
//! No other structure stores them. Log records identify a collection by id; an event gives the name
//! that the collection had at that time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf};
use windrow_mql::update::UpdateDescription;
use windrow_storage::{ClusterTime, Content, FollowedRecord, Follower, Position, StorageError};

use crate::catalog::ddl_event::{DdlEvent, DdlKind};
use crate::catalog::namespace::Namespace;
use crate::catalog::rows::NamedRow;
use crate::collections::Collections;
use crate::engine::Engine;
use crate::error::{Error, Unreadable, undecodable};
use crate::event_detail::{self, DeletionCause, DeletionDetail};
use crate::ids::{CollectionId, CollectionUuid};
use crate::record::transaction::{DataRecord, Origin};
use crate::record::{self, Operation};

/// A change event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The cluster time of the commit.
    pub time: ClusterTime,
    /// The wall clock in milliseconds since 1970.
    pub millis: u64,
    /// The number of the event among those of one commit, which share its time.
    pub number: u64,
    /// The collection, or a database without a collection.
    pub namespace: Namespace,
    /// The UUID of the collection.
    pub uuid: CollectionUuid,
    /// The transaction that made the change.
    pub origin: Option<Origin>,
    /// The change itself.
    pub kind: EventKind,
}

/// A change. Documents are complete; a key is `{_id}`.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A document was inserted.
    Insert(Bytes),
    /// A document was updated or replaced.
    Update {
        /// The new version.
        new: Bytes,
        /// The changed fields, or `None` if the document was replaced.
        description: Option<UpdateDescription>,
        /// The old version, if the collection records it.
        old: Option<DocumentBuf>,
    },
    /// A document was deleted.
    Delete {
        /// Its `{_id}`.
        key: DocumentBuf,
        /// The old version, if the collection records it.
        old: Option<DocumentBuf>,
    },
    /// A collection, a database or its indexes were changed.
    Catalog {
        /// The kind of change.
        operation: DdlKind,
        /// The new name of a renamed collection.
        to: Option<Namespace>,
        /// `operationDescription`.
        description: DocumentBuf,
        /// `stateBeforeChange`.
        before: Option<DocumentBuf>,
    },
}

/// The result of [`Events::step`].
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The next event.
    Event(Box<Event>),
    /// A log record without a matching event was read.
    Passed,
    /// The end of the log was reached.
    AtEnd,
}

/// Returns `true` if events of a collection match.
type NamespaceFilter = Box<dyn Fn(&Namespace) -> bool + Send>;

/// A cursor over change events. It starts at a position in the log and follows new commits.
pub struct Events {
    collections: Arc<Collections>,
    follower: Follower,
    wants: NamespaceFilter,
    /// The remaining events of the log record that was read last.
    pending: VecDeque<Event>,
    /// Apart from `pending`, all events before this time have been returned.
    until: ClusterTime,
}

impl Events {
    /// Returns the next matching event, if there is one. Reads at most one record of the log.
    pub fn step(&mut self) -> Result<Step, Error> {
        if let Some(event) = self.pending.pop_front() {
            return Ok(Step::Event(Box::new(event)));
        }
        let newest = self.collections.core.storage.log.newest_time();
        let Some(written) = self.follower.read()? else {
            self.until = self.until.max(newest.next());
            return Ok(Step::AtEnd);
        };
        if written.time() < self.until {
            return Ok(Step::Passed);
        }
        self.until = written.time().next();
        self.read(written)?;
        let next = self.pending.pop_front().map(Box::new);
        Ok(next.map_or(Step::Passed, Step::Event))
    }

    /// Returns a time: all events before it have been returned.
    pub fn until(&self) -> ClusterTime {
        self.until
    }

    /// Waits until the log has new records, but at most `at_most`. Returns `true` if there may be
    /// some.
    pub fn wait(&self, at_most: Duration) -> bool {
        let seen = self.follower.position().previous();
        let log = &self.collections.core.storage.log;
        !self.pending.is_empty() || log.wait_beyond(seen, at_most)
    }

    fn read(&mut self, written: FollowedRecord) -> Result<(), Error> {
        let (time, millis) = (written.time(), written.millis);
        let mut events = CommitEvents {
            number: 0,
            origin: None,
            time,
            millis,
        };
        let payload = match written.content {
            Content::Catalog(payload) => {
                let event = DdlEvent::read(&payload);
                let event = event.map_err(|Unreadable| undecodable(written.position))?;
                self.pending.extend(event.map(|event| {
                    let kind = EventKind::Catalog {
                        operation: event.kind,
                        to: event.to,
                        description: event.description,
                        before: event.before,
                    };
                    events.event(&event.named, kind)
                }));
                return Ok(());
            }
            Content::Data(payload) => Bytes::from(payload),
        };
        let position = written.position;
        match DataRecord::read(payload).ok_or_else(|| undecodable(position))? {
            DataRecord::Commit(payload) => self.read_part(position, payload, &mut events),
            DataRecord::Transaction(transaction) => {
                events.origin = Some(transaction.origin).filter(|it| *it != Origin::NO_SESSION);
                let mut parts = transaction.parts.into_iter();
                parts.try_for_each(|part| self.read_part(position, part, &mut events))
            }
        }
    }

    /// Reads the events of a commit's part in one collection. Events that do not match also count
    /// for the numbers of events with the same time.
    fn read_part(
        &mut self,
        position: Position,
        payload: Bytes,
        events: &mut CommitEvents,
    ) -> Result<(), Error> {
        let collection = record::collection_of(&payload);
        let named = collection.and_then(|id| self.name(id, position));
        let named = named.filter(|named| (self.wants)(&named.namespace));
        // If the commit has only this part, no later event needs the count.
        if named.is_none() && events.origin.is_none() {
            return Ok(());
        }
        for kind in kinds(position, payload)? {
            match &named {
                Some(named) => self.pending.push_back(events.event(named, kind)),
                None => events.number += 1,
            }
        }
        Ok(())
    }

    /// Returns the name that the collection had at the position. Former names are recorded before
    /// the name changes.
    fn name(&self, collection: CollectionId, position: Position) -> Option<NamedRow> {
        let past = || self.collections.core.retired_names.at(collection, position);
        let now = || Some(self.collections.by_id(collection)?.row().named());
        past().or_else(now).or_else(past)
    }
}

/// The common state of the events of one log record.
struct CommitEvents {
    /// The number of the next event.
    number: u64,
    origin: Option<Origin>,
    time: ClusterTime,
    millis: u64,
}

impl CommitEvents {
    fn event(&mut self, named: &NamedRow, kind: EventKind) -> Event {
        self.number += 1;
        Event {
            time: self.time,
            millis: self.millis,
            number: self.number - 1,
            namespace: named.namespace.clone(),
            uuid: named.uuid,
            origin: self.origin,
            kind,
        }
    }
}

/// Decodes the changes of a commit in one collection.
fn kinds(position: Position, payload: Bytes) -> Result<Vec<EventKind>, Error> {
    let undecodable = || undecodable(position);
    let (commit, _) = record::decode(position, payload).ok_or_else(undecodable)?;
    let mut kinds = Vec::new();
    for operation in commit.operations {
        match operation {
            Operation::Insert { documents, .. } => {
                let inserted = record::documents(&documents);
                let bytes = |(at, document): (usize, Document<'_>)| {
                    EventKind::Insert(documents.slice(at..at + document.as_bytes().len()))
                };
                kinds.extend(inserted.map(bytes));
            }
            Operation::Update {
                document, detail, ..
            } => {
                let detail = event_detail::decode_update(&detail).ok_or_else(undecodable)?;
                kinds.push(EventKind::Update {
                    new: document,
                    description: detail.description,
                    old: detail.old,
                });
            }
            Operation::Delete { detail, .. } => {
                let DeletionDetail { key, old, cause } =
                    event_detail::decode_deletion(&detail).ok_or_else(undecodable)?;
                if cause == DeletionCause::Request {
                    kinds.push(EventKind::Delete { key, old });
                }
            }
        }
    }
    Ok(kinds)
}

impl Engine {
    /// Returns a cursor over events from now on. `wants` decides by collection.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use windrow_collection::{Engine, EngineOptions, Error, InsertOrder, Namespace};
    /// # use windrow_storage::MemoryDisk;
    /// use windrow_collection::{EventKind, Step};
    /// use windrow_document::doc;
    ///
    /// # let options = EngineOptions::with_memory(64 << 20);
    /// # let engine = Engine::open(Arc::new(MemoryDisk::new()), options)?;
    /// let birds = engine.collection_or_create(&Namespace::new("zoo", "birds")?)?;
    /// let mut events = engine.events(|namespace| namespace.database == "zoo")?;
    /// let heron = doc! { "_id": 1 };
    /// birds.insert(heron.as_bytes().to_vec().into(), InsertOrder::Ordered)?;
    /// let Step::Event(event) = events.step()? else {
    ///     panic!("a document was inserted");
    /// };
    /// assert_eq!(event.kind, EventKind::Insert(heron.as_bytes().to_vec().into()));
    /// assert_eq!(events.step()?, Step::AtEnd);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn events(
        &self,
        wants: impl Fn(&Namespace) -> bool + Send + 'static,
    ) -> Result<Events, Error> {
        self.core.retain_history()?;
        Ok(self.events_from(self.core.storage.log.written().next(), Box::new(wants)))
    }

    /// Returns a cursor over events from a cluster time on. Fails with `NotKept` if the log does
    /// not reach back that far.
    pub fn events_since(
        &self,
        time: ClusterTime,
        wants: impl Fn(&Namespace) -> bool + Send + 'static,
    ) -> Result<Events, Error> {
        self.core.retain_history()?;
        let log = &self.core.storage.log;
        let (first, position) = (log.history_first(), log.position_at(time)?);
        // Nothing precedes the very first record of a log.
        if position == first && first > Position(1) && Some(time) < self.time_of(first)? {
            let position = position.previous();
            return Err(StorageError::NotKept { position, first }.into());
        }
        let mut events = self.events_from(position, Box::new(wants));
        events.until = time;
        Ok(events)
    }

    /// Returns the cluster time of the newest commit.
    pub fn newest_time(&self) -> ClusterTime {
        self.core.storage.log.newest_time()
    }

    fn time_of(&self, position: Position) -> Result<Option<ClusterTime>, Error> {
        let record = self.core.storage.log.follow(position).read()?;
        Ok(record.map(|record| record.time()))
    }

    fn events_from(&self, position: Position, wants: NamespaceFilter) -> Events {
        Events {
            collections: self.collections.clone(),
            follower: self.core.storage.log.follow(position),
            wants,
            pending: VecDeque::new(),
            until: self.newest_time().next(),
        }
    }
}
