//! `validate`: proves that every index says what its collection says.

use windrow_collection::{IndexReport, Validation};
use windrow_document::{DocumentBuf, Value, doc};
use windrow_wire::{CommandError, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, views};

pub const VALIDATE: Command = Command {
    name: "validate",
    help: "compares a collection with its indexes; full: true reads the documents' bytes too",
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::named(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let full = Arguments::new(request).flag("full")?;
    let missing = || format!("Collection '{namespace}' does not exist to validate.");
    let collection = views::collection(context, &namespace, missing)?;
    let validation = collection.validate(full).or_command_error()?;
    Ok(Reply::ok(describe(&validation, &namespace.to_string())))
}

fn describe(validation: &Validation, namespace: &str) -> DocumentBuf {
    let (mut keys, mut details) = (DocumentBuf::new(), DocumentBuf::new());
    for index in &validation.indexes {
        keys.push(&index.name, index.keys as i64);
        details.push(&index.name, detail(index));
    }
    let of_indexes = validation.indexes.iter().flat_map(|index| &index.errors);
    let errors: Vec<String> = validation
        .errors
        .iter()
        .chain(of_indexes)
        .cloned()
        .collect();
    let none = || Value::Array(windrow_document::array![]);
    doc! {
        "nInvalidDocuments": (validation.errors.len() as i64),
        "nrecords": (validation.documents as i64),
        "nIndexes": (validation.indexes.len() as i32),
        "keysPerIndex": keys,
        "indexDetails": details,
        "ns": namespace,
        "valid": (validation.is_valid()),
        "warnings": (none()),
        "errors": errors,
        "extraIndexEntries": (none()),
        "missingIndexEntries": (none()),
        "corruptRecords": (none()),
    }
}

fn detail(index: &IndexReport) -> DocumentBuf {
    let mut detail = doc! { "valid": (index.errors.is_empty()) };
    if !index.errors.is_empty() {
        detail.push("errors", index.errors.clone());
    }
    detail
}
