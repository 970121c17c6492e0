//! Errors of collections. Each variant says whose fault it is.

use std::fmt;

use windrow_document::DocumentBuf;
use windrow_interrupt::Interrupted;
use windrow_invariant::Bug;
use windrow_storage::{CatalogError, ClusterTime, Position, StorageError};

use crate::pinned_snapshots::PINNED_SNAPSHOTS_MAX;

/// An error of a collection. Its text is a sentence for the client. The server maps each variant to
/// a MongoDB error code.
#[derive(Clone, Debug)]
pub enum Error {
    /// The caller's: the name is not allowed for a collection or a database.
    InvalidNamespace(String),
    /// The caller's: a collection of this name exists already.
    NamespaceExists(String),
    /// The caller's: a database exists whose name differs only in the case of letters.
    DatabaseDifferCase {
        /// The existing database.
        existing: String,
        /// The name that the caller asked for.
        requested: String,
    },
    /// The caller's: no collection of this name exists.
    NamespaceNotFound(String),
    /// The caller's: the name belongs to a view, which stores no documents.
    IsView(String),
    /// The caller's: a unique index contains the key already.
    DuplicateKey(Box<DuplicateKey>),
    /// The caller's: a document, an index specification or a filter breaks a rule of the query
    /// language. The error carries MongoDB's code.
    Language(windrow_mql::Error),
    /// The caller's: an index with this name or key exists, with other options (code 85) or with
    /// another key (code 86).
    IndexConflict {
        /// MongoDB's error code.
        code: i32,
        /// The whole message.
        message: String,
    },
    /// The caller's: no index with this name or key exists.
    IndexNotFound(String),
    /// The caller's: the collection's validator rejects a document.
    FailedValidation(Box<FailedValidation>),
    /// The caller's: a document is larger than 16 MB.
    DocumentTooLarge {
        /// The size of the document.
        bytes: usize,
    },
    /// The caller's: the operation's snapshot is older than
    /// [`EngineOptions::snapshot_age_max`](crate::EngineOptions::snapshot_age_max).
    SnapshotTooOld,
    /// The caller's: the versions of this time are not available any more.
    SnapshotNotKept(ClusterTime),
    /// Another client's: the index build or the collection was dropped or killed during the
    /// operation.
    Interrupted(Interrupted),
    /// Another transaction's: it changed a document that this transaction writes, or holds its
    /// lock. A retry of the whole transaction may succeed.
    WriteConflict(String),
    /// Another client's: it holds the lock of a collection that the transaction uses.
    LockTimeout,
    /// Another client's: a collection that the transaction uses has been changed since the
    /// transaction began.
    CollectionChanged(String),
    /// The caller's: the operation is not allowed in a transaction.
    NotInTransaction(String),
    /// The caller's: the transaction has written more bytes than the limit.
    TransactionTooLarge {
        /// The bytes that the transaction would have written.
        bytes: usize,
        /// The maximum.
        limit: usize,
    },
    /// All open transactions together have written as many bytes as fit into memory.
    NoRoomForTransactions,
    /// Ours: a broken invariant.
    Bug(Bug),
    /// The machine's or the data's: an error of the storage.
    Storage(StorageError),
}

/// The key that violates a unique index, with what a client needs to identify it.
#[derive(Clone, Debug)]
pub struct DuplicateKey {
    /// The collection.
    pub namespace: String,
    /// The name of the index.
    pub index: String,
    /// The specification of the index's collation. If there is one, the strings in `key_value` are
    /// sort keys of the collation.
    pub collation: Option<DocumentBuf>,
    /// The index's key pattern, as `{a: 1}`.
    pub key_pattern: DocumentBuf,
    /// The values of the key, under the names of the pattern's fields.
    pub key_value: DocumentBuf,
}

