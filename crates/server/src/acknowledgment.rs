//! The acknowledgment of writes: waits until the writes of a command are durable, if its write
//! concern requires it, and says in the reply if a concern is not fulfilled. A linearizable read
//! waits for the proof that its server was the primary.
//!
//! A server whose database is in an object store has the default write concern "majority", as
//! members of replica sets of MongoDB have.

use std::time::{Duration, Instant};

use windrow_collection::Engine;
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::command::Command;
use crate::common_arguments::{CommonArguments, ReadConcern, TransactionPart, WriteConcern};
use crate::errors::OrCommandError;
use crate::metrics::Kind;
use crate::operations::Operation;
use crate::state::State;

/// A wait without a limit ends after this time, which is longer than a server lives.
const NO_LIMIT: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Waits after a command has run. If the write concern is not fulfilled in time, the writes are
/// made all the same, and the reply says so.
pub fn wait(
    state: &State,
    request: &Request,
    command: &Command,
    common: &CommonArguments,
    operation: &Operation,
    reply: Reply,
) -> Result<Reply, CommandError> {
    let engine = &state.services.engine;
    if common.read_concern == ReadConcern::Linearizable {
        confirm(engine, operation)?;
    }
    let concern = &common.write_concern;
    if !command.write_concern || !requires_wait(engine, concern) {
        return Ok(reply);
    }
    let is_read = (command.is_limited_read)(request.body());
    let part = common.numbered.as_ref().map(|numbered| numbered.part);
    let is_within = matches!(
        part,
        Some(TransactionPart::Start | TransactionPart::Continuation)
    );
    if is_read || (is_within && !command.ends_transaction) {
        return Ok(reply);
    }
    if wait_durable(engine, operation, concern.wait_max)? {
        return Ok(reply);
    }
    let message = "waiting for replication timed out";
    let mut error = CommandError::new(ErrorCode::WriteConcernTimeout, message);
    error.extra = doc! { "errInfo": { "wtimeout": true } };
    Ok(with_concern_error(reply, &error))
}

/// Waits until it is proven that this server was the primary after a read, and until what it has
/// read is durable. The read has then seen every write that was acknowledged before.
fn confirm(engine: &Engine, operation: &Operation) -> Result<(), CommandError> {
    let Some(confirmation) = engine.request_confirmation() else {
        return Ok(());
    };
    operation.wait_until(Instant::now() + NO_LIMIT, |at_most| {
        let confirmed = engine.wait_confirmed(confirmation, at_most);
        confirmed.or_command_error()
    })?;
    wait_durable(engine, operation, None).map(drop)
}

/// Returns whether a write is acknowledged only when it is durable.
pub fn requires_wait(engine: &Engine, concern: &WriteConcern) -> bool {
    concern.synced || (concern.is_default && engine.is_shared())
}

/// Waits until everything that was written so far is durable: on the disk, or in the object store.
/// Returns `false` if it is not after `limit`.
pub fn wait_durable(
    engine: &Engine,
    operation: &Operation,
    limit: Option<Duration>,
) -> Result<bool, CommandError> {
    let position = engine.written();
    let deadline = Instant::now() + limit.unwrap_or(NO_LIMIT);
    operation.wait_until(deadline, |at_most| {
        engine.wait_durable(position, at_most).or_command_error()
    })
}

/// Returns the reply, reduced to what the write concern requests.
pub fn reduce(reply: Reply, command: &Command, common: &CommonArguments) -> Reply {
    let is_write = matches!(command.kind, Kind::Insert | Kind::Update | Kind::Delete);
    if common.write_concern.unacknowledged && is_write {
        return Reply::ok(DocumentBuf::new());
    }
    match &common.write_concern.unsatisfied {
        Some(why) => with_concern_error(reply, why),
        None => reply,
    }
}

/// Adds to a reply that the write succeeded without fulfilling the write concern.
fn with_concern_error(reply: Reply, why: &CommandError) -> Reply {
    let mut error = doc! {
        "code": (why.code.number()), "codeName": (why.code.name().as_ref()),
        "errmsg": (why.message.as_str()),
    };
    for (name, value) in why.extra.iter() {
        error.push(name, value);
    }
    reply.with_fields(doc! { "writeConcernError": error }.as_document())
}
