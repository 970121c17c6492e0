//! `connectionStatus`: the users that are logged in. There are none without authentication.

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command, InTransactions};
use crate::context::Context;

pub const CONNECTION_STATUS: Command = Command {
    name: "connectionStatus",
    help: "returns the users of the connection and their privileges",
    arguments: Accepted::Only(&["showPrivileges"]),
    in_transactions: InTransactions::Following,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    let mut users = doc! { "authenticatedUsers": [], "authenticatedUserRoles": [] };
    if Arguments::new(request).flag("showPrivileges")? {
        users.push("authenticatedUserPrivileges", windrow_document::array![]);
    }
    Ok(Reply::ok(doc! { "authInfo": users }))
}
