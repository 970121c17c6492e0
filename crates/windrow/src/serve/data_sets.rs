//! The data sets of a server. Opens each of them, monitors its role, and reopens it after another
//! server has become its primary.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windrow_collection::{Engine, EngineOptions, Error, Position};
use windrow_document::doc;
use windrow_server::{
    DataSetHost, DataSetId, EncryptStream, FirstEngine, Log, OpenDataSet, Placement,
    RouterSettings, Server, Severity, Stop, TlsMode, log_resumed_builds,
};
use windrow_storage::MemoryDisk;

use super::added_sets::agree_on_placement;
use super::data_set_location::{DataSetLocation, locations};
use super::options::Options;
use super::placement_check::PlacementCheck;
use super::shared_store::{FollowTask, OpenedEngine, Takeover};
use super::store_options::{DataSetOptions, StoreOptions};
use crate::client;
use crate::command_line::Failure;
use crate::memory::MEMORY_BYTES_MIN;
use crate::secret_file;
use crate::server_target::TlsFiles;
use crate::store::open_bucket;

/// The interval at which a primary checks whether it was or should be replaced.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// The time for which a server does not become the primary again after it has handed over a data
/// set.
const HANDOVER_ABSTENTION: Duration = Duration::from_secs(10);

/// The minimum interval of handovers of a data set by one server. If the server that should be the
/// primary cannot become it, the data set would otherwise be handed over continually.
const HANDOVER_INTERVAL: Duration = Duration::from_secs(20);

/// The pause before another attempt to open a data set.
const OPEN_PAUSE: Duration = Duration::from_secs(1);

/// The maximum time in which a closed data set must be reopened.
const OPEN_TIME_MAX: Duration = Duration::from_secs(120);

/// The ids of log lines. MongoDB has no such events.
const REOPENED: i32 = 9_000_050;
const NOT_OPENED: i32 = 9_000_051;

/// The minimum and maximum length of a key in characters, as in MongoDB's key files.
const KEY_LENGTHS: std::ops::RangeInclusive<usize> = 6..=1024;

/// The open data sets of a server.
pub struct DataSets {
    placement: Placement,
    check: PlacementCheck,
    locations: Vec<DataSetLocation>,
    key: Option<String>,
    engines: Vec<OpenedEngine>,
    first: Arc<FirstEngine>,
    /// The engine of the state that clients connect to. It has no data.
    front: Arc<Engine>,
}

impl DataSets {
    /// Compares the data sets in the object store with the options, adds those that are new, and
    /// opens all of them.
    ///
    /// # Errors
    /// Fails if others are stored, if one cannot be opened, or if there is too little memory.
    pub fn open(
        options: &Options,
        store: &StoreOptions,
        sets: &DataSetOptions,
        log: &Arc<Log>,
    ) -> Result<DataSets, Failure> {
        let key = sets.key_file.as_deref().map(read_key).transpose()?;
        let bucket = open_bucket(&store.url, &store.options).map_err(Failure::runtime)?;
        let agreed = agree_on_placement(options, store, &sets.placement, &bucket, log)?;
        let front_options = EngineOptions::with_memory(MEMORY_BYTES_MIN);
        let front = Engine::open(Arc::new(MemoryDisk::default()), front_options);
        let locations = locations(options, store, &agreed.placement)?;
        let mut opened = DataSets {
            check: PlacementCheck::new(bucket, agreed.version),
            placement: agreed.placement,
            key,
            engines: Vec::new(),
            first: Arc::default(),
            front: front.map_err(Failure::runtime)?,
            locations: Vec::new(),
        };
        let takeover = Takeover::IfNeeded {
            abstention: Duration::ZERO,
        };
        for location in locations {
            match location.open(options, &opened.check, takeover, log) {
                Ok(engine) => opened.engines.push(engine),
                Err(failure) => {
                    opened.close();
                    return Err(failure);
                }
            }
            opened.locations.push(location);
        }
        let first = opened.engines.first().map(|opened| opened.engine.clone());
        opened.first.set(first);
        Ok(opened)
    }

    /// Returns the engine of the first data set, which contains the users.
    pub fn first_engine(&self) -> Arc<FirstEngine> {
        self.first.clone()
    }

    /// Returns the engine of the state that clients connect to.
    pub fn front_engine(&self) -> Arc<Engine> {
        self.front.clone()
    }

    pub fn is_encrypted(&self) -> bool {
        self.engines
            .iter()
            .any(|opened| opened.engine.is_encrypted())
    }

