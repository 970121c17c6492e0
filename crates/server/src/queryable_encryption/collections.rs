//! The collections of a command on encrypted fields, and the rules for their options and indexes.

use std::sync::Arc;

use windrow_collection::{Collection, Namespace};
use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_queryable_encryption::EncryptedFields;
use windrow_queryable_encryption::fields::{
    compaction_collection_of, paths_overlap, state_collection_of,
};
use windrow_wire::{CommandError, ErrorCode, Request};

use crate::arguments::Arguments;
use crate::command::ENCRYPTION_INFORMATION;
use crate::context::Context;
use crate::errors::{IntoCommandError, OrCommandError, refuse};
use crate::{namespace, views};

/// The option of a collection.
const ENCRYPTED_FIELDS: &str = "encryptedFields";

/// MongoDB's error codes.
const NO_SCHEMA: ErrorCode = ErrorCode(6_371_205);
const NO_STATE_COLLECTION: ErrorCode = ErrorCode(6_371_207);
const NO_COMPACTION_COLLECTION: ErrorCode = ErrorCode(6_371_208);
const NOT_ENCRYPTED: ErrorCode = ErrorCode(6_346_807);
const DELETE_TOKENS: ErrorCode = ErrorCode(7_293_201);
const CAPPED: ErrorCode = ErrorCode(6_367_301);
const TTL_INDEX: ErrorCode = ErrorCode(6_346_501);
const INDEX_ON_ENCRYPTED: ErrorCode = ErrorCode(6_346_502);

/// A collection with encrypted fields, and its state collections.
pub struct EncryptedCollection {
    pub namespace: Namespace,
    pub fields: EncryptedFields,
    /// The collection with the counters.
    pub state: Namespace,
    /// The collection with a document of each insertion since the last compaction.
    pub compaction: Namespace,
}

impl EncryptedCollection {
    /// Returns the collection of a command. The fields are those that the client sends, which must
    /// be of the collection. `command` is the body, whose first field names the collection.
    pub fn from_command(
        context: &Context<'_>,
        database: &str,
        command: Document<'_>,
    ) -> Result<EncryptedCollection, CommandError> {
        let namespace = namespace::without_dollar(database, command, ErrorCode::InvalidNamespace)?;
        context.operation.set_namespace(&namespace.to_string());
        views::refuse_view(context, &namespace)?;
        let fields = sent_fields(command, &namespace)?;
        let Some(state) = &fields.state_collection else {
            return refuse(
                NO_STATE_COLLECTION,
                "the schema of encryptionInformation lacks 'escCollection'",
            );
        };
        let Some(compaction) = &fields.compaction_collection else {
            return refuse(
                NO_COMPACTION_COLLECTION,
                "the schema of encryptionInformation lacks 'ecocCollection'",
            );
        };
        fields
            .check_names(&namespace.collection)
            .or_command_error()?;
        let (state, compaction) = (state.clone(), compaction.clone());
        let found = EncryptedCollection {
            state: namespace::new(database, &state),
            compaction: namespace::new(database, &compaction),
            namespace,
            fields,
        };
        found.check_stored(context)?;
        Ok(found)
    }

    /// Returns the collection with this name and the fields in its options.
    pub fn existing(
        context: &Context<'_>,
        request: &Request,
    ) -> Result<EncryptedCollection, CommandError> {
        let (database, body) = (request.database(), request.body());
        let namespace = namespace::without_dollar(database, body, ErrorCode::InvalidNamespace)?;
        context.operation.set_namespace(&namespace.to_string());
        views::refuse_view(context, &namespace)?;
        let Some(collection) = context.collection(&namespace)? else {
            let message = format!("ns not found: {namespace}");
            return refuse(ErrorCode::NamespaceNotFound, message);
        };
        let Some(fields) = stored_fields(&collection)? else {
            return refuse(NOT_ENCRYPTED, "the collection has no encrypted fields");
        };
        let collection = &namespace.collection;
        fields.check_names(collection).or_command_error()?;
        Ok(EncryptedCollection {
            state: namespace::new(database, &state_collection_of(collection)),
            compaction: namespace::new(database, &compaction_collection_of(collection)),
            namespace,
            fields,
        })
    }

    /// Fails if the collection has no encrypted fields, or other state collections: the client
    /// could change the counters of another collection.
    fn check_stored(&self, context: &Context<'_>) -> Result<(), CommandError> {
        let Some(collection) = context.collection(&self.namespace)? else {
            return Ok(());
        };
        let stored = stored_fields(&collection)?;
        let has_same = stored.is_some_and(|stored| {
            stored.state_collection == self.fields.state_collection
                && stored.compaction_collection == self.fields.compaction_collection
        });
        if has_same {
            return Ok(());
        }
        let message = format!(
            "the collection {} is not encrypted, or has other state collections than \
             '{ENCRYPTION_INFORMATION}'",
            self.namespace
        );
        refuse(ErrorCode::BadValue, message)
    }

    /// Returns the collection itself. Fails if it does not exist, because it would be created
    /// without the rules for its encrypted fields.
    pub fn collection(&self, context: &Context<'_>) -> Result<Arc<Collection>, CommandError> {
        context.collection(&self.namespace)?.ok_or_else(|| {
            let message = format!("the encrypted collection {} does not exist", self.namespace);
            CommandError::new(ErrorCode::NamespaceNotFound, message)
        })
    }
}

/// Returns the encrypted fields in the options of a collection.
fn stored_fields(collection: &Collection) -> Result<Option<EncryptedFields>, CommandError> {
    let options = collection.options();
    let fields = options
        .get(ENCRYPTED_FIELDS)
        .and_then(ValueRef::as_document);
    fields
        .map(EncryptedFields::parse)
        .transpose()
        .or_command_error()
}

