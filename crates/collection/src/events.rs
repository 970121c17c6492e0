//! Changes as change streams tell them, read from the log.
//!
//! The log is the only place that has them. It says which collection a record is for by number: the
//! name is the one that it had then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf};
use windrow_mql::update::UpdateDescription;
use windrow_storage::{ClusterTime, Content, Follower, Position, StorageError, Written};

use crate::collections::Collections;
use crate::ddl_event::{DdlEvent, DdlKind};
use crate::engine::Engine;
use crate::error::Error;
use crate::event_detail::{self, DeletionDetail};
use crate::ids::CollectionId;
use crate::namespace::Namespace;
use crate::record::transaction::{self, Kind, Origin};
use crate::record::{self, Operation};
use crate::rows::NamedRow;

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub time: ClusterTime,
    /// The wall clock, in milliseconds since 1970.
    pub millis: u64,
    /// Its number among those that were written together, which have the same time.
    pub number: u64,
    /// Of a database: without a collection.
    pub namespace: Namespace,
    pub uuid: [u8; 16],
    /// The transaction that it was part of.
    pub origin: Option<Origin>,
    pub kind: EventKind,
}

/// What was changed. Documents are whole; a key is `{_id}`.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    Insert(Bytes),
    Update {
        new: Bytes,
        /// None where the document was replaced.
        description: Option<UpdateDescription>,
        old: Option<DocumentBuf>,
    },
    Delete {
        key: DocumentBuf,
        old: Option<DocumentBuf>,
    },
    /// A collection, a database or their indexes.
    Catalog {
        operation: DdlKind,
        to: Option<Namespace>,
        description: DocumentBuf,
        /// What was changed, as it was.
        before: Option<DocumentBuf>,
    },
}

/// What [`Events::step`] came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Event(Box<Event>),
    /// Something that was not wanted.
    Passed,
    /// Nothing more is there now.
    AtEnd,
}

/// Whether changes of this collection are wanted.
type Wants = Box<dyn Fn(&Namespace) -> bool + Send>;

/// The changes from some point on, as they come.
pub struct Events {
    collections: Arc<Collections>,
    follower: Follower,
    wants: Wants,
    /// What is left of the record that was read last.
    pending: VecDeque<Event>,
    /// Nothing before this time is given, but for what is pending.
    until: ClusterTime,
}

impl Events {
    /// The next change of a wanted collection, or of the catalog, once it is there. It reads one record
    /// of the log at most.
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

    /// Everything before this time has been given.
    pub fn until(&self) -> ClusterTime {
        self.until
    }

    /// Waits until there may be more, at most so long; whether there may be.
    pub fn wait(&self, at_most: Duration) -> bool {
        let seen = self.follower.position().previous();
        let log = &self.collections.core.storage.log;
        !self.pending.is_empty() || log.wait_beyond(seen, at_most)
    }

    fn read(&mut self, written: Written) -> Result<(), Error> {
        let (time, millis) = (written.time(), written.millis);
        let mut events = Commit {
            number: 0,
            origin: None,
            time,
            millis,
        };
        let payload = match written.content {
            Content::Catalog(payload) => {
                let event = DdlEvent::read(&payload);
                let event = event.map(|event| event.ok_or_else(|| damaged(written.position)));
                self.pending.extend(event.transpose()?.map(|event| {
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
        match transaction::kind_of(payload).ok_or_else(|| damaged(position))? {
            Kind::Single(payload) => self.read_part(position, payload, &mut events),
            Kind::Several(several) => {
                events.origin = Some(several.origin);
                let mut parts = several.parts.into_iter();
                parts.try_for_each(|part| self.read_part(position, part, &mut events))
            }
        }
    }

    /// What a commit changed in one collection. Those that are not wanted count nevertheless among
    /// events of the same time.
    fn read_part(
        &mut self,
        position: Position,
        payload: Bytes,
        events: &mut Commit,
    ) -> Result<(), Error> {
        let collection = record::collection_of(&payload);
        let named = collection.and_then(|id| self.name(id, position));
        let named = named.filter(|named| (self.wants)(&named.namespace));
        // Alone it has nothing behind it to be counted for.
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

    /// How the collection was called then. Names that go are remembered before they go.
    fn name(&self, collection: CollectionId, position: Position) -> Option<NamedRow> {
        let past = || self.collections.core.retired_names.at(collection, position);
        let now = || Some(self.collections.by_id(collection)?.row().named());
        past().or_else(now).or_else(past)
    }
}

/// What the events of one record have in common.
struct Commit {
    /// The number of the next one.
    number: u64,
    origin: Option<Origin>,
    time: ClusterTime,
    millis: u64,
}

impl Commit {
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

fn damaged(position: Position) -> Error {
    let place = format!("log record {position}");
    let what = "it cannot be decoded".to_owned();
    StorageError::Damaged { place, what }.into()
}

/// What a commit changed in one collection.
fn kinds(position: Position, payload: Bytes) -> Result<Vec<EventKind>, Error> {
    let damaged = || damaged(position);
    let (commit, _) = record::decode(position, payload).ok_or_else(damaged)?;
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
                let detail = event_detail::read_update(&detail).ok_or_else(damaged)?;
                kinds.push(EventKind::Update {
                    new: document,
                    description: detail.description,
                    old: detail.old,
                });
            }
            Operation::Delete { detail, .. } => {
                let DeletionDetail {
                    key,
                    old,
                    is_silent,
                } = event_detail::read_deletion(&detail).ok_or_else(damaged)?;
                if !is_silent {
                    kinds.push(EventKind::Delete { key, old });
                }
            }
        }
    }
    Ok(kinds)
}

impl Engine {
    /// The changes that are written from now on; `wants` says of which collections.
    pub fn events(
        &self,
        wants: impl Fn(&Namespace) -> bool + Send + 'static,
    ) -> Result<Events, Error> {
        self.core.keep_history()?;
        Ok(self.events_from(self.core.storage.log.written().next(), Box::new(wants)))
    }

    /// The changes from a time on. Error `NotKept` where the log does not reach back so far.
    pub fn events_since(
        &self,
        time: ClusterTime,
        wants: impl Fn(&Namespace) -> bool + Send + 'static,
    ) -> Result<Events, Error> {
        self.core.keep_history()?;
        let log = &self.core.storage.log;
        let (first, position) = (log.history_first(), log.position_at(time)?);
        // The first record of all has nothing before it.
        if position == first && first > Position(1) && Some(time) < self.time_of(first)? {
            let position = position.previous().0;
            let first = first.0;
            return Err(StorageError::NotKept { position, first }.into());
        }
        let mut events = self.events_from(position, Box::new(wants));
        events.until = time;
        Ok(events)
    }

    /// Whether something that is still kept was written at exactly this time.
    pub fn was_written_at(&self, time: ClusterTime) -> Result<bool, Error> {
        Ok(self.core.storage.log.position_of(time)?.is_some())
    }

    /// The time of the newest change.
    pub fn newest_time(&self) -> ClusterTime {
        self.core.storage.log.newest_time()
    }

    fn time_of(&self, position: Position) -> Result<Option<ClusterTime>, Error> {
        let record = self.core.storage.log.follow(position).read()?;
        Ok(record.map(|record| record.time()))
    }

    fn events_from(&self, position: Position, wants: Wants) -> Events {
        Events {
            collections: self.collections.clone(),
            follower: self.core.storage.log.follow(position),
            wants,
            pending: VecDeque::new(),
            until: self.newest_time().next(),
        }
    }
}
