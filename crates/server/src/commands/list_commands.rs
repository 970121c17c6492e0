//! `listCommands`: the commands of the server.

use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, Reply};

use crate::access::Needs;
use crate::command::{Command, Routing};
use crate::context::Context;
use crate::parameters::TEST_COMMANDS;

/// It needs the table of commands, which is in a higher module: see [`run`].
pub const LIST_COMMANDS: Command = Command {
    name: "listCommands",
    help: "lists the commands",
    routing: Routing::Here,
    needs: Needs::Nothing,
    ..Command::EMPTY
};

pub fn run(table: &[&Command], context: &Context<'_>) -> Result<Reply, CommandError> {
    let for_tests = context.state.parameters.flag(TEST_COMMANDS);
    let mut table = table.to_vec();
    table.retain(|command| for_tests || !command.for_tests);
    table.sort_unstable_by_key(|command| command.name);
    let mut commands = DocumentBuf::new();
    for command in table {
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
