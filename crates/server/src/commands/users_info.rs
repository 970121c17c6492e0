//! `usersInfo`: the users of a database. There are none.

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::command::{Accepted, Command};
use crate::context::Context;

pub const USERS_INFO: Command = Command {
    name: "usersInfo",
    help: "lists users",
    arguments: Accepted::Only(&[
        "filter",
        "showAuthenticationRestrictions",
        "showCredentials",
        "showCustomData",
        "showPrivileges",
    ]),
    run,
    ..Command::EMPTY
};

fn run(_: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    Ok(Reply::ok(doc! { "users": [] }))
}