/// A document that the validator rejects, and the reason.
#[derive(Clone, Debug)]
pub struct FailedValidation {
    /// `{failingDocumentId, details}`, as MongoDB reports it.
    pub information: DocumentBuf,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::InvalidNamespace(what) => {
                write!(formatter, "Invalid namespace specified '{what}'")
            }
            Error::NamespaceExists(name) => write!(formatter, "Collection {name} already exists."),
            Error::DatabaseDifferCase { existing, requested } => write!(
                formatter,
                "db already exists with different case already have: [{existing}] trying to create \
                 [{requested}]"
            ),
            Error::NamespaceNotFound(name) => write!(formatter, "ns not found: {name}"),
            Error::IsView(name) => {
                write!(formatter, "Namespace {name} is a view, not a collection")
            }
            Error::DuplicateKey(duplicate) => write!(
                formatter,
                "E11000 duplicate key error collection: {} index: {} dup key: {}",
                duplicate.namespace, duplicate.index, duplicate.key_value
            ),
            Error::Language(error) => error.fmt(formatter),
            Error::IndexConflict { message, .. } => formatter.write_str(message),
            Error::IndexNotFound(name) => write!(formatter, "index not found with name [{name}]"),
            Error::DocumentTooLarge { bytes } => write!(
                formatter,
                "object to insert too large. size in bytes: {bytes}, max size: 16777216"
            ),
            Error::FailedValidation(failed) => {
                write!(formatter, "Document failed validation: {}", failed.information)
            }
            Error::SnapshotTooOld => formatter.write_str(
                "the snapshot of this read is older than --snapshot-seconds-max, so its versions may \
                 have been removed: read again",
            ),
            Error::SnapshotNotKept(time) => write!(
                formatter,
                "Read timestamp Timestamp{time} is older than the oldest available timestamp: \
                 the snapshot of a reported time is kept for minSnapshotHistoryWindowInSeconds, if \
                 it is among the {PINNED_SNAPSHOTS_MAX} most recently used ones, and until a restart"
            ),
            Error::Interrupted(interrupted) => interrupted.fmt(formatter),
            Error::WriteConflict(what) => write!(
                formatter,
                "Caused by :: Write conflict during plan execution and yielding is disabled. :: {what}. \
                 Please retry your operation or multi-document transaction."
            ),
            Error::LockTimeout => formatter.write_str(
                "Unable to acquire lock within 5ms: the collection is being changed",
            ),
            Error::CollectionChanged(name) => write!(
                formatter,
                "Unable to read from a snapshot due to pending collection catalog changes to \
                 collection '{name}'; please retry the operation"
            ),
            Error::NotInTransaction(what) => formatter.write_str(what),
            Error::TransactionTooLarge { bytes, limit } => write!(
                formatter,
                "Total size of all transaction operations must be less than {limit}, but is {bytes}",
            ),
            Error::NoRoomForTransactions => formatter.write_str(
                "transaction is too large and will not fit in the memory for open transactions",
            ),
            Error::Bug(bug) => bug.fmt(formatter),
            Error::Storage(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Creates the error of work that was stopped, with MongoDB's code `Interrupted`. `message` is
    /// the reason.
    pub fn interrupted(message: impl Into<String>) -> Error {
        Error::Interrupted(Interrupted::new(message))
    }
}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::Interrupted(interrupted)
    }
}

impl From<Bug> for Error {
    fn from(bug: Bug) -> Error {
        Error::Bug(bug)
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Error {
        match error {
            StorageError::Bug(bug) => Error::Bug(bug),
            error => Error::Storage(error),
        }
    }
}

impl From<CatalogError> for Error {
    /// A conflict is a bug. A thread that changes catalog rows holds the lock of catalog changes,
    /// so no other thread can have changed them.
    fn from(error: CatalogError) -> Error {
        match error {
            CatalogError::Storage(error) => Error::from(error),
            conflict => Error::Bug(Bug::new(conflict.to_string())),
        }
    }
}

impl From<windrow_mql::Error> for Error {
    /// A bug of the query language stays a bug, because background work backs off after bugs.
    fn from(error: windrow_mql::Error) -> Error {
        match error.bug() {
            Some(bug) => Error::Bug(bug.clone()),
            None => Error::Language(error),
        }
    }
}

/// Bytes of the log or the catalog cannot be decoded. The caller knows their position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unreadable;

/// Returns the error of a log record that cannot be decoded.
pub(crate) fn undecodable(position: Position) -> StorageError {
    StorageError::Damaged {
        place: format!("log record {position}"),
        what: "it cannot be decoded".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_invariant::tolerate_bugs;

    /// A bug of the query language used to become a client error with code 8. Folds, merges and
    /// index builds then retried the failed work at once.
    #[test]
    fn a_bug_of_the_query_language_is_a_bug() {
        let bug = tolerate_bugs(|| Bug::new("a path without names"));
        let error = Error::from(windrow_mql::Error::from(bug.clone()));
        assert!(
            matches!(&error, Error::Bug(found) if *found == bug),
            "{error:?}"
        );
        let error = Error::from(windrow_mql::Error::new(8, "a failure"));
        assert!(matches!(error, Error::Language(_)), "{error:?}");
    }
}
