//! The data set of a request, and which of its servers can run it.

use windrow_access::Resource;
use windrow_document::{Array, Document, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Request};

use super::Call;
use super::transactions::TransactionSets;
use crate::access::{AccessRequest, Requirement};
use crate::command::{Command, Join, Routing};
use crate::latency::LatencyClass;
use crate::placement::{DataSetId, Placement};
use crate::sessions::SessionId;

/// The servers that run a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// On the server that got it.
    Here,
    /// On a server of a data set.
    Set(DataSetId, Servers),
    /// On a server of each data set.
    Each(Join),
}

/// The servers of a data set that can run a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    Primary,
    /// Any server. The nearest one is taken, which is this server.
    Any,
    /// A server that follows the primary.
    Follower,
}

/// Returns the servers that run a request.
///
/// # Errors
/// Fails if no server can run it: it names databases of several data sets, or it is about a single
/// replica set.
pub fn target(
    call: &Call<'_>,
    placement: &Placement,
    transactions: &TransactionSets,
) -> Result<Target, CommandError> {
    match call.command.routing {
        Routing::Here => Ok(Target::Here),
        Routing::Users => Ok(Target::Set(DataSetId::FIRST, Servers::Primary)),
        Routing::Each(join) => Ok(Target::Each(join)),
        Routing::Refused => {
            let name = call.command.name;
            let message = format!(
                "{name} is not supported: this server presents several data sets as a router does"
            );
            Err(CommandError::new(ErrorCode::CommandNotSupported, message))
        }
        Routing::Transaction => {
            let set = ended_transaction(call, placement, transactions)?;
            Ok(Target::Set(set, Servers::Primary))
        }
        Routing::Database | Routing::Databases if is_about_server(call.request) => Ok(Target::Here),
        Routing::Database | Routing::Databases => {
            let set = set_of_databases(call, placement)?;
            let scope = SetScope::from_request(call.request);
            if let Some(scope) = &scope {
                scope.join(call, set, placement, transactions)?;
            }
            let is_transaction = scope.is_some_and(|it| it.kind == ScopeKind::Transaction);
            let servers = if is_transaction {
                Servers::Primary
            } else {
                servers(call.request, call.command)?
            };
            Ok(Target::Set(set, servers))
        }
    }
}

/// Returns the data set with all databases of a request.
fn set_of_databases(call: &Call<'_>, placement: &Placement) -> Result<DataSetId, CommandError> {
    let request = call.request;
    if is_cluster_stream(request) && placement.count() > 1 {
        let message = "a change stream of the whole deployment is not supported over several data \
                       sets: open one for each database";
        return Err(CommandError::new(ErrorCode::IllegalOperation, message));
    }
    let own = request.database();
    if call.command.routing != Routing::Databases {
        return Ok(placement.set_of(own));
    }
    let access = AccessRequest::new(call.front, request, call.authority.identity());
    let requirement = call.command.needs.requirement(&access);
    let mut databases = Vec::new();
    collect_databases(&requirement, &mut databases);
    // A command for `admin` alone is about the databases that it names.
    if !call.command.admin_only || databases.is_empty() {
        databases.insert(0, own);
    }
    let first = databases.first().copied().unwrap_or(own);
    let set = placement.set_of(first);
    match databases.iter().find(|it| placement.set_of(it) != set) {
        None => Ok(set),
        Some(other) => {
            let (set, other_set) = (placement.name(set), placement.name(placement.set_of(other)));
            let message = format!(
                "{} with databases of several data sets is not supported: {first} is in {set}, \
                 {other} in {other_set}",
                call.command.name
            );
            Err(CommandError::new(ErrorCode::IllegalOperation, message))
        }
    }
}

fn collect_databases<'r>(requirement: &'r Requirement, found: &mut Vec<&'r str>) {
    match requirement {
        Requirement::Action(Resource::Database(name) | Resource::Namespace(name, _), _)
        | Requirement::AnythingIn(name) => found.push(name),
        Requirement::Action(..) | Requirement::Nothing => {}
        Requirement::All(all) | Requirement::Any(all) => {
            all.iter().for_each(|one| collect_databases(one, found));
        }
        Requirement::Not(one) => collect_databases(one, found),
    }
}

/// Returns the stages of an aggregation.
fn stages<'a>(request: &'a Request) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
    let pipeline = match request.command() {
        "aggregate" => request.get("pipeline").and_then(ValueRef::as_array),
        _ => None,
    };
    let stages = pipeline
        .into_iter()
        .flat_map(|pipeline: Array<'a>| pipeline.iter());
    stages.filter_map(|stage| stage.as_document()?.first())
}

/// Returns `true` for aggregations of what runs on the server, which is in no data set.
fn is_about_server(request: &Request) -> bool {
    let about = ["$currentOp", "$listLocalSessions"];
    let first = stages(request).next();
    first.is_some_and(|(name, _)| about.contains(&name))
}

