//! [`Replica`]: a data folder that is a copy of the database in an object store, and follows its
//! log.
//!
//! A start without local data (`load`):
//!
//! 1. Read the newest boundary of garbage collection. It names a checkpoint of the catalog, and the
//!    log object to begin with.
//! 2. Write the checkpoint and the records of the log into the folder.
//! 3. Save in the file STORE that the copy is whole. A start without this line begins again.
//!
//! A start with local data reads the log from the first object that was not compared yet. The local
//! log may have records that were never uploaded. They remain if the shared log has none at their
//! positions. Otherwise the local log has *diverged*: the records are passed to the caller, which
//! saves them, and the copy is loaded again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bucket::counted::CountedBucket;
use crate::bucket::{Bucket, retry};
use crate::catalog::{Catalog, remove_checkpoints, save_encoded};
use crate::compared_log::ComparedLog;
use crate::disk::Disk;
use crate::encryption::DataKeys;
use crate::error::StorageError;
use crate::folder::open_copy;
use crate::local_state::{ComparedObject, Id, LocalState, random_id};
use crate::log::{ClusterTime, Content, FollowedRecord, Follower, Kind, LogCopy, remove_log};
use crate::position::Position;
use crate::run_objects::chunk_cache::ChunkCache;
use crate::run_objects::{RunObjects, first_run};
use crate::shared_log::boundary::{self, Boundary};
use crate::shared_log::log_object::{ObjectKind, SharedRecord};
use crate::shared_log::members::{Announcement, MemberState};
use crate::shared_log::read_ahead::ReadAhead;
use crate::shared_log::uploader::{ClusterOptions, UploadParts, Uploader};
use crate::shared_log::{self, LogEnd, LogWriter, Takeover, members, probe, shared_keys};
use crate::storage::{Storage, StorageOptions};

/// A copy of a database in an object store. It follows the log until it takes it over.
pub struct Replica {
    storage: Storage,
    /// The object store as the caller has passed it.
    base_bucket: Arc<dyn Bucket>,
    /// Its object store counts requests, and encrypts if the database is encrypted.
    options: ClusterOptions,
    disk: Arc<dyn Disk>,
    storage_options: StorageOptions,
    compared: Arc<ComparedLog>,
    end: LogEnd,
    /// The newest object that was read. The next start reads it again, because its header names
    /// the server that wrote it.
    newest: ComparedObject,
    /// Reads the local records that the next objects are compared with, until the first one that
    /// the local log does not have.
    local: Follower,
    objects: Arc<RunObjects>,
    objects_since_save: u32,
    /// The time at which this server last announced itself.
    announced: Option<Instant>,
    /// The number of the newest announcement of this server.
    heartbeat_number: u64,
}

/// The publish step of a record: the log runs it before a snapshot can have the record's position.
pub type Publish = Box<dyn FnOnce(Position) + Send>;

/// Prepares the records of another server's log for the one that adds them.
pub trait Applier {
    /// Returns the publish step of the next record. It must be quick, because readers of the log
    /// wait for it.
    ///
    /// # Errors
    /// Fails if the record cannot be applied. It is not added then.
    fn prepare(&mut self, record: FollowedRecord) -> Result<Publish, StorageError>;
    /// Returns the position up to which this server does not need the runs that the log has
    /// removed. `written` is the newest position.
    fn needs_after(&self, written: Position) -> Position;
}

/// Adds records to the log, and does nothing else.
impl Applier for () {
    fn prepare(&mut self, _: FollowedRecord) -> Result<Publish, StorageError> {
        Ok(Box::new(|_| {}))
    }

    fn needs_after(&self, written: Position) -> Position {
        written
    }
}

/// The result of [`Replica::follow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowOutcome {
    /// A log object was read and added to the copy.
    Advanced,
    /// There is no further object.
    AtEnd,
    /// The copy cannot be continued: [`Replica::reload`] is needed.
    Stale(StaleReason),
}

/// The reason why a copy cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleReason {
    /// From this position on, the local log has other records than the shared one.
    Diverged(Position),
    /// The objects that the copy needs were deleted.
    Collected,
}

