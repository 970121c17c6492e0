//! `collectionUUID`: which collection a command expects to have the name that it gives.

use windrow_collection::{Collection, Engine, Namespace};
use windrow_document::Value;
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;
use crate::context::Context;

/// The argument's name.
pub const COLLECTION_UUID: &str = "collectionUUID";

/// A UUID that a collection is expected to have.
pub type Expected = Option<[u8; 16]>;

/// What a command expects; None where it expects nothing.
pub fn expected(arguments: &Arguments<'_>) -> Result<Expected, CommandError> {
    arguments.uuid(COLLECTION_UUID)
}

/// Fails where the collection of that name is another one than a command expects, is a view, or is not
/// there: CollectionUUIDMismatch, which says which collection of the database has the UUID.
pub fn check(
    context: &Context<'_>,
    namespace: &Namespace,
    expected: Expected,
) -> Result<(), CommandError> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let engine = &context.state.services.engine;
    match engine.collection(namespace) {
        Some(there) if there.uuid() == expected => Ok(()),
        _ => Err(mismatch(engine, namespace, expected)),
    }
}

/// [`check`] of what the arguments of a command say.
pub fn check_argument(
    context: &Context<'_>,
    namespace: &Namespace,
    arguments: &Arguments<'_>,
) -> Result<(), CommandError> {
    check(context, namespace, expected(arguments)?)
}

fn mismatch(engine: &Engine, namespace: &Namespace, expected: [u8; 16]) -> CommandError {
    let all = engine.collections(&namespace.database);
    let actual = all.iter().find(|one| one.uuid() == expected);
    let actual = actual.map(|one| Collection::namespace(one).collection.clone());
    let expected = Value::Binary {
        subtype: 4,
        bytes: expected.to_vec(),
    };
    let message = "Collection UUID does not match that specified";
    CommandError::new(ErrorCode::CollectionUUIDMismatch, message)
        .with("db", namespace.database.as_str())
        .with(COLLECTION_UUID, expected)
        .with("expectedCollection", namespace.collection.as_str())
        .with("actualCollection", actual.map_or(Value::Null, Value::from))
}
