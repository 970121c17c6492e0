//! Runs a request on a server of its data set: this one, or another one.
//!
//! A request waits while its data set has no primary. It is sent again if the server did not run
//! it. If that is unknown, because the connection broke or the server was replaced, only requests
//! are sent again that can run twice: reads, retryable writes, and ends of transactions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use windrow_client::{ClientError, DocumentSequence};
use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply};

use super::message::{FORWARDED, ForwardedHeader};
use super::peers::CheckWait;
use super::route::{Servers, cursor, unsatisfied};
use super::{Call, Router};
use crate::access::identification::is_local;
use crate::client::Principal;
use crate::commands::secret_arguments;
use crate::dispatch;
use crate::error_labels::with_label_for;
use crate::latency::LatencyClass;
use crate::operations::{Operation, Starter};
use crate::placement::DataSetId;
use crate::state::State;

/// The longest wait of a request for a primary, unless its time limit is shorter. Drivers wait for
/// 30 seconds.
const WAIT_MAX: Duration = Duration::from_secs(25);

/// The interval at which a waiting request checks for a primary.
const WAIT_INTERVAL: Duration = Duration::from_millis(20);

/// A server of a data set.
enum Owner {
    Here(Arc<State>),
    Other(String),
}

/// The reason why another server has not replied.
enum Failure {
    /// The server did not get the request.
    NotSent(String),
    /// The server may have run the request.
    Lost(String),
    /// The operation was interrupted.
    Interrupted(CommandError),
}

/// The state of a request that has failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The request was not run, because the server is not the primary.
    NotRun,
    /// The request may have been run.
    Unknown,
    /// The reply is final.
    Final,
}

impl Router {
    /// Runs a request on a server of its data set.
    pub(super) fn forward(&self, call: &Call<'_>, set: DataSetId, servers: Servers) -> Reply {
        let deadline = Instant::now() + wait_max(call);
        loop {
            let (reply, outcome) = match self.owner(call, set, servers) {
                None => (self.no_server(call, set, servers), Outcome::NotRun),
                Some(Owner::Here(member)) => {
                    let reply = dispatch::run(&member, call.client, call.request);
                    let outcome = outcome_of(reply.error_code());
                    (reply, outcome)
                }
                Some(Owner::Other(address)) => self.send_once(call, set, &address),
            };
            let can_retry = match outcome {
                Outcome::Final => false,
                Outcome::NotRun => !continues_transaction(call),
                Outcome::Unknown => can_run_twice(call),
            };
            if !can_retry || Instant::now() >= deadline {
                return reply;
            }
            if call.front.stop.wait(WAIT_INTERVAL) || self.is_gone(call) {
                return reply;
            }
        }
    }

    fn is_gone(&self, call: &Call<'_>) -> bool {
        call.front.connections.is_gone(call.client.id)
    }

    /// Returns the server that runs a request now.
    fn owner(&self, call: &Call<'_>, set: DataSetId, servers: Servers) -> Option<Owner> {
        let here = self.member(set);
        if let Some(id) = cursor(call.request) {
            let has = |member: &&Arc<State>| member.cursors.owner(id).is_some();
            if let Some(member) = here.as_ref().filter(has) {
                return Some(Owner::Here(Arc::clone(member)));
            }
            if let Some(address) = self.cursors.find(id) {
                return Some(Owner::Other(address));
            }
        }
        let member = here?;
        match servers {
            Servers::Any => Some(Owner::Here(member)),
            Servers::Follower if !member.is_writable() => Some(Owner::Here(member)),
            Servers::Follower => self.follower(set).map(Owner::Other),
            Servers::Primary if member.is_writable() => Some(Owner::Here(member)),
            Servers::Primary => self.primary(&member).map(Owner::Other),
        }
    }

    /// Returns the address of the primary that a server follows.
    fn primary(&self, member: &State) -> Option<String> {
        let shared = member.shared_state()?;
        let is_other = !shared.primary.is_empty() && shared.primary != self.address;
        is_other.then_some(shared.primary)
    }

    /// Returns the error of a data set without a server that can run a request.
    fn no_server(&self, call: &Call<'_>, set: DataSetId, servers: Servers) -> Reply {
        let mode = match servers {
            Servers::Follower => "secondary",
            Servers::Primary | Servers::Any => "primary",
        };
        let mut error = unsatisfied(mode);
        error.message = format!("{}, data set {}", error.message, self.placement.name(set));
        self.error(call, error)
    }

    /// Sends a request to another server. Returns the reply, and what is known of the request.
    fn send_once(&self, call: &Call<'_>, set: DataSetId, address: &str) -> (Reply, Outcome) {
        match self.send(call, set, address) {
            Ok(reply) => {
                let outcome = outcome_of(reply.error_code());
                (reply, outcome)
            }
            Err(Failure::Interrupted(error)) => (self.error(call, error), Outcome::Final),
            Err(Failure::NotSent(reason)) => {
                let error = CommandError::new(ErrorCode::HostUnreachable, reason);
                (self.error(call, error), Outcome::NotRun)
            }
            Err(Failure::Lost(_)) if call.command.name == "getMore" => {
                // Without its server there is no cursor. A change stream can be resumed.
                let message = "the cursor is lost: its server has ended or was replaced";
                let error = CommandError::new(ErrorCode::CursorNotFound, message);
                (self.error(call, error), Outcome::Final)
            }
            Err(Failure::Lost(reason)) => {
                let error = CommandError::new(ErrorCode::HostUnreachable, reason);
                (self.error(call, error), Outcome::Unknown)
            }
        }
    }

