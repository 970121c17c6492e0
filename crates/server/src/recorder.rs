//! Records operations that have ended: a log line if it was slow, and a document in
//! `system.profile` if profiling is on.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use windrow_access::UserName;
use windrow_collection::{Collection, Error, InsertOrder, Namespace};
use windrow_document::json::display_prefix;
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, Reply};

use crate::client::Client;
use crate::clock;
use crate::insert_preparation::with_id_in_front;
use crate::metrics::Kind;
use crate::operations::Operation;
use crate::shown_command::{USERS, without_credentials};
use crate::state::State;
use crate::verbosity::Component;

/// The collection that stores the operations of a database.
pub const PROFILE: &str = "system.profile";

/// The size of that collection if the server creates it, as in MongoDB.
const PROFILE_BYTES: i64 = 1 << 20;

/// Maximum bytes of a command that is recorded completely, as in MongoDB.
const COMMAND_BYTES_MAX: usize = 50 << 10;

/// An operation that has ended.
pub struct EndedCommand<'a> {
    pub client: &'a Client,
    pub operation: &'a Operation,
    pub took: Duration,
    pub outcome: &'a Result<Reply, CommandError>,
}

/// A statement of an update or a deletion, which is recorded separately.
pub struct EndedStatement<'a> {
    pub client: &'a Client,
    /// The command of the statement.
    pub operation: &'a Operation,
    pub took: Duration,
    /// "update" or "remove", the statement as sent, and its results.
    pub details: DocumentBuf,
}

/// Logs and stores a command if the settings require it. The statements of updates and deletions
/// are stored instead of their command, unless the command fails.
pub fn record(state: &State, ended: &EndedCommand<'_>) {
    let operation = ended.operation;
    if operation.is_requested_wait() {
        return;
    }
    let of_statements = matches!(operation.kind, Kind::Update | Kind::Delete);
    let component = match operation.kind {
        Kind::Insert => Component::WRITE,
        _ => Component::COMMAND,
    };
    let described = RecordedOperation {
        client: ended.client,
        user: operation.user.as_ref(),
        namespace: operation.namespace(),
        component,
        kept: !of_statements || ended.outcome.is_err(),
        millis: ended.took.as_millis() as i64,
        outcome: Some(ended.outcome),
        attributes: &|| {
            // Of two fields with the same name the first one is used.
            let mut attributes = DocumentBuf::new();
            if of_statements && ended.outcome.is_ok() {
                attributes.push("type", Kind::Command.operation());
            }
            for (name, value) in operation.slow_attributes().iter() {
                attributes.push(name, value);
            }
            attributes
        },
    };
    log_and_profile(state, &described);
}

/// Logs and stores a statement if the settings require it.
pub fn record_statement(state: &State, statement: &EndedStatement<'_>) {
    let described = RecordedOperation {
        client: statement.client,
        user: statement.operation.user.as_ref(),
        namespace: statement.operation.namespace(),
        component: Component::WRITE,
        kept: true,
        millis: statement.took.as_millis() as i64,
        outcome: None,
        attributes: &|| {
            let mut attributes = with_comment(&statement.details, statement.operation);
            attributes.push("ns", statement.operation.namespace());
            if let Some(summary) = statement.operation.plan_summary() {
                attributes.push("planSummary", summary);
            }
            for (name, value) in statement.operation.hashes().iter() {
                attributes.push(name, value);
            }
            attributes
        },
    };
    log_and_profile(state, &described);
}

/// Returns the details of a statement with the comment of its command.
fn with_comment(details: &DocumentBuf, operation: &Operation) -> DocumentBuf {
    let Some(comment) = operation.comment() else {
        return details.clone();
    };
    let mut commented = DocumentBuf::new();
    for (name, value) in details.iter() {
        match value {
            ValueRef::Document(command) if name == "command" => {
                let mut command = command.to_buf();
                command.push("comment", comment);
                commented.push(name, command);
            }
            value => commented.push(name, value),
        }
    }
    commented
}

/// Returns the minimum duration of recorded operations. It is zero if the settings of a database or
/// the log require it.
pub fn record_threshold(state: &State) -> Duration {
    if is_unrecorded(state, Duration::ZERO) {
        Duration::from_millis(state.profiling.slow().millis.max(0).unsigned_abs())
    } else {
        Duration::ZERO
    }
}

/// Returns `true` if an operation with this duration is not recorded, so that no description is
/// needed.
pub fn is_unrecorded(state: &State, took: Duration) -> bool {
    let verbosity = &state.parameters.verbosity;
    let logged = [Component::COMMAND, Component::WRITE].map(|it| verbosity.logs(it, 1));
    state.profiling.is_ignored(took.as_millis() as i64) && !logged.contains(&true)
}