/// Returns the encrypted fields of a collection in `encryptionInformation`.
fn sent_fields(
    command: Document<'_>,
    namespace: &Namespace,
) -> Result<EncryptedFields, CommandError> {
    let arguments = Arguments::within(ENCRYPTION_INFORMATION, command);
    let information = arguments.document(ENCRYPTION_INFORMATION)?;
    let information = information.unwrap_or(Document::EMPTY);
    let arguments = Arguments::within(ENCRYPTION_INFORMATION, information);
    if arguments.present("deleteTokens").is_some() {
        let message = "the 'deleteTokens' of protocol version 1 are obsolete";
        return refuse(DELETE_TOKENS, message);
    }
    arguments.only(&["type", "schema"])?;
    arguments.whole_number("type")?;
    let schema = arguments.document("schema")?;
    let schema = schema.ok_or_else(|| arguments.missing("schema"))?;
    let name = namespace.to_string();
    match schema.get(&name).and_then(ValueRef::as_document) {
        Some(fields) => EncryptedFields::parse(fields).or_command_error(),
        None => refuse(
            NO_SCHEMA,
            "the schema of encryptionInformation lacks the collection of the command",
        ),
    }
}

/// Checks the options of a new collection. Returns `encryptedFields` as it is stored: with the
/// names of the state collections.
pub fn check_creation(
    namespace: &Namespace,
    arguments: &Arguments<'_>,
) -> Result<Option<DocumentBuf>, CommandError> {
    let Some(given) = arguments.document(ENCRYPTED_FIELDS)? else {
        return Ok(None);
    };
    let checked =
        EncryptedFields::parse(given).and_then(|fields| fields.check_names(&namespace.collection));
    checked.map_err(|error| {
        let mut error = error.into_command_error();
        let name = format!("'{ENCRYPTED_FIELDS}.");
        error.message = error
            .message
            .replace(&name, &format!("'create.{ENCRYPTED_FIELDS}."));
        error
    })?;
    if arguments.flag("capped")? {
        let message = "a capped collection cannot have encrypted fields";
        return refuse(CAPPED, message);
    }
    let mut stored = DocumentBuf::new();
    for (name, default) in [
        ("escCollection", state_collection_of(&namespace.collection)),
        (
            "ecocCollection",
            compaction_collection_of(&namespace.collection),
        ),
    ] {
        let given = given.get(name).map(ValueRef::to_value);
        stored.push(name, given.unwrap_or(Value::from(default)));
    }
    for (name, value) in given {
        if !matches!(name, "escCollection" | "ecocCollection") {
            stored.push(name, value);
        }
    }
    Ok(Some(stored))
}

/// Fails if a collection has encrypted fields. `what` is what it cannot be.
fn refuse_encrypted(
    collection: &Collection,
    code: ErrorCode,
    what: &str,
) -> Result<(), CommandError> {
    if collection.options().get(ENCRYPTED_FIELDS).is_some() {
        let message = format!("a collection with encrypted fields cannot be {what}");
        return refuse(code, message);
    }
    Ok(())
}

/// MongoDB's error code if an encrypted collection is to be capped.
const CAPPED_LATER: ErrorCode = ErrorCode(6_367_302);

/// Fails if a collection with encrypted fields is to be capped, or copied into a capped one.
pub fn check_capping(collection: &Collection) -> Result<(), CommandError> {
    refuse_encrypted(collection, CAPPED_LATER, "made capped")
}

/// Fails if a collection has encrypted fields: the names of its state collections, and the schemas
/// of clients, contain its name.
pub fn check_renaming(
    source: Option<&Collection>,
    target: Option<&Collection>,
) -> Result<(), CommandError> {
    if let Some(source) = source {
        refuse_encrypted(source, ErrorCode::IllegalOperation, "renamed")?;
    }
    target.map_or(Ok(()), |target| {
        refuse_encrypted(target, ErrorCode::IllegalOperation, "replaced by another")
    })
}

/// Fails if the validator of an encrypted collection would let documents pass: values that were not
/// encrypted would be stored. `options` are those of the collection.
pub fn check_validation(options: Document<'_>) -> Result<(), CommandError> {
    if !options.contains(ENCRYPTED_FIELDS) {
        return Ok(());
    }
    let text = |name| options.get(name).and_then(ValueRef::as_str);
    if text("validationLevel").is_some_and(|level| level != "strict") {
        let message = "a collection with encrypted fields has the validation level 'strict'";
        return refuse(ErrorCode::BadValue, message);
    }
    if text("validationAction") == Some("warn") {
        let message = "a collection with encrypted fields cannot have the validation action 'warn'";
        return refuse(ErrorCode::BadValue, message);
    }
    Ok(())
}

/// Fails if an index of a collection with these options contains encrypted values, or deletes
/// documents. `specification` is that of the index.
pub fn check_index(options: Document<'_>, specification: Document<'_>) -> Result<(), CommandError> {
    let fields = options
        .get(ENCRYPTED_FIELDS)
        .and_then(ValueRef::as_document);
    let Some(fields) = fields else {
        return Ok(());
    };
    if specification.contains("expireAfterSeconds") {
        let message = "a collection with encrypted fields cannot have a TTL index";
        return refuse(TTL_INDEX, message);
    }
    let fields = EncryptedFields::parse(fields).or_command_error()?;
    let key = specification.get("key").and_then(ValueRef::as_document);
    for (path, _) in key.unwrap_or(Document::EMPTY) {
        let mut all = fields.fields.iter();
        if let Some(field) = all.find(|field| paths_overlap(&field.path, path)) {
            let message = format!(
                "an index cannot contain the encrypted field '{}'",
                field.path
            );
            return refuse(INDEX_ON_ENCRYPTED, message);
        }
    }
    Ok(())
}
