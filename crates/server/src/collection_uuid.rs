//! `collectionUUID`: the UUID that a command expects of the collection that it names.

use std::sync::Arc;

use windrow_collection::{Collection, CollectionUuid, Engine, Error as CollectionError, Namespace};
use windrow_document::{Document, Value, ValueRef, format_uuid};
use windrow_query::Source;
use windrow_wire::{CommandError, ErrorCode, Request};

use crate::arguments::{Arguments, uuid_of};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::namespace;
use crate::queries;

/// The name of the argument.
pub const COLLECTION_UUID: &str = "collectionUUID";

/// The collection that a command names, and the UUID that it expects.
#[derive(Clone, Debug)]
pub struct Target {
    pub namespace: Namespace,
    /// `None` if the command expects none.
    expected: Option<CollectionUuid>,
}

impl Target {
    /// Returns the target of a command with these arguments.
    pub fn from_arguments(
        namespace: Namespace,
        arguments: &Arguments<'_>,
    ) -> Result<Target, CommandError> {
        Target::named(namespace).with_expected_uuid(arguments)
    }

    /// Returns the collection with this UUID.
    pub fn with_uuid(namespace: &Namespace, uuid: CollectionUuid) -> Target {
        Target {
            namespace: namespace.clone(),
            expected: Some(uuid),
        }
    }

    /// Returns the collection that the first field of a reading command names, by its name or its
    /// UUID. `code` is the error for other values.
    pub fn from_name_or_uuid(
        context: &Context<'_>,
        database: &str,
        command: Document<'_>,
        code: ErrorCode,
    ) -> Result<Target, CommandError> {
        let Some((_, ValueRef::Binary { subtype: 4, bytes })) = command.first() else {
            return namespace::without_dollar(database, command, code).map(Target::named);
        };
        let uuid = CollectionUuid(uuid_of(bytes)?);
        let all = context.state.services.engine.collections(database);
        let found = all.iter().find(|one| one.uuid() == uuid);
        let found = found.map(|one| Target::with_uuid(&Collection::namespace(one), uuid));
        found.ok_or_else(|| {
            let message = format!("Unable to resolve {}", format_uuid(uuid.0));
            CommandError::new(ErrorCode::NamespaceNotFound, message)
        })
    }

    /// Returns the same target with the UUID that the arguments expect.
    pub fn with_expected_uuid(self, arguments: &Arguments<'_>) -> Result<Target, CommandError> {
        let expected = arguments.uuid(COLLECTION_UUID)?;
        let expected = expected.map(CollectionUuid).or(self.expected);
        Ok(Target { expected, ..self })
    }

    /// Returns any collection with this name.
    pub fn named(namespace: Namespace) -> Target {
        Target {
            namespace,
            expected: None,
        }
    }

    /// Returns the UUID that the command expects, if any.
    pub fn uuid(&self) -> Option<CollectionUuid> {
        self.expected
    }

    /// Returns the collection with this name. Fails with CollectionUUIDMismatch if its UUID
    /// differs, if it is a view, or if it does not exist. The error contains the name of the
    /// collection that has the UUID.
    pub fn collection(
        &self,
        context: &Context<'_>,
    ) -> Result<Option<Arc<Collection>>, CommandError> {
        let found = context.collection(&self.namespace)?;
        self.check_found(context, found.as_deref().map(Collection::uuid))?;
        Ok(found)
    }

    /// Returns the collection, as [`collection`](Self::collection) does. Creates the collection if
    /// there is none and the command expects no UUID.
    pub fn collection_or_create(
        &self,
        context: &Context<'_>,
    ) -> Result<Arc<Collection>, CommandError> {
        match self.collection(context)? {
            Some(collection) => Ok(collection),
            None => context
                .collection_or_create(&self.namespace)
                .or_command_error(),
        }
    }

    /// Returns the source of a command that only reads. Fails as [`collection`](Self::collection)
    /// does.
    pub fn source(&self, context: &Context<'_>) -> Result<Arc<dyn Source>, CommandError> {
        let source = queries::source(context, &self.namespace)?;
        self.check_found(context, source.uuid())?;
        Ok(source)
    }

    /// Fails if the collection with the name has another UUID than the command expects.
    pub fn check_found(
        &self,
        context: &Context<'_>,
        found: Option<CollectionUuid>,
    ) -> Result<(), CommandError> {
        match self.expected {
            Some(expected) if found != Some(expected) => {
                let engine = &context.state.services.engine;
                let now = engine.collection(&self.namespace);
                let had_another_name = now.is_some_and(|it| it.uuid() == expected);
                if had_another_name && context.snapshot.is_some() {
                    let name = self.namespace.to_string();
                    Err(CollectionError::CollectionChanged(name)).or_command_error()
                } else {
                    Err(mismatch(engine, &self.namespace, expected))
                }
            }
            _ => Ok(()),
        }
    }
}

/// Returns the source of a reading command whose first field is its name. Its use is recorded.
pub fn source_of_named_collection(
    request: &Request,
    context: &Context<'_>,
) -> Result<Arc<dyn Source>, CommandError> {
    let (database, body) = (request.database(), request.body());
    let target = Target::from_name_or_uuid(context, database, body, ErrorCode::InvalidNamespace)?;
    context
        .operation
        .set_namespace(&target.namespace.to_string());
    target.source(context)
}

fn mismatch(engine: &Engine, namespace: &Namespace, expected: CollectionUuid) -> CommandError {
    let all = engine.collections(&namespace.database);
    let actual = all.iter().find(|one| one.uuid() == expected);
    let actual = actual.map(|one| Collection::namespace(one).collection.clone());
    let message = "Collection UUID does not match that specified";
    CommandError::new(ErrorCode::CollectionUUIDMismatch, message)
        .with("db", namespace.database.as_str())
        .with(COLLECTION_UUID, expected.to_value())
        .with("expectedCollection", namespace.collection.as_str())
        .with("actualCollection", actual.map_or(Value::Null, Value::from))
}
