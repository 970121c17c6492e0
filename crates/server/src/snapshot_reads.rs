//! Snapshot reads outside of transactions: `readConcern: {level: "snapshot"}`, possibly with
//! `atClusterTime`.

use std::sync::Arc;

use windrow_collection::{ClusterSnapshot, ClusterTime};
use windrow_document::{DocumentBuf, Timestamp, Value};
use windrow_wire::{CommandError, ErrorCode, Reply};

use crate::command::{Command, SnapshotReads};
use crate::common_arguments::{CommonArguments, ReadConcern};
use crate::errors::OrCommandError;
use crate::state::State;

/// Returns the snapshot of a command with the read concern "snapshot" outside of transactions.
pub fn open(
    state: &State,
    command: &Command,
    common: &CommonArguments,
) -> Result<Option<Arc<ClusterSnapshot>>, CommandError> {
    let is_own = command.snapshot_reads != SnapshotReads::OfCursor && common.numbered.is_none();
    if common.read_concern != ReadConcern::Snapshot || !is_own {
        return Ok(None);
    }
    let snapshot = match common.read_at {
        None => state.services.engine.cluster_snapshot(),
        Some(time) => open_at(state, time)?,
    };
    Ok(Some(Arc::new(snapshot)))
}

/// Returns the snapshot at a time that a client has got before.
///
/// # Errors
///
/// - 72: the time is in the future.
/// - 239: the snapshot is not available any more.
pub fn open_at(state: &State, time: Timestamp) -> Result<ClusterSnapshot, CommandError> {
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
    let snapshot = state.services.engine.cluster_snapshot_at(time, current);
    snapshot.or_command_error()
}

/// Returns the newest time, as clients see it.
fn current(state: &State) -> Timestamp {
    let newest = state.services.engine.newest_time();
    match &state.replica_set {
        Some(member) => member.time(newest),
        // The time of a server without any writes.
        None => Timestamp::from_bits(newest.max(ClusterTime::new(1, 0)).0),
    }
}

/// Returns the time of a snapshot, as clients see it.
pub fn time_of(snapshot: &ClusterSnapshot) -> Timestamp {
    Timestamp::from_bits(snapshot.time().0)
}

/// Adds the time of its snapshot to the reply of a command.
pub fn with_snapshot_time(reply: Reply, command: &Command, snapshot: &ClusterSnapshot) -> Reply {
    let time = time_of(snapshot);
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