/// The result of [`Replica::take_over`].
pub enum Promotion {
    /// This server is the primary.
    Won(Primary),
    /// The log was extended by another server. The replica has to follow it first.
    Behind(Box<Replica>),
    /// The copy cannot be continued: [`Replica::reload`] is needed.
    Stale(Box<Replica>, StaleReason),
}

/// A replica that has taken over the log.
pub struct Primary {
    replica: Box<Replica>,
    writer: LogWriter,
}

impl Primary {
    /// Returns the storage, and starts the upload of what is written to it.
    ///
    /// # Errors
    /// Fails if a thread cannot be started.
    pub fn into_storage(self) -> Result<Storage, StorageError> {
        let Replica {
            storage,
            options,
            compared,
            objects,
            ..
        } = *self.replica;
        let uploader = Uploader::start(UploadParts {
            log: storage.log.clone(),
            compared,
            options,
            objects,
            writer: self.writer,
            members: storage.members().clone(),
        })?;
        storage.set_uploader(uploader)?;
        Ok(storage)
    }
}

/// The newest compared object is saved after this many objects.
const SAVE_INTERVAL: u32 = 256;

impl Replica {
    /// Opens a data folder as a copy of the database in the object store. An empty folder becomes
    /// one.
    ///
    /// Before, checks that the object store creates an object once only.
    ///
    /// # Errors
    /// Fails as [`Storage::open`] does, with `Unsuitable` if the folder is not a copy of this
    /// database or the object store is not suitable, and with `Unavailable` if the object store
    /// cannot be reached.
    pub fn open(
        disk: Arc<dyn Disk>,
        storage_options: StorageOptions,
        mut options: ClusterOptions,
    ) -> Result<Replica, StorageError> {
        let base_bucket = options.bucket;
        let counted = Arc::new(CountedBucket::new(base_bucket.clone()));
        let bucket: Arc<dyn Bucket> = counted.clone();
        probe::probe(&bucket)?;
        let master = storage_options.encryption.as_deref();
        let (database, keys) = shared_keys::open(bucket.as_ref(), master)?;
        let bucket = shared_keys::with_keys(bucket, keys.as_ref());
        options.bucket = bucket.clone();
        let state = open_state(&disk, database.id, &options)?;
        let folder = open_copy(&disk, keys.clone())?;
        announce_loading(bucket.as_ref(), state.server, &options.address)?;
        let copy = CopyTarget {
            disk: &disk,
            keys: keys.as_ref(),
            options: &storage_options,
        };
        let compared = match state.compared {
            Some(compared) => compared,
            None => load(&copy, &options)?,
        };
        let state = LocalState {
            compared: Some(compared),
            ..state
        };
        state.save(&disk)?;
        let cache = ChunkCache::open(&disk, options.cache_bytes)?;
        let retry_policy = options.retry_policy.clone();
        let objects = Arc::new(RunObjects::new(bucket, counted, cache, retry_policy));
        let mut storage = Storage::open_in(
            folder,
            disk.clone(),
            storage_options.clone(),
            Some(objects.clone()),
        )?;
        objects.set_log(&storage.log);
        let compared_log = ComparedLog::new(storage.log.clone(), disk.clone(), state);
        let compared_log = Arc::new(compared_log);
        storage.set_compared(compared_log.clone());
        Ok(Replica {
            local: storage.log.follow(compared.first),
            newest: compared,
            end: LogEnd {
                number: compared.number,
                position: compared.first,
                is_released: compared.number == 1,
                ..LogEnd::EMPTY
            },
            storage,
            base_bucket,
            options,
            disk,
            storage_options,
            compared: compared_log,
            objects,
            objects_since_save: 0,
            announced: None,
            heartbeat_number: 0,
        })
    }

    /// Returns the newest position of the copy.
    pub fn written(&self) -> Position {
        self.storage.log.written()
    }

    /// Returns `true` if no server extends the log: it is empty, its writer has ended, or this
    /// server itself was its writer. To be asked at the end of the log.
    pub fn is_without_primary(&self) -> bool {
        self.end.is_released || self.end.writer == self.compared.server()
    }

