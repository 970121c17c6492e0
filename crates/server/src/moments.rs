//! Reads at a moment outside of transactions: `readConcern: {level: "snapshot"}`, and with
//! `atClusterTime` those that follow.

use std::sync::Arc;

use windrow_collection::{ClusterTime, Moment};
use windrow_document::{DocumentBuf, Timestamp, Value};
use windrow_wire::{CommandError, ErrorCode, Reply};

use crate::command::{Command, SnapshotReads};
use crate::errors::OrCommandError;
use crate::generic::{Generic, ReadConcern};
use crate::state::State;

/// The moment that a command reads at, where it is part of no transaction and asks for one.
pub fn of(
    state: &State,
    command: &Command,
    generic: &Generic,
) -> Result<Option<Arc<Moment>>, CommandError> {
    let is_own = command.snapshot_reads != SnapshotReads::OfCursor && generic.numbered.is_none();
    if generic.read_concern != ReadConcern::Snapshot || !is_own {
        return Ok(None);
    }
    let moment = match generic.read_at {
        None => state.services.engine.moment(),
        Some(time) => at(state, time)?,
    };
    Ok(Some(Arc::new(moment)))
}

/// The moment of a time that a client has been told. Errors: 72 where it is still to come, 239 where
/// what was there is not kept any more.
pub fn at(state: &State, time: Timestamp) -> Result<Moment, CommandError> {
    let current = current(state);
    if time > current {
        let shown = |time: Timestamp| format!("({}, {})", time.seconds, time.increment);
        let message = format!(
            "readConcern atClusterTime value must not be greater than the current clusterTime. \
             Requested clusterTime: {}; current clusterTime: {}",
            shown(time),
            shown(current)
        );
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    let [time, current] = [time, current].map(|time| ClusterTime(time.bits()));
    let moment = state.services.engine.moment_at(time, current);
    moment.or_command_error()
}

/// The newest time that there is, as clients know it.
fn current(state: &State) -> Timestamp {
    let newest = state.services.engine.newest_time();
    match &state.member {
        Some(member) => member.time(newest),
        // That of a server to which nothing was ever written.
        None => Timestamp::from_bits(newest.max(ClusterTime::new(1, 0)).0),
    }
}

/// The time of a moment, as clients know it.
pub fn time_of(moment: &Moment) -> Timestamp {
    Timestamp::from_bits(moment.time().0)
}

/// The reply of a command that has read at a moment, with its time.
pub fn told(reply: Reply, command: &Command, moment: &Moment) -> Reply {
    let time = time_of(moment);
    match command.snapshot_reads {
        SnapshotReads::InCursor => reply.with_cursor_time(time),
        SnapshotReads::InReply => {
            let mut fields = DocumentBuf::new();
            fields.push("atClusterTime", Value::Timestamp(time));
            reply.with_fields(fields.as_document())
        }
        _ => reply,
    }
}
