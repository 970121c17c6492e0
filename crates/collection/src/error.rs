//! What can go wrong with a collection, and whose fault it is.

use std::fmt;

use windrow_document::DocumentBuf;
use windrow_invariant::Bug;
use windrow_storage::{CatalogError, ClusterTime, StorageError};

use crate::pinned_snapshots::PINNED_SNAPSHOTS_MAX;

/// The text is a sentence for the caller. The server's table gives each its MongoDB code.
#[derive(Clone, Debug)]
pub enum Error {
    /// The caller's: a name that no collection or database can have.
    InvalidNamespace(String),
    /// The caller's: there is a collection of that name.
    NamespaceExists(String),
    /// The caller's: there is a database whose name differs in the case of letters alone.
    DatabaseDifferCase { existing: String, wanted: String },
    /// The caller's: there is none.
    NamespaceNotFound(String),
    /// The caller's: it is a view, which has no documents of its own.
    IsView(String),
    /// The caller's: a unique index has that key already.
    DuplicateKey(Box<DuplicateKey>),
    /// The caller's: a document, an index specification or a filter that breaks a rule of the
    /// language; it carries MongoDB's code.
    Language(windrow_mql::Error),
    /// The caller's: an index of that name or key is there, with other options (85) or another key
    /// (86); the code says which.
    IndexConflict { code: i32, message: String },
    /// The caller's: no index of that name or key.
    IndexNotFound(String),
    /// The caller's: a document that the collection's validator does not accept.
    FailedValidation(Box<FailedValidation>),
    /// The caller's: a document larger than 16 MB.
    DocumentTooLarge { bytes: usize },
    /// The caller's: it has read for longer than snapshots may be old.
    SnapshotTooOld,
    /// The caller's: nobody has kept what was there at this time.
    SnapshotNotKept(ClusterTime),
    /// Somebody else's: the index build, or the collection, was dropped or killed meanwhile.
    Interrupted(String),
    /// Another transaction's: it has changed, or holds, what this one was to change. Begun anew, it may
    /// do.
    WriteConflict(String),
    /// A write or a change of a collection was to wait for a transaction no longer.
    WaitGivenUp,
    /// Somebody else's: he changes a collection that a transaction wanted to use.
    LockTimeout,
    /// Somebody else's: a collection that a transaction wanted to use is another since the transaction
    /// began.
    CollectionChanged(String),
    /// The caller's: not within a transaction.
    NotInTransaction(String),
    /// The caller's: more bytes than a transaction may write.
    TransactionTooLarge { bytes: usize, limit: usize },
    /// All open transactions together have written more than there is memory for.
    NoRoomForTransactions,
    /// Ours.
    Bug(Bug),
    /// The machine's: see the storage's error.
    Storage(StorageError),
}

/// Which key of which index is there already.
#[derive(Clone, Debug)]
pub struct DuplicateKey {
    pub namespace: String,
    pub index: String,
    /// The specification of the index's collation; its strings in `key_value` are sort keys of it.
    pub collation: Option<DocumentBuf>,
    pub key_pattern: DocumentBuf,
    pub key_value: DocumentBuf,
}

/// Which document a validator does not accept, and why.
#[derive(Clone, Debug)]
pub struct FailedValidation {
    /// `{failingDocumentId, details}`.
    pub information: DocumentBuf,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::InvalidNamespace(what) => {
                write!(formatter, "Invalid namespace specified '{what}'")
            }
            Error::NamespaceExists(name) => write!(formatter, "Collection {name} already exists."),
            Error::DatabaseDifferCase { existing, wanted } => write!(
                formatter,
                "db already exists with different case already have: [{existing}] trying to create \
                 [{wanted}]"
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
                "the snapshot of this read is older than snapshots may be (--snapshot-seconds-max); \
                 what it saw may be gone: read again",
            ),
            Error::SnapshotNotKept(time) => write!(
                formatter,
                "Read timestamp Timestamp{time} is older than the oldest available timestamp: what a \
                 read answers the time of is kept for minSnapshotHistoryWindowInSeconds, of the \
                 {PINNED_SNAPSHOTS_MAX} such times that were read at last, and not past a restart"
            ),
            Error::Interrupted(why) => formatter.write_str(why),
            Error::WriteConflict(what) => write!(
                formatter,
                "Caused by :: Write conflict during plan execution and yielding is disabled. :: {what}. \
                 Please retry your operation or multi-document transaction."
            ),
            Error::WaitGivenUp => {
                formatter.write_str("the wait for an open transaction was given up")
            }
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
    /// A conflict is a bug: who changes rows holds the lock of catalog changes, so that nobody else can
    /// have changed them.
    fn from(error: CatalogError) -> Error {
        match error {
            CatalogError::Storage(error) => Error::from(error),
            conflict => Error::Bug(Bug::new(conflict.to_string())),
        }
    }
}

impl From<windrow_mql::Error> for Error {
    /// A bug of the language stays a bug: background work rests after it.
    fn from(error: windrow_mql::Error) -> Error {
        match error.bug() {
            Some(bug) => Error::Bug(bug.clone()),
            None => Error::Language(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_invariant::tolerate_bugs;

    /// A bug of the query language came as an error of the caller's, with code 8. Folds, merges and
    /// index builds then repeated at once what had failed.
    #[test]
    fn a_bug_of_the_language_is_a_bug() {
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