/// The description of an operation.
struct RecordedOperation<'a> {
    client: &'a Client,
    /// The user of the client.
    user: Option<&'a UserName>,
    namespace: String,
    component: Component,
    /// `true` if the profile may store it.
    kept: bool,
    millis: i64,
    /// `None` for a statement of a command.
    outcome: Option<&'a Result<Reply, CommandError>>,
    attributes: &'a dyn Fn() -> DocumentBuf,
}

fn log_and_profile(state: &State, described: &RecordedOperation<'_>) {
    let millis = described.millis;
    let is_logged = state.parameters.verbosity.logs(described.component, 1);
    if state.profiling.is_ignored(millis) && !is_logged {
        return;
    }
    let namespace = &described.namespace;
    let (database, collection) = namespace.split_once('.').unwrap_or((namespace, ""));
    let verdict = state
        .profiling
        .judge(database, millis, || described.profile());
    if verdict.log || is_logged {
        described.log(state);
    }
    // Operations without a collection are not stored. This includes the command that turns
    // profiling on.
    let is_of_one = !collection.is_empty() && !collection.starts_with("$cmd");
    if verdict.keep && described.kept && is_of_one {
        store(state, database, described.profile());
    }
}

/// The fields of a log line and of a document in `system.profile`, in MongoDB's order.
const LOGGED: &[&str] = &[
    "type",
    "ns",
    "appName",
    "command",
    "originatingCommand",
    "planSummary",
    "cursorid",
    "keysExamined",
    "docsExamined",
    "hasSortStage",
    "cursorExhausted",
    "nMatched",
    "nModified",
    "ninserted",
    "ndeleted",
    "upsert",
    "keysInserted",
    "keysDeleted",
    "numYields",
    "planCacheShapeHash",
    "queryHash",
    "planCacheKey",
    "queryFramework",
    "nreturned",
    "ok",
    "errMsg",
    "errName",
    "errCode",
    "reslen",
    "locks",
    "storage",
    "remote",
    "protocol",
    "workingMillis",
    "durationMillis",
];
const PROFILED: &[(&str, &str)] = &[
    ("op", "type"),
    ("ns", "ns"),
    ("command", "command"),
    ("originatingCommand", "originatingCommand"),
    ("cursorid", "cursorid"),
    ("keysExamined", "keysExamined"),
    ("docsExamined", "docsExamined"),
    ("hasSortStage", "hasSortStage"),
    ("cursorExhausted", "cursorExhausted"),
    ("nMatched", "nMatched"),
    ("nModified", "nModified"),
    ("ninserted", "ninserted"),
    ("ndeleted", "ndeleted"),
    ("upsert", "upsert"),
    ("keysInserted", "keysInserted"),
    ("keysDeleted", "keysDeleted"),
    ("numYield", "numYields"),
    ("nreturned", "nreturned"),
    ("planCacheShapeHash", "planCacheShapeHash"),
    ("queryHash", "queryHash"),
    ("planCacheKey", "planCacheKey"),
    ("queryFramework", "queryFramework"),
    ("locks", "locks"),
    ("flowControl", "locks"),
    ("ok", "ok"),
    ("errMsg", "errMsg"),
    ("errName", "errName"),
    ("errCode", "errCode"),
    ("responseLength", "reslen"),
    ("protocol", "protocol"),
    ("millis", "durationMillis"),
    ("workingMillis", "workingMillis"),
    ("planSummary", "planSummary"),
    ("execStats", "execStats"),
];

