//! The state that all connections of a server share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize};
use std::time::{Instant, SystemTime};

use windrow_access::User;
use windrow_collection::{Engine, EngineOptions, SharedState};
use windrow_document::object_id::ObjectIdSource;
use windrow_document::{DocumentBuf, ObjectId, Value, ValueRef, doc};
use windrow_query::PlannerSettings;
use windrow_storage::MemoryDisk;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Directory;
use crate::access::fake_users::FakeUsers;
use crate::access::local_user::{local_user, peer_user};
use crate::adaptive_wait::BusyConnections;
use crate::audit::Audit;
use crate::buffers::Buffers;
use crate::client::{Client, Connections};
use crate::clock;
use crate::cluster_parameters::ClusterParameters;
use crate::config::Config;
use crate::cursors::Cursors;
use crate::fail_points::FailPoints;
use crate::log::{Log, Severity};
use crate::metrics::Metrics;
use crate::operation_slots::OperationSlots;
use crate::operations::Operations;
use crate::parameters::{self, Parameters, SetAt};
use crate::placement::{DataSetId, Placement};
use crate::profiling::{Profiling, SlowThreshold};
use crate::random;
use crate::replica_set::ReplicaSet;
use crate::sessions::Sessions;
use crate::statistics::StatisticsSources;
use crate::stop::Stop;
use crate::suspension::Suspension;
use crate::tls::{CERTIFICATE_WARNING_TIME, Tls, TlsError};
use crate::traces::Traces;
use crate::transactions::SessionTransactions;
use crate::usage::Usage;
use crate::users_engine::UsersEngine;

/// The services that the program passes to the server.
pub struct Services {
    /// The data folder.
    pub engine: Arc<Engine>,
    /// The log of the server.
    pub log: Arc<Log>,
    /// The path of the data folder, if it is on a disk.
    pub folder: Option<PathBuf>,
    /// The traces of commands. `None` if they are not traced.
    pub traces: Option<Arc<Traces>>,
    /// The engine with the users. It is open.
    pub users: UsersEngine,
}

impl Services {
    /// Services with an engine in memory, for tests and examples.
    pub fn in_memory(log: Arc<Log>) -> Result<Services, windrow_collection::Error> {
        let options = EngineOptions::with_memory(256 << 20);
        Ok(Services {
            engine: Engine::open(Arc::new(MemoryDisk::default()), options)?,
            log,
            folder: None,
            traces: None,
            users: UsersEngine::Own,
        })
    }
}

/// The state of a running server.
pub struct State {
    pub(crate) config: Config,
    pub(crate) services: Services,
    /// TLS. The server sets it before it listens.
    pub(crate) tls: Option<Tls>,
    /// The audit log, if there is one. The server sets it before it listens.
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) parameters: Arc<Parameters>,
    /// The users.
    pub(crate) directory: Arc<Directory>,
    pub(crate) fake_users: Arc<FakeUsers>,
    pub(crate) cluster_parameters: Arc<ClusterParameters>,
    pub(crate) fail_points: Arc<FailPoints>,
    /// The settings of the planner.
    pub(crate) planner_settings: Arc<PlannerSettings>,
    pub(crate) profiling: Arc<Profiling>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) operation_slots: Arc<OperationSlots>,
    pub(crate) sessions: Sessions,
    pub(crate) session_transactions: SessionTransactions,
    pub(crate) cursors: Cursors,
    pub(crate) connections: Arc<Connections>,
    pub(crate) busy_connections: BusyConnections,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) usage: Arc<Usage>,
    /// The sources of statistics about collections.
    pub(crate) statistics: Arc<StatisticsSources>,
    pub(crate) buffers: Buffers,
    pub(crate) stop: Arc<Stop>,
    pub(crate) suspension: Suspension,
    pub(crate) started: Instant,
    /// "host:port", the name of the server in replies.
    pub(crate) host: String,
    /// The replica set, if the server is a member of one.
    pub(crate) replica_set: Option<ReplicaSet>,
    /// Finds the data set of each request, if there are several.
    pub(crate) router: Option<Arc<dyn Route>>,
    /// The data set whose commands this state runs. `None` if there are no data sets, and for the
    /// state that clients connect to.
    pub(crate) data_set: Option<PlacedSet>,
    /// Generated at each start, so that drivers detect a restart.
    pub(crate) process_id: ObjectId,
    /// Generates the `_id`s of documents without one.
    pub(crate) object_ids: ObjectIdSource,
    /// The id of the last message that the server has sent.
    pub(crate) replies: AtomicI32,
    /// The number of clients that are being refused because there are too many connections.
    pub(crate) refusals: AtomicUsize,
}

