//! `create` with `viewOn`: creates a view.

use windrow_collection::{Namespace, View};
use windrow_document::{Array, DocumentBuf, Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply};

use super::{bad_value, cap, present, read_collation, same_options};
use crate::arguments::Arguments;
use crate::audit::Creation;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, views};

/// MongoDB's error code without a name.
const IS_A_COLLECTION: ErrorCode = ErrorCode(17_399);

/// Returns the view of the command. `None` if the command creates a collection.
pub fn parse(arguments: &Arguments<'_>) -> Result<Option<View>, CommandError> {
    let pipeline = pipeline(arguments)?;
    let Some(on) = arguments.string("viewOn")? else {
        return match pipeline {
            Some(stages) if !stages.is_empty() => {
                let message = "'pipeline' requires 'viewOn' to also be specified";
                Err(CommandError::new(ErrorCode::InvalidOptions, message))
            }
            _ => Ok(None),
        };
    };
    if on.is_empty() {
        return Err(bad_value("'viewOn' cannot be empty".to_owned()));
    }
    check_other_options(arguments)?;
    Ok(Some(View {
        on: on.to_owned(),
        pipeline: pipeline.unwrap_or(Array::EMPTY).to_buf(),
        collation: read_collation(arguments)?,
    }))
}

/// Returns the argument `pipeline` of `create` and `collMod`.
pub fn pipeline<'a>(arguments: &Arguments<'a>) -> Result<Option<Array<'a>>, CommandError> {
    let Some(stages) = arguments.array("pipeline")? else {
        return Ok(None);
    };
    let is_stage = |stage: ValueRef<'_>| stage.type_of() == Type::Document;
    if stages.iter().all(is_stage) {
        Ok(Some(stages))
    } else {
        Err(CommandError::new(
            ErrorCode::TypeMismatch,
            "Each element of the 'pipeline' array must be an object",
        ))
    }
}

/// MongoDB's error code for views with encrypted fields.
const ENCRYPTED_VIEW: ErrorCode = ErrorCode(6_346_401);

/// Fails if the options contain one that views do not support.
fn check_other_options(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    let refuse = |name: &str| {
        let message = format!("'{name}' is not allowed with 'viewOn'");
        Err(CommandError::new(ErrorCode::InvalidOptions, message))
    };
    if present(arguments, "idIndex") {
        return refuse("idIndex");
    }
    if present(arguments, "encryptedFields") {
        let message = "Encrypted fields cannot be used with views or timeseries collections";
        return Err(CommandError::new(ENCRYPTED_VIEW, message));
    }
    super::clustered::refuse_of_view(arguments)?;
    // These options have no effect on a view, but must be valid.
    cap(arguments)?;
    for name in ["timeseries", "expireAfterSeconds", super::IMAGES] {
        if present(arguments, name) {
            return refuse(name);
        }
    }
    Ok(())
}

/// Creates the view, unless it exists with the same definition.
pub fn create(
    context: &Context<'_>,
    namespace: &Namespace,
    view: &View,
) -> Result<Reply, CommandError> {
    if context.transaction().is_some() {
        let message = "Cannot create a view in a multi-document transaction.";
        let code = ErrorCode::OperationNotSupportedInTransaction;
        return Err(CommandError::new(code, message));
    }
    if namespace.collection.starts_with("system.") {
        let message = format!("a view cannot have the name of a system collection: {namespace}");
        return Err(CommandError::new(ErrorCode::InvalidNamespace, message));
    }
    namespace::check_creation(namespace)?;
    namespace::check_collection(&namespace.database, &view.on)?;
    let engine = &context.state.services.engine;
    if engine.collection(namespace).is_some() {
        let message = format!("a collection already exists: {namespace}");
        return Err(CommandError::new(IS_A_COLLECTION, message));
    }
    let existing = engine.view(namespace).or_command_error()?;
    if existing.is_some_and(|known| same_options(&known.options(), &view.options())) {
        return Ok(Reply::ok(DocumentBuf::new()));
    }
    views::check(engine, namespace, view)?;
    let creation = Creation::begin(context.trail(), engine, namespace);
    engine.create_view(namespace, view).or_command_error()?;
    if let Some(creation) = creation {
        creation.record_view(view);
    }
    Ok(Reply::ok(DocumentBuf::new()))
}