fn is_cluster_stream(request: &Request) -> bool {
    let first = stages(request).next();
    first.is_some_and(|(name, options)| {
        let flag = |options: Document<'_>| {
            let flag = options.get("allChangesForCluster");
            flag.is_some_and(ValueRef::is_truthy)
        };
        name == "$changeStream" && options.as_document().is_some_and(flag)
    })
}

/// Returns the number of the transaction that a request is part of.
fn transaction_number(request: &Request) -> Option<i64> {
    request.get("autocommit")?;
    request.get("txnNumber")?.as_whole()
}

/// Returns the session of a request. Fails if it is that of another user.
fn session(call: &Call<'_>) -> Result<Option<SessionId>, CommandError> {
    let sent = call.request.get("lsid").and_then(ValueRef::as_document);
    let session = sent.map(|sent| call.authority.session(SessionId::parse(sent, "lsid")?));
    session.transpose()
}

/// A transaction of a session, or its reads at one snapshot. All requests of a scope use one data
/// set: a transaction has one log, and the times of two sets say nothing about the order of their
/// changes.
struct SetScope {
    kind: ScopeKind,
    /// The number under which the data set is recorded.
    number: i64,
    /// The request begins the scope. A later one continues it.
    begins: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Transaction,
    Snapshot,
}

impl SetScope {
    /// Returns the scope that a request begins or continues.
    fn from_request(request: &Request) -> Option<SetScope> {
        if let Some(number) = transaction_number(request) {
            let starts = request.get("startTransaction");
            return Some(SetScope {
                kind: ScopeKind::Transaction,
                number,
                begins: starts.is_some_and(ValueRef::is_truthy),
            });
        }
        let concern = request.get("readConcern")?.as_document()?;
        let is_snapshot = concern.get("level")?.as_str()? == "snapshot";
        is_snapshot.then(|| SetScope {
            kind: ScopeKind::Snapshot,
            number: SNAPSHOT,
            begins: !concern.contains("atClusterTime"),
        })
    }

    /// Records the data set of a scope that begins. Fails if a scope that continues has another
    /// set.
    fn join(
        &self,
        call: &Call<'_>,
        set: DataSetId,
        placement: &Placement,
        transactions: &TransactionSets,
    ) -> Result<(), CommandError> {
        let Some(session) = session(call)? else {
            return Ok(());
        };
        if self.begins {
            transactions.begin(session, self.number, set);
            return Ok(());
        }
        match transactions.find(session, self.number) {
            Some(begun) if begun != set => {
                let (begun, set) = (placement.name(begun), placement.name(set));
                Err(self.kind.conflict(call.request.database(), begun, set))
            }
            _ => Ok(()),
        }
    }
}

impl ScopeKind {
    /// Returns the error of a request whose database is in `set`, while the scope uses the set
    /// `begun`.
    fn conflict(self, database: &str, begun: &str, set: &str) -> CommandError {
        match self {
            ScopeKind::Transaction => CommandError::new(
                ErrorCode::OperationNotSupportedInTransaction,
                format!(
                    "a transaction cannot use several data sets: it began in {begun}, and the \
                     database {database} is in {set}"
                ),
            ),
            ScopeKind::Snapshot => CommandError::new(
                ErrorCode::InvalidOptions,
                format!(
                    "a snapshot cannot be of several data sets: it is of {begun}, and the database \
                     {database} is in {set}"
                ),
            ),
        }
    }
}

/// The number of the snapshot of a session. Those of transactions are not negative.
const SNAPSHOT: i64 = -1;

/// The name of the data set in a recovery token, by which a transaction is ended through any
/// server.
pub const RECOVERY_SET: &str = "recoveryShardId";

/// Returns the data set of a transaction that ends.
fn ended_transaction(
    call: &Call<'_>,
    placement: &Placement,
    transactions: &TransactionSets,
) -> Result<DataSetId, CommandError> {
    let number = transaction_number(call.request);
    let known = match (session(call)?, number) {
        (Some(session), Some(number)) => transactions.find(session, number),
        // The command fails wherever it runs.
        _ => Some(DataSetId::FIRST),
    };
    let token = call
        .request
        .get("recoveryToken")
        .and_then(ValueRef::as_document);
    let token = || placement.find(token?.get(RECOVERY_SET)?.as_str()?);
    known.or_else(token).ok_or_else(|| {
        let number = number.unwrap_or_default();
        let message = format!("no transaction with the number {number} is known to this server");
        CommandError::new(ErrorCode::NoSuchTransaction, message)
    })
}

