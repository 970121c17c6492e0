//! `dropUser` and `dropAllUsersFromDatabase`: delete users.

use windrow_access::Action;
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::store::AuthCollection;
use crate::access::{Needs, editing};
use crate::command::{Command, Routing};
use crate::context::Context;
use crate::errors::refuse;

pub const DROP_USER: Command = Command {
    name: "dropUser",
    help: "deletes a user of the database",
    routing: Routing::Users,
    needs: Needs::OnDatabase(&[Action::dropUser]),
    write_concern: true,
    run,
    ..Command::EMPTY
};

pub const DROP_ALL_USERS_FROM_DATABASE: Command = Command {
    name: "dropAllUsersFromDatabase",
    help: "deletes all users of the database",
    routing: Routing::Users,
    needs: Needs::OnDatabase(&[Action::dropUser]),
    write_concern: true,
    run: all,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let name = editing::named_user(request)?;
    let _editing_guard = editing::begin(context);
    if !AuthCollection::Users.delete(&context.state.services.engine, &name.id())? {
        return refuse(ErrorCode::UserNotFound, format!("User '{name}' not found"));
    }
    editing::record(context, request, &name.id());
    Ok(Reply::ok(DocumentBuf::new()))
}

fn all(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let (engine, database) = (&context.state.services.engine, request.database());
    let _editing_guard = editing::begin(context);
    let mut count = 0;
    for user in AuthCollection::Users.find(engine, doc! { "db": database }.as_document())? {
        if let Some(id) = user.get("_id").and_then(ValueRef::as_str) {
            count += i32::from(AuthCollection::Users.delete(engine, id)?);
        }
    }
    editing::record(context, request, database);
    Ok(Reply::ok(doc! { "n": count }))
}
