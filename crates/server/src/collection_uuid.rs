//! `collectionUUID`: which collection a command expects to have the name that it gives.

use std::sync::Arc;

use windrow_collection::{Collection, Engine, Namespace};
use windrow_document::Value;
use windrow_query::Source;
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::queries;

/// The argument's name.
pub const COLLECTION_UUID: &str = "collectionUUID";

/// The collection that a command names, and which one that has to be.
#[derive(Clone, Debug)]
pub struct Target {
    pub namespace: Namespace,
    /// None where nothing is expected.
    expected: Option<[u8; 16]>,
}

impl Target {
    /// Of what the arguments of a command say.
    pub fn of(namespace: Namespace, arguments: &Arguments<'_>) -> Result<Target, CommandError> {
        let expected = arguments.uuid(COLLECTION_UUID)?;
        Ok(Target {
            namespace,
            expected,
        })
    }

    /// The collection of a UUID.
    pub fn known(namespace: &Namespace, uuid: [u8; 16]) -> Target {
        Target {
            namespace: namespace.clone(),
            expected: Some(uuid),
        }
    }

    /// Any collection of that name.
    pub fn any(namespace: Namespace) -> Target {
        Target {
            namespace,
            expected: None,
        }
    }

    /// The UUID that the command expects, if any.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        self.expected
    }

    /// The collection of that name. Fails where it is another one than is expected, is a view, or is not
    /// there: CollectionUUIDMismatch, which says which collection of the database has the UUID.
    pub fn collection(
        &self,
        context: &Context<'_>,
    ) -> Result<Option<Arc<Collection>>, CommandError> {
        let found = context.collection(&self.namespace)?;
        self.check_found(context, found.as_deref().map(Collection::uuid))?;
        Ok(found)
    }

    /// The same, created where there is none and any will do.
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

    /// What a command reads that only reads. Fails as [`collection`](Self::collection) does.
    pub fn source(&self, context: &Context<'_>) -> Result<Arc<dyn Source>, CommandError> {
        let source = queries::source(context, &self.namespace)?;
        self.check_found(context, source.uuid())?;
        Ok(source)
    }

    fn check_found(
        &self,
        context: &Context<'_>,
        found: Option<[u8; 16]>,
    ) -> Result<(), CommandError> {
        match self.expected {
            Some(expected) if found != Some(expected) => {
                let engine = &context.state.services.engine;
                Err(mismatch(engine, &self.namespace, expected))
            }
            _ => Ok(()),
        }
    }
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
