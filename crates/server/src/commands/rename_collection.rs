//! `renameCollection`: gives a collection another name, in its own database or another one.

use windrow_collection::Namespace;
use windrow_document::{DocumentBuf, Type, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::namespace;

pub const RENAME_COLLECTION: Command = Command {
    name: "renameCollection",
    help: "gives a collection another name",
    admin_only: true,
    write_concern: true,
    arguments: Accepted::Only(&["dropTarget", "stayTemp", "to"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let source = named(&arguments, "renameCollection")?;
    let target = named(&arguments, "to")?;
    let drop_target = arguments.flag("dropTarget")?;
    let stay_temporary = arguments.flag("stayTemp")?;
    check(&source, &target)?;
    context.operation.set_namespace(&source.to_string());
    let engine = &context.state.services.engine;
    let both = [&source, &target].map(|one| engine.collection(one));
    let exclusions = both.iter().flatten().map(|it| context.exclude(it));
    let _exclusions = exclusions.collect::<Result<Vec<_>, CommandError>>()?;
    engine
        .rename(&source, &target, drop_target, stay_temporary)
        .or_command_error()?;
    let names = [source.to_string(), target.to_string()];
    let is_one = |name: &str| names.iter().any(|one| one == name);
    let cursors = &context.state.cursors;
    cursors.end_where(is_one, "collection renamed");
    let attr = doc! {
        "sourceNamespace": (source.to_string()), "targetNamespace": (target.to_string()),
        "dropTarget": (if drop_target { "yes" } else { "no" }),
    };
    let log = &context.state.services.log;
    let client = context.client.name();
    log.info(
        "COMMAND",
        20_400,
        &client,
        "renameCollectionForCommand",
        attr,
    );
    Ok(Reply::ok(DocumentBuf::new()))
}

/// The namespace that an argument names in full.
fn named(arguments: &Arguments<'_>, name: &str) -> Result<Namespace, CommandError> {
    let text = match arguments.get(name) {
        Some(ValueRef::String(text) | ValueRef::Symbol(text)) => text,
        None => return Err(arguments.missing(name)),
        Some(other) if name == "to" => {
            return Err(arguments.wrong_type(name, other.type_of(), &[Type::String]));
        }
        Some(other) => {
            let found = other.type_of().name();
            let message = format!("'{name}' must be of type String, and is of type {found}");
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
    };
    let invalid = || {
        let message = format!("Invalid namespace specified '{text}'");
        CommandError::new(ErrorCode::InvalidNamespace, message)
    };
    let (database, collection) = text.split_once('.').ok_or_else(invalid)?;
    namespace::check_database(database)?;
    Ok(Namespace {
        database: database.to_owned(),
        collection: collection.to_owned(),
    })
}

fn check(source: &Namespace, target: &Namespace) -> Result<(), CommandError> {
    let illegal = |message: String| Err(CommandError::new(ErrorCode::IllegalOperation, message));
    namespace::check_collection(&source.database, &source.collection)?;
    if source == target {
        return illegal("Can't rename a collection to itself".to_owned());
    }
    if source.collection.starts_with("system.") || target.collection.starts_with("system.") {
        return illegal("cannot rename system collections".to_owned());
    }
    for (role, namespace) in [("source", source), ("target", target)] {
        let name = &namespace.collection;
        let allowed = namespace::check_collection(&namespace.database, name)
            .and_then(|()| namespace::check_creation(namespace));
        if let Err(error) = allowed {
            return illegal(format!("error with {role} namespace: {}", error.message));
        }
    }
    Ok(())
}