    /// Returns the settings of the router.
    pub fn router(&self, options: &Options) -> RouterSettings {
        let address = self
            .locations
            .first()
            .map(|location| location.store.advertise.clone());
        RouterSettings {
            placement: self.placement.clone(),
            address: address.unwrap_or_default(),
            key: self.key.clone(),
            encrypt: encryption_of_peers(options),
            first: self.first.clone(),
        }
    }

    /// Closes the engines, if they are not served.
    pub fn close(self) {
        for OpenedEngine { engine, follow } in self.engines {
            drop(follow);
            // The start fails in any case.
            let _ = engine.close();
        }
    }

    /// Serves each data set in a thread, until a stop is requested.
    ///
    /// # Errors
    /// Fails like [`Server::run`], or if a thread cannot be started.
    pub fn serve(
        self,
        options: Arc<Options>,
        server: Server,
        log: &Arc<Log>,
    ) -> Result<(), Failure> {
        let Some(host) = server.data_set_host() else {
            return Err(Failure::runtime("the server has no router"));
        };
        let stop: Arc<Stop> = Arc::default();
        let monitor = self.check.clone().monitor(server.stop())?;
        let mut threads = Vec::new();
        let sets = self.locations.into_iter().zip(self.engines);
        for (id, (location, opened)) in self.placement.ids().zip(sets) {
            let name = format!("set {}", location.name);
            let task = DataSetTask {
                id,
                location,
                host: host.clone(),
                options: options.clone(),
                check: self.check.clone(),
                log: log.clone(),
                stop: stop.clone(),
            };
            log_resumed_builds(&opened.engine, log);
            let open = host
                .open(id, opened.engine.clone())
                .map_err(Failure::runtime)?;
            let thread = thread::Builder::new().name(name);
            let thread = thread.spawn(move || task.run(open, opened));
            threads.push(thread.map_err(Failure::runtime)?);
        }
        let served = server.run();
        self.first.end();
        // All clients were served.
        stop.request();
        for thread in threads {
            // A panic was already logged.
            drop(thread.join());
        }
        monitor.end()?;
        served.map_err(Failure::runtime)
    }
}

/// Reads the key of a cluster. As in MongoDB's key files, white space is ignored.
fn read_key(path: &Path) -> Result<String, Failure> {
    let text = secret_file::read(path)?;
    let key: String = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    let is_base64 = |letter: char| letter.is_ascii_alphanumeric() || "+/=".contains(letter);
    if !KEY_LENGTHS.contains(&key.len()) || !key.chars().all(is_base64) {
        let (min, max) = KEY_LENGTHS.into_inner();
        let what = format!("it does not have {min} to {max} characters of base64");
        return Err(secret_file::failure(path, what));
    }
    Ok(key)
}

/// Returns the function that begins TLS on connections to other servers. As in MongoDB, these
/// connections are unencrypted if TLS is merely allowed. If clients need a certificate, that of the
/// server is presented.
fn encryption_of_peers(options: &Options) -> Option<EncryptStream> {
    let tls = options.tls.as_ref()?;
    if tls.mode == TlsMode::Allow {
        return None;
    }
    let is_needed = tls.ca_file.is_some() && !tls.allow_without_certificates;
    let files = TlsFiles {
        ca_file: tls.ca_file.clone(),
        certificate_key_file: is_needed.then(|| tls.certificate_key_file.clone()),
    };
    Some(Arc::new(move |stream, host| {
        client::encrypt(stream, host, &files)
    }))
}

/// The work of a data set.
struct DataSetTask {
    id: DataSetId,
    location: DataSetLocation,
    host: DataSetHost,
    options: Arc<Options>,
    check: PlacementCheck,
    log: Arc<Log>,
    /// Requested after the last client was served.
    stop: Arc<Stop>,
}