    /// Returns the storage, for reading. It accepts writes after the takeover.
    pub fn storage(&self) -> Storage {
        self.storage.clone()
    }

    /// Reads the next log object, and adds its records to the local log. `applier` prepares what
    /// the log does with each.
    ///
    /// # Errors
    /// Fails with `Unavailable` if the object store fails, with errors of `applier`, and as appends
    /// to the local log do.
    pub fn follow(&mut self, applier: &mut dyn Applier) -> Result<FollowOutcome, StorageError> {
        let bucket = self.options.bucket.clone();
        let Some(object) = shared_log::read(bucket.as_ref(), self.end.number)? else {
            return Ok(if self.exchange_announcements(applier)? {
                FollowOutcome::Stale(StaleReason::Collected)
            } else {
                FollowOutcome::AtEnd
            });
        };
        if !shared_log::follows(bucket.as_ref(), &object, self.end.position)? {
            return Ok(FollowOutcome::Stale(StaleReason::Collected));
        }
        // After the takeover by another server, local records behind it are never uploaded.
        let is_taken = object.header.kind == ObjectKind::Takeover
            && object.header.writer != self.compared.server();
        if is_taken && self.storage.log.written() >= object.header.first {
            return Ok(FollowOutcome::Stale(StaleReason::Diverged(
                object.header.first,
            )));
        }
        for record in &object.records {
            if let Some(stale) = self.take(record, applier)? {
                return Ok(FollowOutcome::Stale(stale));
            }
        }
        self.storage.change_seen_primary(|seen| {
            seen.epoch = object.header.epoch;
            if object.header.kind == ObjectKind::Takeover {
                seen.address.clone_from(&object.address);
            }
        });
        if let Some(newest) = object.records.last() {
            let now = (self.storage_options.log.clock)();
            let delay_ms = now.saturating_sub(newest.payload.millis);
            self.storage.record_delay(Duration::from_millis(delay_ms));
        }
        self.newest = ComparedObject {
            number: object.header.number,
            first: object.header.first,
        };
        self.end = LogEnd::after(&object);
        self.record_progress()?;
        Ok(FollowOutcome::Advanced)
    }

    /// Announces this server and reads the announcements of the others, if the last time was long
    /// enough ago: the requests cost more than those for the next object. Returns `true` if the
    /// next object was deleted before this server has read it.
    fn exchange_announcements(&mut self, applier: &dyn Applier) -> Result<bool, StorageError> {
        let interval = self.options.heartbeat * members::ANNOUNCEMENT_HEARTBEATS;
        let is_recent = |since: Instant| since.elapsed() < interval;
        if self.announced.is_some_and(is_recent) {
            return Ok(false);
        }
        let bucket = self.options.bucket.as_ref();
        self.heartbeat_number += 1;
        let log = &self.storage.log;
        let needs_after = applier.needs_after(log.written());
        let own = Announcement {
            state: MemberState {
                address: self.options.address.clone(),
                applied: log.newest_time(),
            },
            needs_after,
            heartbeat_number: self.heartbeat_number,
            builder: self.storage.builder(),
        };
        members::announce(bucket, self.compared.server(), &own)?;
        let all = members::all(bucket)?;
        let primary = all.iter().find(|(id, _)| *id == self.end.writer);
        self.storage.members().update(&all);
        if let Some((_, primary)) = primary {
            let address = &primary.state.address;
            self.storage
                .change_seen_primary(|seen| seen.address.clone_from(address));
        }
        let (_, boundary) = boundary::newest(bucket)?;
        self.announced = Some(Instant::now());
        Ok(self.end.number <= boundary.collected)
    }