/// Finds the data set of each request of a client.
pub(crate) trait Route: Send + Sync {
    /// Runs a request on a server that has its data set.
    fn run(&self, state: &State, client: &Arc<Client>, request: &mut Request) -> Reply;
    /// The states of the data sets of this server. Those that are opened again are missing.
    fn members(&self) -> Vec<Arc<State>>;
    /// Describes all data sets for `serverStatus`, with the states of those that are open.
    fn describe(&self) -> Vec<(DocumentBuf, Option<Arc<State>>)>;
}

/// A data set, and which databases it has.
#[derive(Clone)]
pub(crate) struct PlacedSet {
    pub id: DataSetId,
    pub placement: Arc<Placement>,
}

impl PlacedSet {
    /// The name of the set.
    pub fn name(&self) -> &str {
        self.placement.name(self.id)
    }

    /// Fails if a database is in another data set.
    pub fn check(&self, database: &str) -> Result<(), CommandError> {
        let set = self.placement.set_of(database);
        if set == self.id {
            return Ok(());
        }
        let (own, other) = (self.name(), self.placement.name(set));
        let message = format!(
            "the database {database} is in the data set {other}, and the command runs in the data \
             set {own}"
        );
        Err(CommandError::new(ErrorCode::IllegalOperation, message))
    }
}

/// The id of log lines about suspensions. MongoDB has no such event.
const SUSPENSION_ID: i32 = 9_000_036;

impl State {
    pub(crate) fn new(config: Config, services: Services, port: u16) -> State {
        let slow = SlowThreshold {
            millis: i64::try_from(config.slow_ms).unwrap_or(i64::MAX),
            sample_rate: config.slow_sample_rate,
        };
        let profiling_level = config.profiling_level;
        let operation_slots = OperationSlots::new(config.operations_max);
        let host = format!("{}:{port}", crate::machine::hostname());
        let statistics = StatisticsSources {
            engine: services.engine.clone(),
            planner_settings: Arc::default(),
            usage: Arc::default(),
            host: host.clone(),
        };
        State {
            host,
            planner_settings: statistics.planner_settings.clone(),
            usage: statistics.usage.clone(),
            statistics: Arc::new(statistics),
            replica_set: ReplicaSet::from_config(
                &config,
                port,
                services.engine.shared_state().as_ref(),
            ),
            router: None,
            data_set: None,
            cursors: Cursors::new(config.cursors_max),
            connections: Arc::default(),
            busy_connections: BusyConnections::new(),
            directory: Arc::new(Directory::new(
                config.access_control,
                own_users(&config, &services),
            )),
            fake_users: Arc::default(),
            config,
            tls: None,
            audit: None,
            parameters: Arc::new(Parameters::new(&services.engine)),
            cluster_parameters: Arc::new(load_cluster_parameters(&services)),
            fail_points: Arc::default(),
            profiling: Arc::new(Profiling::new(slow, profiling_level)),
            services,
            operations: Arc::default(),
            operation_slots: Arc::new(operation_slots),
            sessions: Sessions::default(),
            session_transactions: SessionTransactions::default(),
            metrics: Arc::default(),
            buffers: Buffers::default(),
            stop: Arc::default(),
            suspension: Suspension::default(),
            started: Instant::now(),
            process_id: ObjectIdSource::new(random::bits()).next_now(),
            object_ids: ObjectIdSource::new(random::bits()),
            replies: AtomicI32::new(1),
            refusals: AtomicUsize::new(0),
        }
    }

    /// The state of a data set. What belongs to the clients, and what is about the whole server, it
    /// has in common with the state that they connect to.
    pub(crate) fn new_data_set(front: &State, data_set: PlacedSet, engine: Arc<Engine>) -> State {
        let services = Services {
            engine,
            log: front.services.log.clone(),
            folder: front.services.folder.clone(),
            traces: front.services.traces.clone(),
            // That of the first data set may not be open yet.
            users: UsersEngine::Own,
        };
        let config = Config {
            replica_set: Some(data_set.name().to_owned()),
            local_password: None,
            peer_key: None,
            ..front.config.clone()
        };
        let own = State::new(config, services, 0);
        State {
            services: Services {
                users: front.services.users.clone(),
                ..own.services
            },
            data_set: Some(data_set),
            audit: front.audit.clone(),
            parameters: front.parameters.clone(),
            directory: front.directory.clone(),
            fake_users: front.fake_users.clone(),
            cluster_parameters: front.cluster_parameters.clone(),
            fail_points: front.fail_points.clone(),
            operations: front.operations.clone(),
            operation_slots: front.operation_slots.clone(),
            connections: front.connections.clone(),
            metrics: front.metrics.clone(),
            profiling: front.profiling.clone(),
            ..own
        }
    }

