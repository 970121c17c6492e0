//! Catalog changes as change streams report them. Each such change rewrites one catalog row with
//! its event, so the log contains all events in order.
//!
//! ```text
//! "e"    BSON: kind, db, coll, uuid, to: {db, coll}, description, before
//! ```
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_index::Definition;
use windrow_storage::{Catalog, ROW_BYTES_MAX, RowChange};

use crate::catalog::namespace::Namespace;
use crate::catalog::rows::{self, CollectionRow, NamedRow};
use crate::error::Unreadable;
use crate::ids::CollectionUuid;

/// The kinds of catalog changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DdlKind {
    /// A collection was created.
    Create,
    /// A collection was dropped.
    Drop,
    /// A database was dropped.
    DropDatabase,
    /// A collection was renamed.
    Rename,
    /// The options of a collection were changed.
    Modify,
    /// Indexes were created.
    CreateIndexes,
    /// Indexes were dropped.
    DropIndexes,
}

/// The names of the kinds in change events, which are also those in the row.
const NAMES: &[(DdlKind, &str)] = &[
    (DdlKind::Create, "create"),
    (DdlKind::Drop, "drop"),
    (DdlKind::DropDatabase, "dropDatabase"),
    (DdlKind::Rename, "rename"),
    (DdlKind::Modify, "modify"),
    (DdlKind::CreateIndexes, "createIndexes"),
    (DdlKind::DropIndexes, "dropIndexes"),
];

impl DdlKind {
    /// Returns the name of the kind in change events.
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    fn named(name: &str) -> Option<DdlKind> {
        let found = NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(kind, _)| *kind)
    }
}

/// The event of one catalog change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DdlEvent {
    pub kind: DdlKind,
    pub named: NamedRow,
    /// The new name of a renamed collection.
    pub to: Option<Namespace>,
    /// `operationDescription`, for clients with `showExpandedEvents`.
    pub description: DocumentBuf,
    /// `stateBeforeChange`, for clients with `showExpandedEvents`.
    pub before: Option<DocumentBuf>,
}

impl DdlEvent {
    pub fn new(kind: DdlKind, row: &CollectionRow) -> DdlEvent {
        DdlEvent {
            kind,
            named: row.named(),
            to: None,
            description: DocumentBuf::new(),
            before: None,
        }
    }

    pub fn drop_database(database: &str) -> DdlEvent {
        DdlEvent {
            kind: DdlKind::DropDatabase,
            named: NamedRow {
                namespace: Namespace {
                    database: database.to_owned(),
                    collection: String::new(),
                },
                uuid: CollectionUuid::default(),
            },
            to: None,
            description: DocumentBuf::new(),
            before: None,
        }
    }

    /// Creates the event of a rename. `replaced` is the UUID of the collection that had the name
    /// and is dropped.
    pub fn rename(
        row: &CollectionRow,
        to: &Namespace,
        replaced: Option<CollectionUuid>,
    ) -> DdlEvent {
        let mut description = doc! { "to": (pair(to)) };
        if let Some(uuid) = replaced {
            description.push("dropTarget", uuid.to_value());
        }
        DdlEvent {
            to: Some(to.clone()),
            ..DdlEvent::new(DdlKind::Rename, row).with_description(description)
        }
    }

    pub fn with_description(self, description: DocumentBuf) -> DdlEvent {
        DdlEvent {
            description,
            ..self
        }
    }

    pub fn with_state_before(self, before: DocumentBuf) -> DdlEvent {
        DdlEvent {
            before: Some(before),
            ..self
        }
    }

    pub fn indexes<'d>(
        kind: DdlKind,
        row: &CollectionRow,
        definitions: impl Iterator<Item = &'d Definition>,
    ) -> DdlEvent {
        let specifications = definitions.map(|it| Value::from(it.specification.clone()));
        let list: ArrayBuf = specifications.collect();
        DdlEvent::new(kind, row).with_description(doc! { "indexes": (Value::Array(list)) })
    }

    /// Adds the options that a collection is created with.
    pub fn with_options(self, row: &CollectionRow) -> DdlEvent {
        let mut description = doc! { "idIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_" } };
        for (name, value) in row.options.iter() {
            description.push(name, value);
        }
        self.with_description(description)
    }

    /// Returns the row. A description that does not fit is left out.
    pub fn put(&self) -> RowChange {
        let whole = self.document();
        if whole.as_bytes().len() <= ROW_BYTES_MAX {
            rows::put_ddl_event(whole)
        } else {
            rows::put_ddl_event(self.document_without_description())
        }
    }

    fn document(&self) -> DocumentBuf {
        let mut document = self.document_without_description();
        document.push("description", self.description.clone());
        if let Some(before) = &self.before {
            document.push("before", before.clone());
        }
        document
    }

    fn document_without_description(&self) -> DocumentBuf {
        let mut document = self.named.document();
        document.push("kind", self.kind.name());
        if let Some(to) = &self.to {
            document.push("to", pair(to));
        }
        document
    }

    /// Reads the event of a catalog record in the log. Returns `None` if the record has no event.
    /// Fails if the record cannot be read.
    pub fn read(payload: &[u8]) -> Result<Option<DdlEvent>, Unreadable> {
        let changed = Catalog::read_change(payload).ok_or(Unreadable)?;
        let row = changed.into_iter().find(|row| row.key == rows::DDL_EVENT);
        let value = row.and_then(|row| row.value);
        value
            .map(|value| DdlEvent::from_row(&value).ok_or(Unreadable))
            .transpose()
    }

    fn from_row(value: &[u8]) -> Option<DdlEvent> {
        let document = Document::from_bytes(value).ok()?;
        let text = |document: Document<'_>, name: &str| {
            let found = document.get(name).and_then(ValueRef::as_str);
            found.map(str::to_owned)
        };
        let to = document.get("to").and_then(ValueRef::as_document);
        let within = |name: &str| {
            let found = document.get(name).and_then(ValueRef::as_document);
            found.map(Document::to_buf)
        };
        Some(DdlEvent {
            kind: DdlKind::named(document.get("kind").and_then(ValueRef::as_str)?)?,
            named: NamedRow::from_document(document).ok()?,
            to: to.and_then(|to| {
                Some(Namespace {
                    database: text(to, "db")?,
                    collection: text(to, "coll")?,
                })
            }),
            description: within("description").unwrap_or_default(),
            before: within("before"),
        })
    }
}

fn pair(namespace: &Namespace) -> DocumentBuf {
    doc! { "db": namespace.database.as_str(), "coll": namespace.collection.as_str() }
}