    /// Compares a record with the local log, or adds it to its end.
    fn take(
        &mut self,
        record: &SharedRecord,
        applier: &mut dyn Applier,
    ) -> Result<Option<StaleReason>, StorageError> {
        let written = self.storage.log.written();
        if record.position <= written {
            let local = self.local.read_stored()?;
            let is_same = local.as_ref() == Some(&record.payload);
            return Ok((!is_same).then_some(StaleReason::Diverged(record.position)));
        }
        if record.position > written.next() {
            // Unsynced records of the local log were lost.
            return Ok(Some(StaleReason::Collected));
        }
        let payload = record.payload.payload();
        let place = || format!("record {} of the shared log", record.position);
        let payload = payload.map_err(|what| StorageError::damaged(place(), what))?;
        let mut prepare = |content| {
            applier.prepare(FollowedRecord {
                position: record.position,
                millis: record.payload.millis,
                content,
            })
        };
        match record.payload.kind {
            Kind::Catalog => {
                let changes = Catalog::read_change(&payload);
                let what = "it is not a change of the catalog";
                let changes = changes.ok_or_else(|| StorageError::damaged(place(), what))?;
                let publish = prepare(Content::Catalog(payload))?;
                let copy = &record.payload;
                self.storage.catalog.append_copy(copy, changes, publish)?;
            }
            Kind::Data | Kind::EndMarker => {
                let publish = prepare(Content::Data(payload))?;
                self.storage.log.append_copy(&record.payload, publish)?;
            }
        }
        Ok(None)
    }

    fn record_progress(&mut self) -> Result<(), StorageError> {
        self.objects_since_save += 1;
        if self.objects_since_save < SAVE_INTERVAL {
            return Ok(());
        }
        self.objects_since_save = 0;
        self.save_compared()
    }

    /// Saves up to where the local log was compared. The next start begins there.
    fn save_compared(&mut self) -> Result<(), StorageError> {
        self.compared.save(self.newest)
    }

    /// Tries to become the primary. To be called at the end of the log.
    ///
    /// # Errors
    /// Fails if the object store fails for longer than the retry policy of the caller.
    pub fn take_over(mut self) -> Result<Promotion, StorageError> {
        self.save_compared()?;
        let taken = shared_log::take_over(
            &self.options.bucket,
            self.end,
            self.compared.server(),
            &self.options.address,
            self.options.retry_policy.as_ref(),
        )?;
        Ok(match taken {
            Takeover::Won(writer) => {
                let first = first_run(writer.end().epoch);
                self.storage.runs.begin_ids_at(first);
                self.objects.make_writable();
                Promotion::Won(Primary {
                    replica: Box::new(self),
                    writer,
                })
            }
            Takeover::Behind => Promotion::Behind(Box::new(self)),
            Takeover::Collected => Promotion::Stale(Box::new(self), StaleReason::Collected),
        })
    }

    /// Loads the copy again. Before, passes the local records that are not in the shared log to
    /// `save`, if they are known.
    ///
    /// # Errors
    /// Fails with the error of `save`, and as [`Replica::open`] does.
    pub fn reload(
        self,
        stale: StaleReason,
        save: impl FnOnce(&Storage, Position) -> Result<(), StorageError>,
    ) -> Result<Replica, StorageError> {
        if let StaleReason::Diverged(position) = stale {
            save(&self.storage, position)?;
        }
        let Replica {
            storage,
            base_bucket,
            mut options,
            disk,
            storage_options,
            compared,
            local,
            objects,
            ..
        } = self;
        compared.forget()?;
        drop((storage, compared, local, objects));
        options.bucket = base_bucket;
        Replica::open(disk, storage_options, options)
    }
}

/// Announces this server as one that needs everything: until its copy is loaded, the others must
/// not delete any object. Replaces the servers that had its address before.
fn announce_loading(bucket: &dyn Bucket, server: Id, address: &str) -> Result<(), StorageError> {
    let loading = Announcement {
        state: MemberState {
            address: address.to_owned(),
            applied: ClusterTime(0),
        },
        needs_after: Position::ZERO,
        heartbeat_number: 0,
        builder: None,
    };
    members::announce(bucket, server, &loading)?;
    members::replace_others(bucket, server, address)
}

