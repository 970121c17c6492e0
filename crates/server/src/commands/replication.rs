//! Commands of replica sets. A standalone server refuses them with MongoDB's errors, by which tools
//! recognize it.

use std::time::SystemTime;

use windrow_access::Action;
use windrow_document::doc;
use windrow_wire::{CommandError, ErrorCode, Reply};

use crate::access::Needs;
use crate::clock;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::replica_set::ReplicaSet;

pub const GET_DEFAULT_RW_CONCERN: Command = Command {
    name: "getDefaultRWConcern",
    help: "returns the default read and write concerns",
    routing: Routing::Users,
    needs: Needs::OnServer(&[Action::getDefaultRWConcern]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&["inMemory"]),
    run: |_, context| {
        if context.state.replica_set.is_none() {
            let message = "'getDefaultRWConcern' is not supported on standalone nodes.";
            return Err(CommandError::new(NOT_ON_STANDALONE, message));
        }
        let write_concern = if context.state.services.engine.is_shared() {
            doc! { "w": "majority", "wtimeout": 0 }
        } else {
            doc! { "w": 1, "wtimeout": 0 }
        };
        Ok(Reply::ok(doc! {
            "defaultReadConcern": { "level": "local" },
            "defaultWriteConcern": write_concern,
            "defaultReadConcernSource": "implicit",
            "defaultWriteConcernSource": "implicit",
            "localUpdateWallClockTime": (clock::date(SystemTime::now())),
        }))
    },
    ..Command::EMPTY
};

/// MongoDB's error code of a standalone server.
const NOT_ON_STANDALONE: ErrorCode = ErrorCode(51_300);

pub const REPL_SET_GET_CONFIG: Command = Command {
    name: "replSetGetConfig",
    help: "returns the configuration of the replica set",
    routing: Routing::Refused,
    needs: Needs::OnServer(&[Action::replSetGetConfig]),
    run: |_, context| {
        let shared = context.state.shared_state();
        let configuration = member(context)?.configuration(shared);
        Ok(Reply::ok(doc! { "config": configuration }))
    },
    ..OF_SETS
};

pub const REPL_SET_GET_STATUS: Command = Command {
    name: "replSetGetStatus",
    help: "returns the state of the replica set",
    routing: Routing::Refused,
    needs: Needs::OnServer(&[Action::replSetGetStatus]),
    run: |_, context| {
        let newest = context.state.services.engine.newest_time();
        let shared = context.state.shared_state();
        Ok(Reply::ok(member(context)?.status(newest, shared)))
    },
    ..OF_SETS
};

const OF_SETS: Command = Command {
    admin_only: true,
    arguments: AcceptedArguments::Any,
    ..Command::EMPTY
};

fn member<'a>(context: &Context<'a>) -> Result<&'a ReplicaSet, CommandError> {
    let not_one = || {
        let message = "not running with --replSet";
        CommandError::new(ErrorCode::NoReplicationEnabled, message)
    };
    context.state.replica_set.as_ref().ok_or_else(not_one)
}
