//! Commands that are known, and refused by name: what they need is not here.

use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::command::{Accepted, Command};
use crate::context::Context;

pub const AUTO_COMPACT: Command = Command {
    name: "autoCompact",
    help: "is not supported: space is given back by merges, and by compact",
    admin_only: true,
    ..NOT_SUPPORTED
};

pub const MAP_REDUCE: Command = Command {
    name: "mapReduce",
    aliases: &["mapreduce"],
    help: "is not supported, as where server-side scripting is off",
    run: |_, _| {
        let message =
            "Cannot run server-side javascript without the javascript engine enabled: mapReduce";
        Err(CommandError::new(NO_SCRIPTS, message))
    },
    ..REFUSED
};

pub const CREATE_SEARCH_INDEXES: Command = Command {
    name: "createSearchIndexes",
    help: "is not supported: there is no search service",
    ..OF_SEARCH
};

pub const DROP_SEARCH_INDEX: Command = Command {
    name: "dropSearchIndex",
    help: "is not supported: there is no search service",
    ..OF_SEARCH
};

pub const LIST_SEARCH_INDEXES: Command = Command {
    name: "listSearchIndexes",
    help: "is not supported: there is no search service",
    ..OF_SEARCH
};

pub const UPDATE_SEARCH_INDEX: Command = Command {
    name: "updateSearchIndex",
    help: "is not supported: there is no search service",
    ..OF_SEARCH
};

const REFUSED: Command = Command {
    write_concern: true,
    arguments: Accepted::Any,
    ..Command::EMPTY
};

const NOT_SUPPORTED: Command = Command {
    run: |request, _| {
        let message = format!("the command {} is not supported", request.command());
        Err(CommandError::new(ErrorCode::NotImplemented, message))
    },
    ..REFUSED
};

const OF_SEARCH: Command = Command {
    run: no_search,
    ..REFUSED
};

/// MongoDB's code where scripting is off.
const NO_SCRIPTS: ErrorCode = ErrorCode(31_264);

fn no_search(request: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    let message = format!(
        "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires \
         additional configuration, which is not here: {}",
        request.command()
    );
    Err(CommandError::new(ErrorCode::SearchNotEnabled, message))
}
