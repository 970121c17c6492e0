//! A pipeline that ends in `$out` or `$merge`: its documents go into a collection, and the client
//! gets none. They are written when the first batch is asked for.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{Collection, DocumentValidation, Engine, Namespace};
use windrow_document::object_id::ObjectIdSource;
use windrow_document::{Document, DocumentBuf};
use windrow_mql::filter::Environment;
use windrow_query::Cursor;
use windrow_query::aggregate::output::{Output, OutputKind};
use windrow_wire::{CommandError, ErrorCode};

use super::merging::{Merging, Prepared};
use super::replacing::Replacing;
use crate::commands::insert::prepare;
use crate::context::Context;
use crate::cursors::{BatchSource, SourceBatch};
use crate::errors::{IntoCommandError, OrCommandError};
use crate::log::Log;
use crate::namespace;
use crate::operations::Operation;
use crate::random;
use crate::views;

/// Documents wait to be merged until they have so many bytes, or are so many.
const WAITING_BYTES: usize = 16 << 20;
const WAITING_MAX: usize = 10_000;

/// The documents to come, and what is done with them.
pub struct Writing {
    cursor: Cursor,
    /// Whether the write concern wants them on the disk.
    synced: bool,
    target: Target,
    way: Way,
}

enum Way {
    Merge(Box<Merging>),
    Out,
}

/// A collection that is written to, with what writing needs after the command has ended.
pub struct Target {
    pub engine: Arc<Engine>,
    pub namespace: Namespace,
    pub log: Arc<Log>,
    pub validation: DocumentValidation,
    ids: ObjectIdSource,
}

impl Writing {
    pub fn new(
        context: &Context<'_>,
        own: &Namespace,
        output: &Output,
        environment: &Environment,
        validation: DocumentValidation,
        cursor: Cursor,
    ) -> Result<Writing, CommandError> {
        let target = Target::new(context, own, output, validation)?;
        let way = match &output.kind {
            OutputKind::Out => Way::Out,
            OutputKind::Merge(merge) => {
                Way::Merge(Box::new(Merging::new(&target, merge, environment)?))
            }
        };
        Ok(Writing {
            cursor,
            synced: context.generic.write_concern.synced,
            target,
            way,
        })
    }
}

impl BatchSource for Writing {
    fn next_batch(
        &mut self,
        operation: &Operation,
        _: usize,
        _: usize,
    ) -> Result<SourceBatch, CommandError> {
        match &self.way {
            Way::Merge(merging) => {
                // What is wrong with a document is known before those in front of it are written.
                let (mut waiting, mut bytes) = (Vec::new(), 0);
                while let Some(content) = self.cursor.next(operation).or_command_error()? {
                    let prepared = merging.prepare(&self.target, content.as_document())?;
                    bytes += prepared.bytes();
                    waiting.push(prepared);
                    if bytes >= WAITING_BYTES || waiting.len() >= WAITING_MAX {
                        merge_all(merging, &self.target, &mut waiting, operation)?;
                        bytes = 0;
                    }
                }
                merge_all(merging, &self.target, &mut waiting, operation)?;
            }
            Way::Out => {
                let mut replacing = Replacing::begin(&self.target, operation)?;
                while let Some(content) = self.cursor.next(operation).or_command_error()? {
                    operation.check()?;
                    replacing.add(content.as_document())?;
                }
                replacing.finish()?;
            }
        }
        if self.synced {
            operation.wait_on_purpose();
            self.target.engine.sync().or_command_error()?;
        }
        Ok(SourceBatch {
            finished: true,
            ..SourceBatch::default()
        })
    }
}

fn merge_all(
    merging: &Merging,
    target: &Target,
    waiting: &mut Vec<Prepared>,
    operation: &Operation,
) -> Result<(), CommandError> {
    for prepared in waiting.drain(..) {
        operation.check()?;
        merging.merge(target, &prepared, operation)?;
    }
    Ok(())
}

impl Target {
    fn new(
        context: &Context<'_>,
        own: &Namespace,
        output: &Output,
        validation: DocumentValidation,
    ) -> Result<Target, CommandError> {
        let database = output.target.database.as_ref().unwrap_or(&own.database);
        let namespace = Namespace {
            database: database.clone(),
            collection: output.target.collection.clone(),
        };
        check_target(&namespace, &output.kind)?;
        views::refuse(context, &namespace)?;
        Ok(Target {
            engine: context.state.services.engine.clone(),
            namespace,
            log: context.state.services.log.clone(),
            validation,
            ids: ObjectIdSource::new(random::bits()),
        })
    }

    /// The document as it is stored: with its `_id` in front.
    pub fn storable(&self, document: Document<'_>) -> Result<DocumentBuf, CommandError> {
        let changed = prepare::examine(document, &self.ids)?;
        Ok(changed.unwrap_or_else(|| document.to_buf()))
    }

    /// Inserts documents that are ready to be stored, one behind the other in the buffer.
    pub fn insert(&self, collection: &Collection, documents: Vec<u8>) -> Result<(), CommandError> {
        let inserted = collection
            .insert_checked(Bytes::from(documents), true, self.validation)
            .or_command_error()?;
        match inserted.errors.into_iter().next() {
            Some((_, error)) => Err(error.into_command_error()),
            None => Ok(()),
        }
    }
}

/// Databases of the server's own.
const INTERNAL: [&str; 3] = ["admin", "config", "local"];

/// Collections of clients alone are written to. 17385, 31319: system collections; 31321, 31320: the
/// server's databases; 73 for names that no collection has.
fn check_target(namespace: &Namespace, kind: &OutputKind) -> Result<(), CommandError> {
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
    if INTERNAL.contains(&namespace.database.as_str()) {
        return refuse(internal, "internal database");
    }
    namespace::check_database(&namespace.database)?;
    namespace::check_collection(&namespace.database, &namespace.collection)?;
    namespace::check_creation(namespace)
}
