//! `connectionStatus`: the user of the connection, its roles and its privileges.

use windrow_access::{RoleName, UserName};
use windrow_document::{DocumentBuf, Value, doc};
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, InTransactions, Routing};
use crate::context::Context;

pub const CONNECTION_STATUS: Command = Command {
    name: "connectionStatus",
    help: "returns the users of the connection and their privileges",
    routing: Routing::Here,
    needs: Needs::Nothing,
    arguments: AcceptedArguments::Only(&["showPrivileges"]),
    in_transactions: InTransactions::Following,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let shows_privileges = Arguments::new(request).flag("showPrivileges")?;
    let (state, client) = (context.state, context.client);
    let engine = &state.users_engine()?;
    let users = state.directory.users(engine);
    // The user is shown even if no login is necessary.
    let identity = client.login.identity(engine, &users, client.endpoints())?;
    let user = identity
        .as_ref()
        .map(|it| UserName::to_document(&it.user.name));
    let roles = identity.iter().flat_map(|it| &it.resolved.roles);
    let mut shown = DocumentBuf::new();
    shown.push("authenticatedUsers", Vec::from_iter(user));
    let roles: Vec<DocumentBuf> = roles.map(RoleName::to_document).collect();
    shown.push("authenticatedUserRoles", roles);
    if shows_privileges {
        let privileges = identity.map(|it| it.resolved.privileges.to_array());
        let privileges = Value::Array(privileges.unwrap_or_default());
        shown.push("authenticatedUserPrivileges", privileges);
    }
    Ok(Reply::ok(doc! { "authInfo": shown }))
}