    /// The engine with the users.
    ///
    /// # Errors
    /// Fails if it is not open for long.
    pub(crate) fn users_engine(&self) -> Result<Arc<Engine>, CommandError> {
        match &self.services.users {
            UsersEngine::Own => Ok(self.services.engine.clone()),
            UsersEngine::First(first) => first.get(),
        }
    }

    /// Returns `true` if clients have to log in.
    pub(crate) fn requires_login(&self) -> bool {
        match self.users_engine() {
            Ok(engine) => self.directory.is_required(&engine),
            Err(_) => true,
        }
    }

    /// Fails if a database is in another data set than that of this state.
    pub(crate) fn check_placement(&self, database: &str) -> Result<(), CommandError> {
        let data_set = self.data_set.as_ref();
        data_set.map_or(Ok(()), |data_set| data_set.check(database))
    }

    /// The number of running operations.
    pub fn operation_count(&self) -> usize {
        self.operations.all().len()
    }

    /// The number of open connections.
    pub fn connection_count(&self) -> usize {
        self.connections.count()
    }

    /// The version of the topology, by which clients detect changes.
    pub(crate) fn topology_version(&self) -> DocumentBuf {
        doc! { "processId": (self.process_id), "counter": (self.topology_counter()) }
    }

    /// The number of changes of the topology: a server that follows another one can become the
    /// primary, a primary can be suspended, other servers come and go, and every server stops.
    pub(crate) fn topology_counter(&self) -> i64 {
        let engine = &self.services.engine;
        let is_shared_primary = engine.is_shared() && !engine.is_following();
        let role = i64::from(is_shared_primary) + i64::from(self.stop.is_requested());
        role + self.suspension.changes() + engine.member_changes() as i64
    }

    /// Returns `true` if this server accepts writes.
    pub(crate) fn is_writable(&self) -> bool {
        !self.services.engine.is_following() && !self.suspension.is_suspended()
    }

    /// Returns what this server does in the object store. A suspended primary is a secondary for
    /// its clients, and does not know the primary.
    pub(crate) fn shared_state(&self) -> Option<SharedState> {
        let mut shared = self.services.engine.shared_state()?;
        if self.suspension.is_suspended() {
            shared.is_following = true;
            shared.primary.clear();
        }
        Some(shared)
    }

    /// Suspends the primary of a database in an object store while it cannot extend the log, or
    /// ends the suspension.
    pub fn set_suspended(&self, is_suspended: bool) {
        if !self.suspension.set(is_suspended) {
            return;
        }
        let message = if is_suspended {
            "The log cannot be extended; writes are refused until it can"
        } else {
            "The log was extended again; writes are accepted"
        };
        let attr = DocumentBuf::new();
        (self.services.log).warn("REPL", SUSPENSION_ID, "store", message, attr);
    }

    /// Fails if the audit log cannot be written. The server is stopping then.
    pub(crate) fn check_audit(&self) -> Result<(), CommandError> {
        match &self.audit {
            Some(audit) if audit.has_failed() => {
                let message = "The audit log cannot be written: the server stops";
                Err(CommandError::new(ErrorCode::ShutdownInProgress, message))
            }
            _ => Ok(()),
        }
    }

    /// Changes a parameter and passes it to its users. Returns its old value.
    pub(crate) fn set_parameter(
        &self,
        name: &str,
        value: ValueRef<'_>,
        at: SetAt,
    ) -> Result<Value, CommandError> {
        let before = self.parameters.set(name, value, at)?;
        self.apply_parameter(name);
        let members = self.router.as_ref().map(|router| router.members());
        let members = members.unwrap_or_default();
        members
            .iter()
            .for_each(|member| member.apply_parameter(name));
        Ok(before)
    }

    /// Passes a parameter to the engine and the planner, if they use it.
    fn apply_parameter(&self, name: &str) {
        self.parameters.apply(&self.services.engine, name);
        if name == parameters::NO_TABLE_SCAN {
            let forbid = self.parameters.flag(name);
            self.planner_settings
                .restrictions
                .forbid_table_scans(forbid);
        }
    }

    /// Passes the parameters that were set to the engine and the planner.
    pub(crate) fn apply_parameters(&self) {
        let names = self.parameters.names_set();
        names
            .into_iter()
            .for_each(|name| self.apply_parameter(name));
    }
}

impl State {
    /// Reads the files of TLS again. Fails if the server has no TLS, or if a file cannot be used;
    /// new connections then use what was read before. Both are logged. `context` is the thread.
    pub(crate) fn rotate_certificates(&self, context: &str) -> Result<(), TlsError> {
        let Some(tls) = &self.tls else {
            return Ok(());
        };
        let (rotated, log) = (tls.rotate(), &self.services.log);
        match &rotated {
            Ok(()) => {
                let certificate = tls.loaded().certificate;
                let attr = doc! {
                    "subject": (certificate.subject), "notAfter": (clock::date(certificate.not_after)),
                };
                let message = "Successfully rotated X509 certificates";
                log.info("NETWORK", 4_913_400, context, message, attr);
            }
            Err(error) => {
                let attr = doc! { "error": (error.to_string()) };
                let message = "Certificates are not rotated: the previous ones stay in use";
                log.write(
                    Severity::Error,
                    "NETWORK",
                    CERTIFICATE_ERROR,
                    context,
                    message,
                    attr,
                );
            }
        }
        rotated
    }
}

