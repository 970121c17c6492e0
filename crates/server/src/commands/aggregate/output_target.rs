//! The target collection of `$out` and `$merge`.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    Collection, DocumentValidation, Engine, InsertOrder, Namespace, WriteOptions,
};
use windrow_document::object_id::ObjectIdSource;
use windrow_document::{Document, DocumentBuf};
use windrow_query::aggregate::output::{Output, OutputKind};
use windrow_wire::{CommandError, ErrorCode};

use crate::audit::AuditTrail;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::log::Log;
use crate::operations::Operation;
use crate::{insert_preparation, namespace, random, views};

/// A collection to write to, with everything that a write after the end of the command needs.
pub struct OutputTarget {
    pub engine: Arc<Engine>,
    pub namespace: Namespace,
    pub log: Arc<Log>,
    pub validation: DocumentValidation,
    /// The audit log for the client, if there is one.
    pub trail: Option<AuditTrail>,
    ids: ObjectIdSource,
}

impl OutputTarget {
    pub fn new(
        context: &Context<'_>,
        own: &Namespace,
        output: &Output,
        validation: DocumentValidation,
    ) -> Result<OutputTarget, CommandError> {
        let database = output.target.database.as_ref().unwrap_or(&own.database);
        let namespace = Namespace {
            database: database.clone(),
            collection: output.target.collection.clone(),
        };
        check_output(&namespace, &output.kind)?;
        views::refuse_view(context, &namespace)?;
        Ok(OutputTarget {
            engine: context.state.services.engine.clone(),
            namespace,
            log: context.state.services.log.clone(),
            trail: context.trail(),
            validation,
            ids: ObjectIdSource::new(random::bits()),
        })
    }

    /// Returns the document as it is stored, with its `_id` first.
    pub fn prepare(&self, document: Document<'_>) -> Result<DocumentBuf, CommandError> {
        let changed = insert_preparation::examine(document, &self.ids, false)?;
        Ok(changed.unwrap_or_else(|| document.to_buf()))
    }

    /// Inserts documents that can be stored. They follow each other in the buffer.
    pub fn insert(
        &self,
        collection: &Collection,
        documents: Vec<u8>,
        operation: &Operation,
    ) -> Result<(), CommandError> {
        let write_options = WriteOptions {
            validation: self.validation,
            wait_control: operation,
            ..WriteOptions::default()
        };
        let inserted = collection
            .insert_with(Bytes::from(documents), InsertOrder::Ordered, &write_options)
            .or_command_error()?;
        inserted.check_all_inserted().or_command_error()
    }
}

/// Checks the name of the target.
///
/// # Errors
///
/// - 17385, 31319: a system collection.
/// - 31321, 31320: an internal database.
/// - 73: an invalid name.
fn check_output(namespace: &Namespace, kind: &OutputKind) -> Result<(), CommandError> {
    let (name, special, internal) = match kind {
        OutputKind::Out => ("$out", 17_385, 31_321),
        OutputKind::Merge(_) => ("$merge", 31_319, 31_320),
    };
    let refuse = |code, what: &str| {
        let message = format!("Can't {name} to {what}: {namespace}");
        Err(CommandError::new(ErrorCode(code), message))
    };
    if namespace.collection.starts_with("system.") {
        return refuse(special, "special collection");
    }
    if namespace::is_internal_database(&namespace.database) {
        return refuse(internal, "internal database");
    }
    namespace::check_database(&namespace.database)?;
    namespace::check_collection(&namespace.database, &namespace.collection)?;
    namespace::check_creation(namespace)
}
