//! Reads and changes the state collections of a command.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    Collection, Error as CollectionError, InsertOrder, Namespace, Reader, WriteOptions,
};
use windrow_document::{Document, DocumentBuf};
use windrow_queryable_encryption::compaction::record;
use windrow_queryable_encryption::counter::{Counter, StateId};
use windrow_queryable_encryption::{Error as EncryptionError, InsertPayload};
use windrow_wire::{CommandError, ErrorCode};

use super::collections::EncryptedCollection;
use crate::context::Context;
use crate::errors::{IntoCommandError, OrCommandError, refuse};

/// The error of a look-up.
pub struct LookupError(pub CommandError);

impl From<EncryptionError> for LookupError {
    fn from(error: EncryptionError) -> LookupError {
        LookupError(error.into_command_error())
    }
}

/// A state collection as the command sees it.
pub struct StateReader<'c> {
    context: &'c Context<'c>,
    /// `None` if the collection does not exist.
    reader: Option<Reader>,
}

impl<'c> StateReader<'c> {
    pub fn open(
        context: &'c Context<'c>,
        namespace: &Namespace,
    ) -> Result<StateReader<'c>, CommandError> {
        let collection = context.collection(namespace)?;
        let reader = collection.map(|it| reader_of(context, &it)).transpose()?;
        Ok(StateReader { context, reader })
    }

    /// Returns the document with this id.
    pub fn look_up(&self, id: StateId) -> Result<Option<DocumentBuf>, LookupError> {
        self.context.check().map_err(LookupError)?;
        let Some(reader) = &self.reader else {
            return Ok(None);
        };
        let found = reader.find(id.to_value().as_ref()).or_command_error();
        let found = found.map_err(LookupError)?;
        Ok(found.map(|(_, bytes)| Document::from_validated(&bytes).to_buf()))
    }
}

/// Returns a reader of a collection as the command sees it.
pub fn reader_of(context: &Context<'_>, collection: &Collection) -> Result<Reader, CommandError> {
    let reader = match (context.transaction(), context.snapshot) {
        (Some(transaction), _) => transaction.reader(collection),
        (None, Some(snapshot)) => snapshot.reader(collection),
        (None, None) => collection.reader(),
    };
    reader.or_command_error()
}

/// A payload in a document, with the dotted path of its field.
pub struct FoundPayload {
    pub path: String,
    pub payload: InsertPayload,
}

/// Counts the insertion of values, in a transaction. Returns the new counts of each payload.
pub fn count_insertions(
    context: &Context<'_>,
    target: &EncryptedCollection,
    found: &[FoundPayload],
) -> Result<Vec<Vec<u64>>, CommandError> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let reader = StateReader::open(context, &target.state)?;
    let (mut all, mut ids) = (Vec::new(), BTreeSet::new());
    let (mut counted, mut records) = (Vec::new(), Vec::new());
    for FoundPayload { path, payload } in found {
        let mut counts = Vec::new();
        for entry in &payload.entries {
            let counter = Counter::from_insertion(entry);
            let state = counter.find(&mut |id| reader.look_up(id));
            let count = state.map_err(|error| error.0)?.count.saturating_add(1);
            // Two entries of one command that share a counter would wait for each other for ever.
            if !ids.insert(counter.insertion_id(count)) {
                let message = "two encrypted values of a document have the same token";
                return refuse(ErrorCode::BadValue, message);
            }
            counts.push(count);
            counted.push(counter.insertion(count));
            records.push(record(context.state.object_ids.next_now(), path, entry));
        }
        all.push(counts);
    }
    insert_all(context, &target.state, &counted)?;
    insert_all(context, &target.compaction, &records)?;
    Ok(all)
}

/// Inserts documents into a state collection, in a transaction.
pub fn insert_all(
    context: &Context<'_>,
    namespace: &Namespace,
    documents: &[DocumentBuf],
) -> Result<(), CommandError> {
    let collection = context.collection_or_create(namespace).or_command_error()?;
    let bytes: Vec<&[u8]> = documents.iter().map(DocumentBuf::as_bytes).collect();
    let inserted = collection.insert_with(
        Bytes::from(bytes.concat()),
        InsertOrder::Ordered,
        &write_options(context),
    );
    let inserted = inserted.or_command_error()?;
    inserted.check_all_inserted().map_err(as_conflict)
}

/// Returns the options of writes to state collections.
pub fn write_options<'t>(context: &Context<'t>) -> WriteOptions<'t> {
    WriteOptions {
        transaction: context.transaction().map(Arc::as_ref),
        wait_control: context.operation,
        ..WriteOptions::default()
    }
}

/// Makes a write conflict of a duplicate key: another transaction has counted the same value in
/// between. A new attempt of the client sees its count.
fn as_conflict(error: CollectionError) -> CommandError {
    match error {
        CollectionError::DuplicateKey(_) => CommandError::new(
            ErrorCode::WriteConflict,
            "another transaction has inserted an equal encrypted value",
        ),
        other => other.into_command_error(),
    }
}