impl DataSetTask {
    /// Serves a data set until the server stops.
    fn run(self, mut open: OpenDataSet, opened: OpenedEngine) {
        let OpenedEngine {
            mut engine,
            mut follow,
        } = opened;
        let handover = self.host.handover(self.id);
        let mut handed_over: Option<Instant> = None;
        loop {
            let can_hand_over = || handed_over.is_none_or(|it| it.elapsed() >= HANDOVER_INTERVAL);
            let is_due = |engine: &Engine| can_hand_over() && handover.is_due(engine.newest_time());
            let rank = || handover.rank();
            let ended = self.watch(
                follow.take(),
                &engine,
                &open,
                PrimaryDecisions { is_due, rank },
            );
            if let Err(error) = open.close() {
                self.log(
                    Severity::Error,
                    NOT_OPENED,
                    "A data set could not be closed",
                    &error,
                );
            }
            drop(engine);
            let (reason, abstention) = match ended {
                EndReason::Stopped => return,
                EndReason::Failed(error) => (error.to_string(), Duration::ZERO),
                EndReason::HandedOver => {
                    handed_over = Some(Instant::now());
                    let reason = "another server should be its primary";
                    (reason.to_owned(), HANDOVER_ABSTENTION)
                }
            };
            let message = "This server is not the primary of a data set any more, or could not \
                           follow; the data set is opened again";
            self.log(Severity::Warning, REOPENED, message, &reason);
            let Some(again) = self.open_again(abstention) else {
                return;
            };
            engine = again.engine.clone();
            follow = again.follow;
            match self.host.open(self.id, again.engine) {
                Ok(opened) => open = opened,
                Err(error) => {
                    self.give_up(&error);
                    return;
                }
            }
        }
    }

    /// Reopens the data set. Returns `None` if the server stops, or if reopening fails for too
    /// long, which also stops the server.
    fn open_again(&self, abstention: Duration) -> Option<OpenedEngine> {
        let began = Instant::now();
        loop {
            let takeover = Takeover::IfNeeded {
                abstention: abstention.saturating_sub(began.elapsed()),
            };
            let opened = self
                .location
                .open(&self.options, &self.check, takeover, &self.log);
            match opened {
                Ok(opened) => return Some(opened),
                Err(failure) if began.elapsed() >= OPEN_TIME_MAX => {
                    self.give_up(&failure);
                    return None;
                }
                Err(failure) => {
                    let message = "A data set could not be opened; it is tried again";
                    self.log(Severity::Warning, NOT_OPENED, message, &failure);
                }
            }
            if self.stop.wait(OPEN_PAUSE) || self.host.stop().is_requested() {
                return None;
            }
        }
    }

    fn give_up(&self, error: &dyn std::fmt::Display) {
        let message = "A data set could not be opened again: the server stops";
        self.log(Severity::Error, NOT_OPENED, message, error);
        self.host.stop().request();
    }

    /// Follows the primary. After this server has become the primary, monitors its role. Returns
    /// the reason of the end.
    fn watch(
        &self,
        follow: Option<FollowTask>,
        engine: &Engine,
        open: &OpenDataSet,
        decisions: PrimaryDecisions<impl Fn(&Engine) -> bool, impl Fn() -> u32>,
    ) -> EndReason {
        let stop = &self.stop;
        let followed = follow.map(|follow| follow.run(stop, &decisions.rank));
        if let Some(Err(error)) = followed {
            return EndReason::Failed(error);
        }
        let state = open.state();
        while !stop.wait(WATCH_INTERVAL) {
            let silence = engine.upload_silence();
            let is_silent = silence.is_some_and(|it| it >= self.location.store.election_timeout);
            state.set_suspended(is_silent);
            if let Err(error) = engine.wait_durable(Position::MAX, Duration::ZERO) {
                return EndReason::Failed(error);
            }
            if (decisions.is_due)(engine) && !self.host.stop().is_requested() {
                return EndReason::HandedOver;
            }
        }
        EndReason::Stopped
    }

    fn log(&self, severity: Severity, id: i32, message: &str, reason: &dyn std::fmt::Display) {
        let attr = doc! {
            "dataSet": (self.location.name.as_str()), "reason": (reason.to_string()),
        };
        self.log.write(severity, "REPL", id, "store", message, attr);
    }
}

/// The reason why this server no longer follows or serves a data set.
enum EndReason {
    /// The server stops.
    Stopped,
    /// It cannot follow, or another server has become the primary.
    Failed(Error),
    /// Another server should be the primary.
    HandedOver,
}

/// Callbacks that decide about the primary of a data set.
struct PrimaryDecisions<D, R> {
    /// Returns `true` if this server, the primary, should hand over the data set.
    is_due: D,
    /// Returns the number of servers that take precedence as the primary.
    rank: R,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_files_of_base64() {
        let path = std::env::temp_dir().join(format!("windrow-key-{}", std::process::id()));
        let check = |text: &str, expected: Option<&str>| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(read_key(&path).ok().as_deref(), expected, "{text:?}");
        };
        check("abc+/=\nDEF012\n", Some("abc+/=DEF012"));
        check("abc", None);
        check("abc def-ghi", None);
        fs::remove_file(&path).unwrap();
    }
}
