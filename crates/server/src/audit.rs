//! The audit log: logins, refused commands, and changes of users, roles, collections and indexes.
//! The events and their fields are MongoDB's
//! (<https://www.mongodb.com/docs/manual/reference/audit-message/mongo/>), one JSON document a
//! line.
//!
//! [`Audit`] is the log. [`AuditTrail`] writes the events of one client or of the server itself. A
//! command writes its event before it replies. If an event cannot be written, the server stops.

mod creation;
mod event;
mod filter_text;
mod index_trail;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use windrow_document::{DocumentBuf, doc};
use windrow_mql::filter::Filter;

use crate::log::{Delivery, Log, LogRotation, Severity, Sink, SyslogFacility};
use crate::random;
use crate::stop::Stop;
use crate::sync::lock;
pub(crate) use creation::{Creation, view_param};
pub(crate) use event::{AuditOrigin, address};
use event::{event_document, line};
pub(crate) use index_trail::IndexTrail;

/// The settings of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditSettings {
    /// The destination of the events.
    pub target: AuditTarget,
    /// The events that are written. `None` for all.
    pub filter: Option<AuditFilter>,
}

/// The destination of the events of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// The standard output of the process.
    Console,
    /// A file that only its owner can read.
    File {
        /// Its path. Events are appended to an existing file.
        path: PathBuf,
        /// The effect of a rotation.
        rotation: LogRotation,
    },
    /// The system's log.
    Syslog {
        /// The part of the system, by which the system's log sorts lines.
        facility: SyslogFacility,
    },
}

/// A filter on events, in the query language.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditFilter(DocumentBuf);

impl AuditFilter {
    /// Parses a filter as mongod's option has it: JSON, in which names need no quotes. Fails with a
    /// sentence if the text is not such a document, or if the document is not a filter.
    pub fn parse(text: &str) -> Result<AuditFilter, String> {
        let document = filter_text::parse(text)?;
        Filter::parse(document.as_document()).map_err(|error| error.message)?;
        Ok(AuditFilter(document))
    }
}

/// The audit log of a server.
pub struct Audit {
    filter: Option<Filter>,
    sink: Mutex<Sink>,
    failed: AtomicBool,
    shutdown_recorded: AtomicBool,
    /// Identifies the server itself in its events.
    own_uuid: [u8; 16],
    log: Arc<Log>,
    stop: Arc<Stop>,
}

impl Audit {
    /// Opens the target. A failed write is logged, and stops the server.
    pub fn open(settings: &AuditSettings, log: Arc<Log>, stop: Arc<Stop>) -> io::Result<Audit> {
        let failed = |what: &str, error: io::Error| io::Error::other(format!("{what}: {error}"));
        let sink = match &settings.target {
            AuditTarget::Console => Ok(Sink::Stdout),
            AuditTarget::File { path, rotation } => {
                let what = format!("the audit log {}", path.display());
                Sink::file(path, *rotation).map_err(|error| failed(&what, error))
            }
            AuditTarget::Syslog { facility } => Sink::syslog(*facility, Delivery::Required)
                .map_err(|error| failed("the audit log in the log of the system", error)),
        };
        let filter = settings.filter.as_ref();
        let filter = filter.map(|filter| Filter::parse(filter.0.as_document()));
        let invalid =
            |error: windrow_mql::Error| io::Error::new(io::ErrorKind::InvalidInput, error.message);
        Ok(Audit {
            filter: filter.transpose().map_err(invalid)?,
            sink: Mutex::new(sink?),
            failed: AtomicBool::new(false),
            shutdown_recorded: AtomicBool::new(false),
            own_uuid: random::uuid(),
            log,
            stop,
        })
    }

    /// Returns `true` if an event could not be written. The server is stopping then.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Returns `true` in the first call: the stop of the server is recorded once.
    pub fn begin_shutdown(&self) -> bool {
        !self.shutdown_recorded.swap(true, Relaxed)
    }

    /// Continues in a new file. Returns the new path of the renamed file.
    pub fn rotate(&self) -> io::Result<Option<PathBuf>> {
        lock(&self.sink).rotate()
    }

    fn write(&self, event: &DocumentBuf) {
        // An event on which the filter fails is written: it must not be missed.
        let matches = |filter: &Filter| filter.matches(event.as_document()).unwrap_or(true);
        if !self.filter.as_ref().is_none_or(matches) {
            return;
        }
        let line = line(event.as_document());
        let written = lock(&self.sink).write(Severity::Info, &line);
        if let Err(error) = written {
            self.fail(&error);
        }
    }

    /// Stops the server: what happens must not go unrecorded.
    fn fail(&self, error: &io::Error) {
        self.stop.request();
        if self.failed.swap(true, Relaxed) {
            return;
        }
        let attr = doc! { "error": (error.to_string()) };
        let message = "The audit log cannot be written: the server stops";
        let severity = Severity::Fatal;
        self.log
            .write(severity, "ACCESS", FAILED, "audit", message, attr);
    }
}

/// The id of the log line about an audit log that cannot be written. MongoDB has no such event.
const FAILED: i32 = 9_000_017;

/// The audit log for the events of one client, or of the server itself.
#[derive(Clone)]
pub struct AuditTrail {
    audit: Arc<Audit>,
    origin: Arc<AuditOrigin>,
}

impl AuditTrail {
    pub fn new(audit: &Arc<Audit>, origin: AuditOrigin) -> AuditTrail {
        AuditTrail {
            audit: Arc::clone(audit),
            origin: Arc::new(origin),
        }
    }

    /// Returns the trail of the server itself.
    pub fn server(audit: &Arc<Audit>) -> AuditTrail {
        AuditTrail::new(audit, AuditOrigin::server(audit.own_uuid))
    }

    /// Records that something was done.
    pub fn record(&self, kind: &str, param: DocumentBuf) {
        self.record_result(kind, param, 0);
    }

    /// Records an event with its result, which is an error code or 0.
    pub fn record_result(&self, kind: &str, param: DocumentBuf, result: i32) {
        let event = event_document(&self.origin, kind, param, result);
        self.audit.write(&event);
    }
}
