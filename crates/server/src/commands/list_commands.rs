//! `listCommands`: every command that the server knows.

use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, Reply, Request};

use super::{Accepted, COMMANDS, Command};
use crate::context::Context;

pub const LIST_COMMANDS: Command = Command {
    name: "listCommands",
    help: "lists the commands",
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

fn run(_: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    let mut commands = DocumentBuf::new();
    for command in COMMANDS {
        commands.push(command.name, describe(command));
    }
    Ok(Reply::ok(doc! { "commands": commands }))
}

fn describe(command: &Command) -> DocumentBuf {
    let versions = if command.in_api_version_1 {
        vec!["1"]
    } else {
        vec![]
    };
    doc! {
        "help": (command.help),
        "requiresAuth": false,
        "secondaryOk": (!command.write_concern),
        "adminOnly": (command.admin_only),
        "apiVersions": versions,
        "deprecatedApiVersions": [],
    }
}
