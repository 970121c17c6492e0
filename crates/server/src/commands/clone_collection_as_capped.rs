//! `cloneCollectionAsCapped`: copies the newest documents of a collection into a new capped one.
//!
//! The copy is filled under a temporary name, and renamed in one step when it is complete. After a
//! crash it exists completely or not at all.

use std::sync::Arc;

use bytes::Bytes;
use windrow_access::Action;
use windrow_collection::{Collection, Engine, InsertOrder, Namespace, Renaming, WriteOptions};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::convert_to_capped;
use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::audit::Creation;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::queryable_encryption::check_capping;
use crate::{namespace, random, views};

pub const CLONE_COLLECTION_AS_CAPPED: Command = Command {
    name: "cloneCollectionAsCapped",
    help: "copies a collection into a new capped collection",
    needs: Needs::Computed(requirement),
    write_concern: true,
    arguments: AcceptedArguments::Only(&["size", "toCollection"]),
    run,
    ..Command::EMPTY
};

/// Returns the requirement: the command reads one collection and creates another.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let created = [Action::insert, Action::createIndex, Action::convertToCapped];
    let target = match request.string("toCollection") {
        Some(name) => request.on_named(name, &created),
        None => request.on_database(&created),
    };
    request.on_collection(&[Action::find]).and(target)
}

/// The name prefix of collections that are being filled.
const PREFIX: &str = "tmp.cloneCollectionAsCapped.";

/// Documents are inserted in batches of this many bytes.
const CHUNK_BYTES: usize = 4 << 20;

/// A parsed request.
struct CappedCopyRequest {
    source: Namespace,
    target: Namespace,
    /// The size of the new collection.
    bytes: u64,
}

impl CappedCopyRequest {
    fn parse(request: &Request) -> Result<CappedCopyRequest, CommandError> {
        let arguments = Arguments::new(request);
        Ok(CappedCopyRequest {
            source: named(request, &arguments, request.command())?,
            target: named(request, &arguments, "toCollection")?,
            bytes: convert_to_capped::size(&arguments)?,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let CappedCopyRequest {
        source,
        target,
        bytes,
    } = CappedCopyRequest::parse(request)?;
    context.operation.set_namespace(&source.to_string());
    let missing = || format!("source collection {source} does not exist");
    let from = views::collection(context, &source, missing)?;
    check_capping(&from)?;
    views::refuse_view(context, &target)?;
    namespace::check_creation(&target)?;
    let engine = &context.state.services.engine;
    check_free(engine, &target)?;
    let creation = Creation::begin(context.trail(), engine, &target);
    let copy = CappedCopy::begin(engine, &target, bytes)?;
    copy.fill(&from, bytes, context)?;
    copy.finish(&target)?;
    if let Some(creation) = creation {
        creation.record();
    }
    Ok(Reply::ok(DocumentBuf::new()))
}

/// Returns the namespace in an argument.
fn named(
    request: &Request,
    arguments: &Arguments<'_>,
    argument: &str,
) -> Result<Namespace, CommandError> {
    let Some(ValueRef::String(name)) = arguments.get(argument) else {
        let message = format!("'{argument}' must be of type String");
        return Err(CommandError::new(ErrorCode::TypeMismatch, message));
    };
    namespace::check_collection(request.database(), name)?;
    namespace::check_no_dollar(name)?;
    Ok(namespace::new(request.database(), name))
}

fn check_free(engine: &Engine, target: &Namespace) -> Result<(), CommandError> {
    match engine.collection(target) {
        Some(_) => {
            let message = format!("target collection {target} already exists");
            Err(CommandError::new(ErrorCode::NamespaceExists, message))
        }
        None => Ok(()),
    }
}

/// A copy that is being filled. It is dropped unless it is finished.
struct CappedCopy {
    engine: Arc<Engine>,
    collection: Arc<Collection>,
    is_done: bool,
}

impl CappedCopy {
    fn begin(
        engine: &Arc<Engine>,
        target: &Namespace,
        bytes: u64,
    ) -> Result<CappedCopy, CommandError> {
        let temporary = Namespace {
            database: target.database.clone(),
            collection: format!("{PREFIX}{:016x}", random::bits()),
        };
        let options = doc! { "capped": true, "size": (bytes as i64), "temp": true };
        let collection = engine.create(&temporary, options.as_document());
        Ok(CappedCopy {
            engine: engine.clone(),
            collection: collection.or_command_error()?,
            is_done: false,
        })
    }

    /// Copies the documents in order. New documents push out the oldest ones, so the newest remain.
    fn fill(
        &self,
        from: &Collection,
        bytes: u64,
        context: &Context<'_>,
    ) -> Result<(), CommandError> {
        let reader = from.reader().or_command_error()?;
        let mut documents = reader.range(None, None).or_command_error()?;
        let mut waiting = Vec::new();
        while documents.next().or_command_error()? {
            let document = documents.document();
            // A document that is larger than the collection would not remain.
            if document.len() as u64 > bytes {
                continue;
            }
            waiting.extend_from_slice(document);
            if waiting.len() >= CHUNK_BYTES {
                self.insert(std::mem::take(&mut waiting), context)?;
            }
        }
        self.insert(waiting, context)
    }

    fn insert(&self, documents: Vec<u8>, context: &Context<'_>) -> Result<(), CommandError> {
        context.check()?;
        if documents.is_empty() {
            return Ok(());
        }
        let write_options = WriteOptions {
            wait_control: context.operation,
            ..WriteOptions::default()
        };
        let inserted = self.collection.insert_with(
            Bytes::from(documents),
            InsertOrder::Ordered,
            &write_options,
        );
        let inserted = inserted.or_command_error()?;
        inserted.check_all_inserted().or_command_error()
    }

    fn finish(mut self, target: &Namespace) -> Result<(), CommandError> {
        let temporary = self.collection.namespace();
        let renamed = self.engine.rename(&temporary, target, &Renaming::default());
        renamed.or_command_error()?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for CappedCopy {
    fn drop(&mut self) {
        if !self.is_done {
            // A collection that cannot be dropped now is dropped at the next start.
            drop(self.engine.drop_collection(&self.collection.namespace()));
        }
    }
}
