//! Known commands that the server does not implement. Each is refused with a message of its own.

use windrow_access::Action;
use windrow_wire::{CommandError, ErrorCode};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, Routing};

pub const AUTO_COMPACT: Command = Command {
    name: "autoCompact",
    help: "is not supported: merges and compact free space",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::compact]),
    admin_only: true,
    ..NOT_SUPPORTED
};

pub const MAP_REDUCE: Command = Command {
    name: "mapReduce",
    aliases: &["mapreduce"],
    help: "is not supported: there is no server-side scripting",
    routing: Routing::Here,
    needs: Needs::OnCollection(&[Action::find]),
    run: |_, _| {
        let message =
            "Cannot run server-side javascript without the javascript engine enabled: mapReduce";
        Err(CommandError::new(NO_SCRIPTS, message))
    },
    ..REFUSED
};

pub const LIST_SEARCH_INDEXES: Command = Command {
    name: "listSearchIndexes",
    help: "is not supported: use the stage $listSearchIndexes",
    needs: Needs::OnCollection(&[Action::listSearchIndexes]),
    run: |request, _| {
        let message = format!(
            "the command {} is not supported: use the stage $listSearchIndexes",
            request.command()
        );
        Err(CommandError::new(ErrorCode::NotImplemented, message))
    },
    ..REFUSED
};

const REFUSED: Command = Command {
    write_concern: true,
    arguments: AcceptedArguments::Any,
    ..Command::EMPTY
};

const NOT_SUPPORTED: Command = Command {
    run: |request, _| {
        let message = format!("the command {} is not supported", request.command());
        Err(CommandError::new(ErrorCode::NotImplemented, message))
    },
    ..REFUSED
};

/// MongoDB's error code if scripting is disabled.
const NO_SCRIPTS: ErrorCode = ErrorCode(31_264);