/// Makes an empty folder the copy of a database.
fn begin_folder(
    disk: &Arc<dyn Disk>,
    database: Id,
    options: &ClusterOptions,
) -> Result<LocalState, StorageError> {
    // A folder with a database of its own must not be replaced.
    let names = disk.list("").unwrap_or_default();
    if names.iter().any(|name| name == "FORMAT") {
        return Err(StorageError::Unsuitable {
            place: disk.place(""),
            what: "it has a database of its own; use an empty folder, and mongodump and \
                   mongorestore to copy the data"
                .to_owned(),
        });
    }
    let server = options.new_server.map_or_else(random_id, Ok)?;
    let state = LocalState::new(server, database);
    state.save(disk)?;
    Ok(state)
}

/// The folder that becomes a copy.
struct CopyTarget<'a> {
    disk: &'a Arc<dyn Disk>,
    /// The data keys of an encrypted database.
    keys: Option<&'a Arc<DataKeys>>,
    options: &'a StorageOptions,
}

/// Returns the state of a folder that is a copy of this database, or begins one in an empty folder.
fn open_state(
    disk: &Arc<dyn Disk>,
    database: Id,
    options: &ClusterOptions,
) -> Result<LocalState, StorageError> {
    match LocalState::read(disk)? {
        Some(state) if state.database == database => Ok(state),
        Some(_) => Err(StorageError::Unsuitable {
            place: disk.place(""),
            what: format!(
                "it is a copy of another database than {}",
                options.bucket.place("")
            ),
        }),
        None => begin_folder(disk, database, options),
    }
}

/// Fills a folder with a copy of the database. Returns the newest log object that was read. If the
/// log is empty, returns the first one.
fn load(copy: &CopyTarget<'_>, options: &ClusterOptions) -> Result<ComparedObject, StorageError> {
    loop {
        remove_log(copy.disk)?;
        remove_checkpoints(copy.disk)?;
        let (_, boundary) = retry(options.retry_policy.as_ref(), || {
            boundary::newest(options.bucket.as_ref())
        })?;
        if let Some(loaded) = load_from(copy, options, boundary)? {
            return Ok(loaded);
        }
        // Garbage was collected meanwhile.
    }
}

/// Fills an empty folder from a boundary. Returns `None` if something that is needed was deleted
/// meanwhile.
fn load_from(
    target: &CopyTarget<'_>,
    options: &ClusterOptions,
    boundary: Boundary,
) -> Result<Option<ComparedObject>, StorageError> {
    let (bucket, retry_policy) = (options.bucket.as_ref(), options.retry_policy.as_ref());
    let mut checkpointed = Position::ZERO;
    if let Some(name) = boundary.checkpoint {
        let Some(bytes) = retry(retry_policy, || bucket.get(&name.path()))? else {
            boundary::check_replaced(bucket, retry_policy, boundary, "its checkpoint")?;
            return Ok(None);
        };
        let keys = target.keys.map(Arc::as_ref);
        save_encoded(target.disk, keys, name.position, &bytes)?;
        checkpointed = name.position;
    }
    let mut number = boundary.start.max(1);
    let mut newest = ComparedObject {
        number: 1,
        first: Position(1),
    };
    let mut copy: Option<LogCopy> = None;
    let mut objects = ReadAhead::begin(options, number)?;
    while let Some(object) = objects.next()? {
        let copy = match &mut copy {
            Some(copy) => copy,
            None => copy.insert(LogCopy::begin(
                target.disk,
                target.keys.cloned(),
                &target.options.log,
                object.header.first,
            )?),
        };
        if !retry(retry_policy, || {
            shared_log::follows(bucket, &object, copy.next())
        })? {
            return Ok(None);
        }
        for record in &object.records {
            copy.add(&record.payload)?;
        }
        newest = ComparedObject {
            number,
            first: object.header.first,
        };
        number += 1;
    }
    let next = copy.as_ref().map_or(Position(1), LogCopy::next);
    if next <= checkpointed {
        boundary::check_replaced(bucket, retry_policy, boundary, "a part of the log")?;
        return Ok(None);
    }
    copy.map(LogCopy::finish).transpose()?;
    Ok(Some(newest))
}