/// Returns which servers can run a request that is in no transaction.
///
/// A read after a cluster time, as drivers send it in sessions, reads from the primary: followers
/// of one data set do not know if they have seen a time of another one.
fn servers(request: &Request, command: &Command) -> Result<Servers, CommandError> {
    let is_read = (command.is_limited_read)(request.body());
    let is_write = command.write_concern && !is_read;
    if is_write || !(is_read || command.class == LatencyClass::Read) {
        return Ok(Servers::Primary);
    }
    let concern = request.get("readConcern").and_then(ValueRef::as_document);
    let needs_primary = concern.is_some_and(|concern| {
        let level = concern.get("level").and_then(ValueRef::as_str);
        level == Some("linearizable") || concern.contains("afterClusterTime")
    });
    let preference = request
        .get("$readPreference")
        .and_then(ValueRef::as_document);
    let (Some(preference), false) = (preference, needs_primary) else {
        return Ok(Servers::Primary);
    };
    let mode = preference.get("mode").and_then(ValueRef::as_str);
    let matches = has_tags_of_all(preference);
    match mode.unwrap_or("primary") {
        "secondaryPreferred" | "nearest" if matches => Ok(Servers::Any),
        "secondary" if matches => Ok(Servers::Follower),
        mode @ ("secondary" | "nearest") => Err(unsatisfied(mode)),
        // A data set without a primary has one in a moment.
        _ => Ok(Servers::Primary),
    }
}

/// Servers have no tags, so only a list with an empty set of tags, and no list, can be met.
fn has_tags_of_all(preference: Document<'_>) -> bool {
    let Some(tags) = preference.get("tags").and_then(ValueRef::as_array) else {
        return true;
    };
    let mut sets = tags.iter().filter_map(ValueRef::as_document);
    tags.iter().next().is_none() || sets.any(|set| set.first().is_none())
}

/// Returns the error of a request for which no server is found.
pub fn unsatisfied(mode: &str) -> CommandError {
    let message = format!("Could not find a server that matches the read preference {mode}");
    CommandError::new(ErrorCode::FailedToSatisfyReadPreference, message)
}

/// Returns the cursor that a request continues or closes.
pub fn cursor(request: &Request) -> Option<i64> {
    match request.command() {
        "getMore" => request.get("getMore")?.as_whole(),
        "killCursors" => {
            let cursors = request.get("cursors")?.as_array()?;
            cursors.iter().next()?.as_whole()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use windrow_document::{DocumentBuf, doc};

    use super::*;
    use crate::commands::find;
    use crate::connection::request_for_tests;

    /// Returns the servers that can run a request, or the code of its error.
    fn servers_of(body: &DocumentBuf) -> Result<Servers, i32> {
        let request = request_for_tests(body);
        let found = servers(&request, find(request.command()).unwrap());
        found.map_err(|error| error.code.number())
    }

    #[test]
    fn read_preferences_choose_servers() {
        let check = |mode: &str, tags: Option<DocumentBuf>, expected: Result<Servers, i32>| {
            let mut preference = doc! { "mode": mode };
            if let Some(tags) = tags {
                preference.push("tags", vec![tags]);
            }
            let read = doc! { "find": "c", "$db": "d", "$readPreference": preference };
            assert_eq!(servers_of(&read), expected, "{read}");
        };
        check("primary", None, Ok(Servers::Primary));
        check("primaryPreferred", None, Ok(Servers::Primary));
        check("secondary", None, Ok(Servers::Follower));
        check("secondaryPreferred", None, Ok(Servers::Any));
        check("nearest", None, Ok(Servers::Any));
        let tags = || Some(doc! { "dc": "x" });
        check("secondary", tags(), Err(133));
        check("nearest", tags(), Err(133));
        check("secondaryPreferred", tags(), Ok(Servers::Primary));
        check("nearest", Some(doc! {}), Ok(Servers::Any));
    }

    #[test]
    fn writes_and_causal_reads_are_for_primaries() {
        let check = |body: DocumentBuf| {
            let mut body = body;
            body.push("$db", "d");
            body.push("$readPreference", doc! { "mode": "secondary" });
            assert_eq!(servers_of(&body), Ok(Servers::Primary), "{body}");
        };
        let time = windrow_document::Timestamp::from_bits(1 << 32);
        check(doc! { "insert": "c", "documents": [] });
        check(doc! { "find": "c", "readConcern": { "afterClusterTime": time } });
        check(doc! { "find": "c", "readConcern": { "level": "linearizable" } });
        let out = doc! { "$out": "t" };
        check(doc! { "aggregate": "c", "pipeline": [out], "cursor": {} });
    }

    #[test]
    fn requests_about_the_server_and_the_cluster_are_known() {
        let request = |stage: DocumentBuf| {
            let body = doc! { "aggregate": 1, "pipeline": [stage], "cursor": {}, "$db": "admin" };
            request_for_tests(&body)
        };
        assert!(is_about_server(&request(doc! { "$currentOp": {} })));
        assert!(!is_about_server(&request(doc! { "$match": {} })));
        let stream = |all: bool| request(doc! { "$changeStream": { "allChangesForCluster": all } });
        assert!(is_cluster_stream(&stream(true)) && !is_cluster_stream(&stream(false)));
    }
}