    fn send(&self, call: &Call<'_>, set: DataSetId, address: &str) -> Result<Reply, Failure> {
        let starter = Starter {
            kind: call.command.kind,
            secret_arguments,
            user: call.authority.user(),
            data_set: Some(set),
        };
        let state = call.front;
        let running = state
            .operations
            .start(call.request, call.client, starter, None, None);
        let operation = &running.operation;
        operation.mark_as_requested_wait();
        let is_read = (call.command.is_limited_read)(call.request.body());
        if call.command.ends_with_client || is_read {
            operation.end_with_client();
        }
        state.metrics.count(call.command.kind);
        let counts = dispatch::counts(state, call.request);
        counts.map(|counts| counts.total.fetch_add(1, Relaxed));
        let body = self.encode(call, set).map_err(Failure::Interrupted)?;
        let check = self.check_wait(set, address, Arc::clone(operation));
        let peer = self.peers.take(address, check);
        let mut peer = peer.map_err(|error| Failure::NotSent(error.to_string()))?;
        let sequences = call.request.sequences();
        let sequences = sequences.map(|(name, documents)| DocumentSequence { name, documents });
        let sequences: Vec<DocumentSequence<'_>> = sequences.collect();
        let exchanged = peer.client.exchange(body.as_document(), &sequences);
        let reply = exchanged.map(|reply| reply.to_buf());
        let reply = reply.map_err(|error: ClientError| match operation.check() {
            Err(interrupted) => Failure::Interrupted(interrupted),
            Ok(()) => Failure::Lost(error.to_string()),
        })?;
        self.peers.give(peer);
        self.cursors
            .record(call.request, reply.as_document(), address);
        Ok(Reply::from_document(reply))
    }

    /// Returns the body of a request with what another server has to know of the client.
    fn encode(&self, call: &Call<'_>, set: DataSetId) -> Result<DocumentBuf, CommandError> {
        let state = call.front;
        let engine = state.users_engine()?;
        let forwarded = ForwardedHeader {
            set: self.placement.name(set).to_owned(),
            principal: Principal {
                user: call.authority.user().cloned(),
                endpoints: call.client.endpoints(),
                can_create_first_user: is_local(state, call.client),
            },
            after: state.directory.users(&engine).newest_change(),
        };
        let mut body = call.request.body().to_buf();
        body.push(FORWARDED, forwarded.to_document()?);
        Ok(body)
    }

    /// Returns the check of a wait for a reply. The wait ends if its operation is interrupted, or
    /// if the data set has another primary.
    fn check_wait(&self, set: DataSetId, address: &str, operation: Arc<Operation>) -> CheckWait {
        let (members, address) = (self.members.clone(), address.to_owned());
        let own = self.address.clone();
        let began_with = members.get(set).and_then(|member| member.shared_state());
        let is_primary = began_with.is_some_and(|shared| shared.primary == address);
        Box::new(move || {
            operation.check().map_err(|error| error.message)?;
            let shared = members.get(set).and_then(|member| member.shared_state());
            let Some(shared) = shared.filter(|_| is_primary) else {
                return Ok(());
            };
            let newest = if shared.is_following {
                &shared.primary
            } else {
                &own
            };
            if newest.is_empty() || *newest == address {
                return Ok(());
            }
            Err(format!("{newest} has replaced it"))
        })
    }

    /// Returns the reply of a request that no server has answered.
    pub(super) fn error(&self, call: &Call<'_>, error: CommandError) -> Reply {
        call.front.metrics.user_errors.fetch_add(1, Relaxed);
        let kind = dispatch::failure_kind(call.front, call.request);
        Reply::from(&with_label_for(error, kind))
    }
}

fn wait_max(call: &Call<'_>) -> Duration {
    let limit = call.request.get("maxTimeMS").and_then(ValueRef::as_whole);
    let limit = limit.and_then(|millis| u64::try_from(millis).ok());
    match limit {
        None | Some(0) => WAIT_MAX,
        Some(millis) => WAIT_MAX.min(Duration::from_millis(millis)),
    }
}

/// Classifies the error of a forwarded request: tells if the server may have executed it.
fn outcome_of(code: Option<i32>) -> Outcome {
    let Some(code) = code.map(ErrorCode) else {
        return Outcome::Final;
    };
    match code {
        ErrorCode::NotWritablePrimary
        | ErrorCode::NotPrimaryNoSecondaryOk
        | ErrorCode::NotPrimaryOrSecondary => Outcome::NotRun,
        ErrorCode::InterruptedDueToReplStateChange
        | ErrorCode::InterruptedAtShutdown
        | ErrorCode::ShutdownInProgress
        | ErrorCode::PrimarySteppedDown => Outcome::Unknown,
        _ => Outcome::Final,
    }
}

/// Returns `true` for a command within a transaction that has begun: with its primary, the
/// transaction is lost. The end of a transaction can be sent to the next primary.
fn continues_transaction(call: &Call<'_>) -> bool {
    let request = call.request;
    let starts = request
        .get("startTransaction")
        .is_some_and(ValueRef::is_truthy);
    request.get("autocommit").is_some() && !starts && !call.command.ends_transaction
}

/// Returns `true` if a request has the same effect if it runs twice.
fn can_run_twice(call: &Call<'_>) -> bool {
    let (request, command) = (call.request, call.command);
    if command.ends_transaction {
        return true;
    }
    if request.get("autocommit").is_some() || command.name == "getMore" {
        return false;
    }
    let is_retryable_write = command.retryable && request.get("txnNumber").is_some();
    let is_read = (command.is_limited_read)(request.body())
        || command.class == LatencyClass::Read && !command.write_concern;
    is_retryable_write || is_read
}
