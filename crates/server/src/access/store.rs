//! Reads and writes the documents of users and roles.

use std::sync::Arc;

use bytes::Bytes;
use windrow_access::{Role, RoleName, User, UserName};
use windrow_collection::{Change, Collection, Engine, InsertOrder, Namespace};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_query::{Find, Snapshot, Uninterrupted};
use windrow_wire::{CommandError, ErrorCode};

use crate::errors::OrCommandError;

/// One of the collections of access control, in `admin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthCollection {
    Users,
    Roles,
    /// The version of the form of the documents, which mongodump and mongorestore compare.
    Version,
}

/// The version of the form of the documents of users and roles, as in MongoDB.
pub const SCHEMA_VERSION: i32 = 5;

impl AuthCollection {
    /// Returns the name of the collection.
    pub fn collection_name(self) -> &'static str {
        match self {
            AuthCollection::Users => "system.users",
            AuthCollection::Roles => "system.roles",
            AuthCollection::Version => "system.version",
        }
    }

    /// Returns `true` if a collection stores users or roles. It cannot be dropped: without the one
    /// of users, everybody would have access.
    pub fn is_protected(namespace: &Namespace) -> bool {
        let protected = [AuthCollection::Users, AuthCollection::Roles];
        protected.iter().any(|it| it.namespace() == *namespace)
    }

    /// Returns the namespace of the collection.
    pub fn namespace(self) -> Namespace {
        Namespace {
            database: "admin".to_owned(),
            collection: self.collection_name().to_owned(),
        }
    }

    fn open(self, engine: &Engine) -> Option<Arc<Collection>> {
        engine.collection(&self.namespace())
    }

    /// Returns the document with this `_id`.
    pub fn get(self, engine: &Engine, id: &str) -> Result<Option<DocumentBuf>, CommandError> {
        let Some(collection) = self.open(engine) else {
            return Ok(None);
        };
        let reader = collection.reader().or_command_error()?;
        let found = reader.find(ValueRef::String(id)).or_command_error()?;
        Ok(found.map(|(_, bytes)| Document::from_validated(&bytes).to_buf()))
    }

    /// Returns the documents that match a filter, sorted by `_id`.
    pub fn find(
        self,
        engine: &Engine,
        filter: Document<'_>,
    ) -> Result<Vec<DocumentBuf>, CommandError> {
        let Some(collection) = self.open(engine) else {
            return Ok(Vec::new());
        };
        find_in(&collection, filter)
    }

    /// Stores a document that is new. Fails with DuplicateKey if there is one with its `_id`.
    pub fn insert(self, engine: &Engine, document: DocumentBuf) -> Result<(), CommandError> {
        let collection = engine
            .collection_or_create(&self.namespace())
            .or_command_error()?;
        let bytes = Bytes::from(document.into_bytes());
        let inserted = collection
            .insert(bytes, InsertOrder::Ordered)
            .or_command_error()?;
        inserted.check_all_inserted().or_command_error()?;
        engine.sync().or_command_error()
    }

    /// Replaces the document with this `_id`. Returns `false` if there is none.
    pub fn replace(
        self,
        engine: &Engine,
        id: &str,
        document: DocumentBuf,
    ) -> Result<bool, CommandError> {
        self.change(engine, id, &Change::Replace(document))
    }

    /// Deletes the document with this `_id`. Returns `false` if there is none.
    pub fn delete(self, engine: &Engine, id: &str) -> Result<bool, CommandError> {
        self.change(engine, id, &Change::Delete)
    }

    fn change(self, engine: &Engine, id: &str, change: &Change) -> Result<bool, CommandError> {
        let Some(collection) = self.open(engine) else {
            return Ok(false);
        };
        let reader = collection.reader().or_command_error()?;
        let Some(record) = reader.find_id(ValueRef::String(id)).or_command_error()? else {
            return Ok(false);
        };
        let mut batch = collection.batch();
        let decide = |_: Document<'_>| Ok::<_, windrow_collection::Error>(change.clone());
        batch.change(record, decide).or_command_error()?;
        batch.commit().or_command_error()?;
        engine.sync().or_command_error()?;
        Ok(true)
    }
}

/// Returns the documents of a collection that match a filter, sorted by `_id`.
pub fn find_in(
    collection: &Collection,
    filter: Document<'_>,
) -> Result<Vec<DocumentBuf>, CommandError> {
    let find = Find::new(Filter::parse(filter).or_command_error()?);
    let snapshot = Snapshot::open(collection).or_command_error()?;
    let mut rows = find.open(&snapshot).or_command_error()?;
    let mut found = Vec::new();
    while let Some(row) = rows.next_row(&Uninterrupted).or_command_error()? {
        found.push(row.document().to_buf());
    }
    found.sort_by(|one, other| id_of(one).cmp(id_of(other)));
    Ok(found)
}

fn id_of(document: &DocumentBuf) -> &str {
    document
        .get("_id")
        .and_then(ValueRef::as_str)
        .unwrap_or_default()
}

/// Returns the user with this name.
pub fn user(engine: &Engine, name: &UserName) -> Result<Option<User>, CommandError> {
    let document = AuthCollection::Users.get(engine, &name.id())?;
    let user = document.map(|document| parse_user(&document)).transpose()?;
    // "a.b.c" is the _id of the user "b.c" of "a" only, because databases have no dot.
    Ok(user.filter(|user| user.name == *name))
}

/// Returns the user-defined role with this name.
pub fn role(engine: &Engine, name: &RoleName) -> Result<Option<Role>, CommandError> {
    let document = AuthCollection::Roles.get(engine, &name.id())?;
    let role = document.map(|document| parse_role(&document)).transpose()?;
    Ok(role.filter(|role| role.name == *name))
}

/// Parses a stored user.
pub fn parse_user(document: &DocumentBuf) -> Result<User, CommandError> {
    User::parse(document.as_document()).map_err(|error| inconsistent(document, &error))
}

/// Parses a stored role.
pub fn parse_role(document: &DocumentBuf) -> Result<Role, CommandError> {
    Role::parse(document.as_document()).map_err(|error| inconsistent(document, &error))
}

fn inconsistent(document: &DocumentBuf, error: &windrow_access::Error) -> CommandError {
    let message = format!(
        "The stored document {:?} is invalid: {error}",
        id_of(document)
    );
    CommandError::new(ErrorCode::UserDataInconsistent, message)
}

/// Stores the version of the documents' form, if it is not stored yet.
pub fn store_schema_version(engine: &Engine) -> Result<(), CommandError> {
    let id = "authSchema";
    if AuthCollection::Version.get(engine, id)?.is_some() {
        return Ok(());
    }
    let document = doc! { "_id": id, "currentVersion": SCHEMA_VERSION };
    match AuthCollection::Version.insert(engine, document) {
        Err(error) if error.code != ErrorCode::DuplicateKey => Err(error),
        _ => Ok(()),
    }
}