/// Settings that can change while the server runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeSettings {
    /// Server parameters.
    pub parameters: Vec<(String, Value)>,
    /// Commands that take longer are logged. In milliseconds.
    pub slow_ms: u64,
    /// The fraction of slow commands that are logged, from 0 to 1.
    pub slow_sample_rate: f64,
}

impl State {
    /// Changes settings to those that differ from `before`. Settings that a client has changed
    /// meanwhile stay, unless they differ. Returns what could not be set, as sentences.
    pub fn apply_settings(
        &self,
        before: &RuntimeSettings,
        settings: &RuntimeSettings,
    ) -> Vec<String> {
        let slow = (settings.slow_ms, settings.slow_sample_rate);
        if slow != (before.slow_ms, before.slow_sample_rate) {
            self.profiling.set_slow(SlowThreshold {
                millis: i64::try_from(settings.slow_ms).unwrap_or(i64::MAX),
                sample_rate: settings.slow_sample_rate,
            });
        }
        let changed = settings.parameters.iter();
        let changed = changed.filter(|parameter| !before.parameters.contains(parameter));
        let failures = changed.filter_map(|(name, value)| {
            let set = self.set_parameter(name, value.as_ref(), SetAt::Runtime);
            set.err().map(|error| error.message)
        });
        failures.collect()
    }
}

impl State {
    /// Logs a warning if the certificate of the server is no longer valid soon.
    pub(crate) fn warn_before_expiry(&self) {
        let Some(certificate) = self.tls.as_ref().map(|tls| tls.loaded().certificate) else {
            return;
        };
        let left = certificate.not_after.duration_since(SystemTime::now());
        let left = left.unwrap_or_default();
        if left >= CERTIFICATE_WARNING_TIME {
            return;
        }
        let attr = doc! {
            "subject": (certificate.subject), "notAfter": (clock::date(certificate.not_after)),
            "daysLeft": ((left.as_secs() / (24 * 3600)) as i64),
        };
        let message = "The certificate of the server has to be replaced soon";
        let log = &self.services.log;
        log.warn("NETWORK", EXPIRY, "housekeeping", message, attr);
    }
}

/// The id of the log line about a certificate that is no longer valid soon. MongoDB has no such
/// event.
const EXPIRY: i32 = 9_000_013;

/// The id of the log line about certificates that cannot be used. MongoDB has no such event.
const CERTIFICATE_ERROR: i32 = 9_000_008;

/// The users that are not stored: that of Windrow's own commands, and that of the other servers.
/// Without random numbers there are none, and they cannot log in.
fn own_users(config: &Config, services: &Services) -> Vec<User> {
    let local = config.local_password.as_deref().map(local_user);
    let peer = config.peer_key.as_deref().map(peer_user);
    let report = |error: &CommandError| {
        let attr = doc! { "error": (error.message.as_str()) };
        let message = "Other commands of this machine, and other servers, cannot log in";
        let log = &services.log;
        log.write(
            Severity::Error,
            "ACCESS",
            NO_LOCAL_USER,
            "main",
            message,
            attr,
        );
    };
    let created = local.into_iter().chain(peer);
    created
        .filter_map(|user| user.inspect_err(report).ok())
        .collect()
}

/// The id of the log line about a user that cannot be created. MongoDB has no such event.
const NO_LOCAL_USER: i32 = 9_000_017;

/// Loads the cluster parameters. If the stored values cannot be read, the server starts with the
/// defaults, so that an administrator can set them again.
fn load_cluster_parameters(services: &Services) -> ClusterParameters {
    let loaded = match &services.users {
        UsersEngine::Own => ClusterParameters::load(&services.engine),
        UsersEngine::First(first) => {
            let engine = first.get();
            engine.and_then(|engine| ClusterParameters::load(&engine))
        }
    };
    loaded.unwrap_or_else(|error| {
        let attr = doc! { "error": (error.to_string()) };
        let message = "The cluster parameters cannot be read: the defaults are used";
        let log = &services.log;
        log.write(
            Severity::Error,
            "CONTROL",
            UNREADABLE_PARAMETERS,
            "initandlisten",
            message,
            attr,
        );
        ClusterParameters::default()
    })
}

/// The id of the log line about cluster parameters that cannot be read. MongoDB has no such event.
const UNREADABLE_PARAMETERS: i32 = 9_000_005;
