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
use windrow_wire::{CommandError, ErrorCode};

use crate::access::Directory;
use crate::access::fake_users::FakeUsers;
use crate::access::local_user::local_user;
use crate::adaptive_wait::BusyConnections;
use crate::audit::Audit;
use crate::buffers::Buffers;
use crate::client::Connections;
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

/// The services that the program passes to the server.
pub struct Services {
    /// The data folder.
    pub engine: Arc<Engine>,
    /// The log of the server.
    pub log: Arc<Log>,
    /// The path of the data folder, if it is on a disk.
    pub folder: Option<PathBuf>,
    /// Additional sections of `serverStatus`, computed in each call.
    pub status: Vec<StatusSection>,
    /// The traces of commands. `None` if they are not traced.
    pub traces: Option<Arc<Traces>>,
}

impl Services {
    /// Services with an engine in memory, for tests and examples.
    pub fn in_memory(log: Arc<Log>) -> Result<Services, windrow_collection::Error> {
        let options = EngineOptions::with_memory(256 << 20);
        Ok(Services {
            engine: Engine::open(Arc::new(MemoryDisk::default()), options)?,
            log,
            folder: None,
            status: Vec::new(),
            traces: None,
        })
    }
}

/// A section of `serverStatus`: its name, and a function that returns its current content.
pub type StatusSection = (&'static str, Box<dyn Fn() -> DocumentBuf + Send + Sync>);

/// The state of a running server.
pub struct State {
    pub(crate) config: Config,
    pub(crate) services: Services,
    /// TLS. The server sets it before it listens.
    pub(crate) tls: Option<Tls>,
    /// The audit log, if there is one. The server sets it before it listens.
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) parameters: Parameters,
    /// The users.
    pub(crate) directory: Directory,
    pub(crate) fake_users: FakeUsers,
    pub(crate) cluster_parameters: ClusterParameters,
    pub(crate) fail_points: FailPoints,
    /// The settings of the planner.
    pub(crate) planner_settings: Arc<PlannerSettings>,
    pub(crate) profiling: Profiling,
    pub(crate) operations: Operations,
    pub(crate) operation_slots: OperationSlots,
    pub(crate) sessions: Sessions,
    pub(crate) session_transactions: SessionTransactions,
    pub(crate) cursors: Cursors,
    pub(crate) connections: Connections,
    pub(crate) busy_connections: BusyConnections,
    pub(crate) metrics: Metrics,
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
    /// Generated at each start, so that drivers detect a restart.
    pub(crate) process_id: ObjectId,
    /// Generates the `_id`s of documents without one.
    pub(crate) object_ids: ObjectIdSource,
    /// The id of the last message that the server has sent.
    pub(crate) replies: AtomicI32,
    /// The number of clients that are being refused because there are too many connections.
    pub(crate) refusals: AtomicUsize,
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
            cursors: Cursors::new(config.cursors_max),
            connections: Connections::default(),
            busy_connections: BusyConnections::new(),
            directory: Directory::new(config.access_control, own_user(&config, &services)),
            fake_users: FakeUsers::default(),
            config,
            tls: None,
            audit: None,
            parameters: Parameters::new(&services.engine),
            cluster_parameters: load_cluster_parameters(&services),
            fail_points: FailPoints::default(),
            profiling: Profiling::new(slow, profiling_level),
            services,
            operations: Operations::default(),
            operation_slots,
            sessions: Sessions::default(),
            session_transactions: SessionTransactions::default(),
            metrics: Metrics::default(),
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
    /// primary, a primary can be suspended, and every server stops.
    pub(crate) fn topology_counter(&self) -> i64 {
        let engine = &self.services.engine;
        let is_shared_primary = engine.is_shared() && !engine.is_following();
        let role = i64::from(is_shared_primary) + i64::from(self.stop.is_requested());
        role + self.suspension.changes()
    }

    /// Returns `true` if this server accepts writes.
    pub(crate) fn is_writable(&self) -> bool {
        !self.services.engine.is_following() && !self.suspension.is_suspended()
    }

    /// Returns what this server does in the object store. A suspended primary is a secondary for its
    /// clients, and does not know the primary.
    pub(crate) fn shared_state(&self) -> Option<SharedState> {
        let mut shared = self.services.engine.shared_state()?;
        if self.suspension.is_suspended() {
            shared.is_following = true;
            shared.primary.clear();
        }
        Some(shared)
    }

    /// Suspends the primary of a database in an object store while it cannot extend the log, or ends
    /// the suspension.
    pub fn set_suspended(&self, is_suspended: bool) {
        if !self.suspension.set(is_suspended) {
            return;
        }
        let message = match is_suspended {
            true => "The log cannot be extended; writes are refused until it can",
            false => "The log was extended again; writes are accepted",
        };
        let attr = DocumentBuf::new();
        (self.services.log).write(
            Severity::Warning,
            "REPL",
            SUSPENSION_ID,
            "store",
            message,
            attr,
        );
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
        let engine = &self.services.engine;
        let before = self.parameters.set(engine, name, value, at)?;
        if name == parameters::NO_TABLE_SCAN {
            let forbid = self.parameters.flag(name);
            self.planner_settings
                .restrictions
                .forbid_table_scans(forbid);
        }
        Ok(before)
    }
}

impl State {
    /// Reads the files of TLS again. Fails if the server has no TLS, or if a file cannot be used; new
    /// connections then use what was read before. Both are logged. `context` is the thread.
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
        log.write(
            Severity::Warning,
            "NETWORK",
            EXPIRY,
            "housekeeping",
            message,
            attr,
        );
    }
}

/// The id of the log line about a certificate that is no longer valid soon. MongoDB has no such
/// event.
const EXPIRY: i32 = 9_000_013;

/// The id of the log line about certificates that cannot be used. MongoDB has no such event.
const CERTIFICATE_ERROR: i32 = 9_000_008;

/// The user of Windrow's own commands. Without random numbers there is none, and the commands
/// cannot log in.
fn own_user(config: &Config, services: &Services) -> Option<User> {
    let created = local_user(config.local_password.as_deref()?);
    let report = |error: &CommandError| {
        let attr = doc! { "error": (error.message.as_str()) };
        let message = "Other commands of this machine cannot log in";
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
    created.inspect_err(report).ok()
}

/// The id of the log line about a user that cannot be created. MongoDB has no such event.
const NO_LOCAL_USER: i32 = 9_000_017;

/// Loads the cluster parameters. If the stored values cannot be read, the server starts with the
/// defaults, so that an administrator can set them again.
fn load_cluster_parameters(services: &Services) -> ClusterParameters {
    ClusterParameters::load(&services.engine).unwrap_or_else(|error| {
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
