//! Checks validators, and the options about them. The collection evaluates them.

use windrow_collection::Namespace;
use windrow_document::{Document, ValueRef};
use windrow_mql::filter::{Environment, Filter};
use windrow_wire::{CommandError, ErrorCode};

use crate::errors::OrCommandError;
use crate::namespace::is_internal_database;

/// Operators that need an index, a sort order or JavaScript.
const NOT_IN_VALIDATORS: &[&str] = &["$geoNear", "$near", "$nearSphere", "$text", "$where"];

/// Fails if a collection cannot have this validator.
pub fn check(namespace: &Namespace, validator: Document<'_>) -> Result<(), CommandError> {
    if validator.is_empty() {
        return Ok(());
    }
    let is_internal = is_internal_database(&namespace.database);
    if is_internal || namespace.collection.starts_with("system.") {
        let message = format!("Document validators are not allowed on collection {namespace}");
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    check_operators(validator)?;
    parse(validator).map(drop)
}

fn parse(validator: Document<'_>) -> Result<Filter, CommandError> {
    // An expression that always fails refuses every document. The client learns this when it writes
    // one.
    let environment = Environment {
        constants_may_fail: true,
        ..Environment::default()
    };
    Filter::parse_with(validator, &environment).or_command_error()
}

/// Fails if a validator that requires encrypted values would let others pass: these would be stored
/// and logged. `options` are those of the collection.
pub fn check_encryption(options: Document<'_>) -> Result<(), CommandError> {
    let text = |name| options.get(name).and_then(ValueRef::as_str);
    let lets_pass =
        text("validationAction") == Some("warn") || text("validationLevel") == Some("moderate");
    let validator = options.get("validator").and_then(ValueRef::as_document);
    let Some(validator) = validator.filter(|_| lets_pass) else {
        return Ok(());
    };
    if !parse(validator)?.has_encryption() {
        return Ok(());
    }
    let message = "Encryption-related validator keywords are not allowed in this context";
    Err(CommandError::new(
        ErrorCode::QueryFeatureNotAllowed,
        message,
    ))
}

fn check_operators(query: Document<'_>) -> Result<(), CommandError> {
    for (name, value) in query {
        if NOT_IN_VALIDATORS.contains(&name) {
            let message = format!("{name} is not allowed in a validator");
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        match value {
            ValueRef::Document(inner) if name != "$jsonSchema" => check_operators(inner)?,
            ValueRef::Array(list) if matches!(name, "$and" | "$or" | "$nor") => list
                .iter()
                .filter_map(ValueRef::as_document)
                .try_for_each(check_operators)?,
            _ => {}
        }
    }
    Ok(())
}