impl RecordedOperation<'_> {
    /// Returns all fields, named as in the log.
    fn all(&self) -> DocumentBuf {
        let mut all = (self.attributes)();
        if let Some(name) = self.client.application() {
            all.push("appName", name);
        }
        all.push("numYields", 0);
        all.push("locks", DocumentBuf::new());
        all.push("storage", DocumentBuf::new());
        match self.outcome {
            Some(Ok(reply)) => all.push("reslen", reply.bytes() as i32),
            Some(Err(error)) => {
                all.push("ok", 0.0);
                all.push("errMsg", &error.message);
                all.push("errName", error.code.name().as_ref());
                all.push("errCode", error.code.number());
            }
            None => {}
        }
        if self.outcome.is_some() {
            all.push("protocol", "op_msg");
        }
        all.push("remote", self.client.address.to_string());
        // Only requested waits exist, and they do not count.
        all.push("workingMillis", self.millis);
        all.push("durationMillis", self.millis);
        // A plan has the filter of the command.
        if self.namespace.ends_with(USERS) {
            return without_credentials(all.as_document());
        }
        all
    }

    fn log(&self, state: &State) {
        let all = self.all();
        let mut attr = DocumentBuf::new();
        for name in LOGGED {
            match all.get(name) {
                // In the log, unlike in the profile, these are commands.
                Some(ValueRef::String("query" | "getmore")) if *name == "type" => {
                    attr.push(name, Kind::Command.operation());
                }
                Some(value) => append(&mut attr, name, value),
                None => {}
            }
        }
        let (log, client) = (&state.services.log, self.client.name());
        let component = match self.component {
            Component::WRITE => "WRITE",
            _ => "COMMAND",
        };
        log.info(component, 51_803, &client, "Slow query", attr);
    }

    /// Returns the document in `system.profile`.
    fn profile(&self) -> DocumentBuf {
        let all = self.all();
        let mut profile = DocumentBuf::new();
        for (name, known_as) in PROFILED {
            match all.get(known_as) {
                Some(_) if matches!(*name, "millis" | "workingMillis") => {
                    profile.push(name, self.millis as i32);
                }
                Some(value) => append(&mut profile, name, value),
                None => {}
            }
        }
        profile.push("ts", clock::date(SystemTime::now()));
        profile.push("client", self.client.address.ip().to_string());
        if let Some(application) = all.get("appName") {
            profile.push("appName", application);
        }
        let user = self.user.map(UserName::to_document);
        profile.push("allUsers", Vec::from_iter(user));
        let name = self.user.map_or(String::new(), ToString::to_string);
        profile.push("user", name);
        profile
    }
}

/// Adds a field. For a command or statement above the maximum size, adds only this information and
/// its comment. Otherwise it would push most other operations out of the profile.
fn append(record: &mut DocumentBuf, name: &str, value: ValueRef<'_>) {
    let ValueRef::Document(command) = value else {
        return record.push(name, value);
    };
    let bytes = command.as_bytes().len();
    if bytes <= COMMAND_BYTES_MAX {
        return record.push(name, value);
    }
    let mut shortened = doc! { "$truncated": (display_prefix(&command, COMMAND_BYTES_MAX)) };
    if let Some(comment) = command.get("comment") {
        shortened.push("comment", comment);
    }
    record.push(name, shortened);
}

/// Stores an operation in the profile. The operation has already ended, so a failure is only
/// logged.
fn store(state: &State, database: &str, profile: DocumentBuf) {
    let profile = with_id_in_front(profile.as_document(), &state.object_ids, false);
    if let Err(error) = insert(state, database, profile) {
        let attr = doc! { "db": database, "error": (error.to_string()) };
        let message = "An operation cannot be stored in the profile";
        let log = &state.services.log;
        log.warn("COMMAND", NOT_PROFILED, "profile", message, attr);
    }
}

/// MongoDB's id of the log line about an operation that the profile cannot store.
const NOT_PROFILED: i32 = 20_703;

fn insert(state: &State, database: &str, profile: DocumentBuf) -> Result<(), Error> {
    let collection = collection(state, database)?;
    let inserted = collection.insert(Bytes::from(profile.into_bytes()), InsertOrder::Unordered)?;
    inserted.check_all_inserted()
}

/// Returns the collection of a database's profile. Creates it if it does not exist.
pub fn collection(state: &State, database: &str) -> Result<Arc<Collection>, Error> {
    let engine = &state.services.engine;
    let namespace = Namespace {
        database: database.to_owned(),
        collection: PROFILE.to_owned(),
    };
    let options = doc! { "capped": true, "size": PROFILE_BYTES };
    match engine.collection(&namespace) {
        Some(collection) => Ok(collection),
        None => engine.create(&namespace, options.as_document()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::log::Log;
    use crate::state::Services;

    /// An operation that could not be stored in the profile had been lost without a log line.
    #[test]
    fn a_failure_to_store_an_operation_is_logged() {
        let log = Arc::new(Log::to_nowhere());
        let services = Services::in_memory(Arc::clone(&log)).unwrap();
        let state = State::new(Config::default(), services, 27017);
        store(&state, "d", doc! { "op": "query" });
        assert_eq!(log.recent().1, 0);
        store(&state, "D", doc! { "op": "query" });
        let (lines, _) = log.recent();
        let is_warning = |line: &String| line.contains("20703") && line.contains("different case");
        assert!(lines.iter().any(is_warning), "{lines:?}");
    }
}
