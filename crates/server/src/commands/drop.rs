//! `drop`: drops a collection with its indexes, or a view. Dropping a missing collection succeeds.

use windrow_access::Action;
use windrow_collection::{Namespace, View};
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::access::store::AuthCollection;
use crate::arguments::Arguments;
use crate::audit::{AuditTrail, view_param};
use crate::collection_uuid::Target;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::namespace;
use crate::profiling::ProfilingLevel;
use crate::recorder::PROFILE;

pub const DROP: Command = Command {
    name: "drop",
    help: "drops a collection with its indexes",
    needs: Needs::OnCollection(&[Action::dropCollection]),
    write_concern: true,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&["collectionUUID"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    if AuthCollection::is_protected(&namespace) {
        let message = format!("can't drop system collection {namespace}");
        return Err(CommandError::new(ErrorCode::IllegalOperation, message));
    }
    let target = Target::from_arguments(namespace.clone(), &Arguments::new(request))?;
    let engine = &context.state.services.engine;
    let indexes = loop {
        let found = target.collection(context)?;
        check_profile(context, &namespace)?;
        let Some(collection) = found else {
            return drop_view(context, &namespace);
        };
        let _ddl_guard = context.exclude(&collection)?;
        let indexes = collection.index_count();
        // The collection may have been renamed or dropped since. Then the name is looked up again.
        let dropped = engine.drop_found(&collection, &namespace);
        if dropped.or_command_error()? {
            break indexes;
        }
    };
    context.state.usage.forget(&namespace.to_string());
    end_cursors(context, &namespace.to_string());
    context.audit("dropCollection", || doc! { "ns": (namespace.to_string()) });
    let attr = doc! { "namespace": (namespace.to_string()), "indexes": (indexes as i32) };
    let log = &context.state.services.log;
    log.info(
        "COMMAND",
        518_070,
        &context.client.name(),
        "CMD: drop",
        attr,
    );
    Ok(Reply::ok(doc! {
        "nIndexesWas": (indexes as i32), "ns": (namespace.to_string()),
    }))
}

/// Drops the view with this name, if there is one.
fn drop_view(context: &Context<'_>, namespace: &Namespace) -> Result<Reply, CommandError> {
    let engine = &context.state.services.engine;
    // The definition is only for the audit log.
    let view = match context.trail() {
        Some(trail) => Some((trail, engine.view(namespace).or_command_error()?)),
        None => None,
    };
    let is_dropped = engine.drop_view(namespace).or_command_error()?;
    if let Some((trail, view)) = view {
        record_view(&trail, namespace, view.filter(|_| is_dropped).as_ref());
    }
    if !is_dropped {
        return Ok(Reply::ok(DocumentBuf::new()));
    }
    context.state.usage.forget(&namespace.to_string());
    end_cursors(context, &namespace.to_string());
    Ok(Reply::ok(doc! { "ns": (namespace.to_string()) }))
}

/// Records that a view was dropped, or that neither a collection nor a view had the name.
fn record_view(trail: &AuditTrail, namespace: &Namespace, view: Option<&View>) {
    match view {
        Some(view) => trail.record("dropCollection", view_param(namespace, view)),
        None => {
            let param = doc! { "ns": (namespace.to_string()) };
            let result = ErrorCode::NamespaceNotFound.number();
            trail.record_result("dropCollection", param, result);
        }
    }
}

/// Fails if profiling is on and the collection stores the profile.
fn check_profile(context: &Context<'_>, namespace: &Namespace) -> Result<(), CommandError> {
    let level = context.state.profiling.database(&namespace.database).level;
    if namespace.collection == PROFILE && level != ProfilingLevel::Off {
        let message = "turn off profiling before dropping system.profile collection";
        return Err(CommandError::new(ErrorCode::IllegalOperation, message));
    }
    Ok(())
}

/// Kills the cursors of a dropped collection.
fn end_cursors(context: &Context<'_>, name: &str) {
    let cursors = &context.state.cursors;
    cursors.end_where(|one| one == name, "collection dropped");
}
