//! The errors of the crate.

use std::fmt;
use std::io;
use std::sync::Arc;

use windrow_invariant::Bug;

use crate::position::Position;

/// An error of a data folder. Each variant names whose fault it is, and its text is a sentence with
/// the place and the values. It is `Clone` because one failed write answers a group of callers.
#[derive(Clone, Debug)]
pub enum StorageError {
    /// Fault of the machine: the disk is full. Nothing was changed. The same call succeeds after
    /// space was freed.
    Full {
        /// The file or folder that could not be written.
        place: String,
    },
    /// Fault of the data: durable bytes are not the bytes that were written.
    Damaged {
        /// The file, with the byte if it is known.
        place: String,
        /// The defect.
        what: String,
    },
    /// Fault of the operator: another process has the folder open.
    InUse {
        /// The data folder.
        folder: String,
        /// The id of the other process, if the LOCK file has it.
        owner: Option<u32>,
    },
    /// Fault of the operator: the format of the folder is unknown to this version.
    UnknownFormat {
        /// The FORMAT file.
        place: String,
        /// The text of the FORMAT file.
        found: String,
    },
    /// Fault of the operator: the folder has files, and they are not files of a database.
    NotADataFolder {
        /// The folder.
        folder: String,
        /// One of the files in it.
        found: String,
    },
    /// Fault of the operator: the folder is encrypted, and no master key was given.
    Encrypted {
        /// The data folder.
        folder: String,
    },
    /// Fault of the operator: a master key was given, and the folder is not encrypted.
    NotEncrypted {
        /// The data folder.
        folder: String,
    },
    /// Fault of the operator: the master key is not the one that the folder was encrypted with.
    WrongKey {
        /// The file with the data keys.
        place: String,
    },
    /// Fault of the operator: the file system denies access.
    NoPermission {
        /// The file or folder.
        place: String,
    },
    /// The log accepts no writes until the folder is opened again, because an earlier failure left
    /// its content unknown.
    RefusingWrites {
        /// The first failure.
        because: String,
    },
    /// Fault of the caller: a value is longer than the format allows.
    TooLarge {
        /// A description of the value.
        what: String,
        /// The length of the value.
        bytes: u64,
        /// The largest length that is allowed.
        bytes_max: u64,
    },
    /// Fault of the caller: the record was dropped from the log.
    NotKept {
        /// The position of the record.
        position: Position,
        /// The position of the first record that the log has.
        first: Position,
    },
    /// Fault of the network or of the object store: a request failed. It may have had its effect.
    Unavailable {
        /// The object.
        place: String,
        /// The error of the request.
        what: String,
    },
    /// A run was deleted from the object store, because the log does not refer to it any more. This
    /// server has not applied that part of the log yet, or a snapshot is too old.
    RunDeleted {
        /// The run.
        place: String,
    },
    /// Fault of the operator: the object store cannot keep the log.
    Unsuitable {
        /// The prefix in the object store.
        place: String,
        /// The reason.
        what: String,
    },
    /// This server follows the log of another one, so it cannot write.
    NotPrimary,
    /// Another server has taken over the log in the object store.
    Fenced {
        /// The address of the other server, or "" if it is unknown.
        by: String,
        /// The epoch that the other server has begun.
        epoch: u64,
    },
    /// Fault of Windrow: a broken invariant.
    Bug(Bug),
    /// Fault of the machine: any other error of the operating system.
    Io {
        /// The file or folder.
        place: String,
        /// The error of the operating system.
        error: Arc<io::Error>,
    },
}

impl StorageError {
    /// Returns the variant for an error of the operating system at `place`.
    pub(crate) fn from_io(place: impl Into<String>, error: io::Error) -> Self {
        let place = place.into();
        let inner = error.get_ref().and_then(|it| it.downcast_ref::<Self>());
        if let Some(inner) = inner {
            return inner.clone();
        }
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { place },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NoPermission { place }
            }
            _ => Self::Io {
                place,
                error: Arc::new(error),
            },
        }
    }

    pub(crate) fn damaged(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged {
            place: place.into(),
            what: what.into(),
        }
    }

    /// Returns `true` if the disk is full. The same call can then succeed later, without a restart.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { place } => {
                write!(
                    f,
                    "the disk is full: {place} could not be written; free some space and try again"
                )
            }
            Self::Damaged { place, what } => write!(f, "{place} is damaged: {what}"),
            Self::InUse { folder, owner } => fmt_in_use(f, folder, *owner),
            Self::UnknownFormat { place, found } => write!(
                f,
                "{place} says {found:?}, a format that this version of Windrow does not know"
            ),
            Self::NotADataFolder { folder, found } => write!(
                f,
                "{folder} is not a Windrow data folder: it has no FORMAT file but holds {found:?}; name an empty or a new folder"
            ),
            Self::Encrypted { folder } => write!(
                f,
                "the data folder {folder} is encrypted: an encryption key file is needed"
            ),
            Self::NotEncrypted { folder } => write!(
                f,
                "the data folder {folder} is not encrypted, so it cannot be opened with an encryption key; a new folder can be encrypted"
            ),
            Self::WrongKey { place } => write!(
                f,
                "the encryption key is not the one that protects {place}, or that file is damaged"
            ),
            Self::NoPermission { place } => {
                write!(
                    f,
                    "no permission for {place}: it must be readable and writable by this user"
                )
            }
            Self::RefusingWrites { because } => {
                write!(
                    f,
                    "the log refuses writes until the database is restarted: {because}"
                )
            }
            Self::TooLarge {
                what,
                bytes,
                bytes_max,
            } => {
                write!(f, "{what} has {bytes} bytes, the limit is {bytes_max}")
            }
            Self::NotKept { position, first } => write!(
                f,
                "record {position} was dropped: the log begins with record {first}"
            ),
            Self::Unavailable { place, what } => {
                write!(f, "the object store cannot be used: {place}: {what}")
            }
            Self::RunDeleted { place } => {
                write!(f, "the snapshot is too old: {place} was deleted")
            }
            Self::Unsuitable { place, what } => write!(
                f,
                "{place} cannot be used for a database in an object store: {what}"
            ),
            Self::NotPrimary => write!(f, "not primary: this server follows another one"),
            Self::Fenced { by, epoch } => fmt_fenced(f, by, *epoch),
            Self::Bug(bug) => bug.fmt(f),
            Self::Io { place, error } => write!(f, "{place}: {error}"),
        }
    }
}

fn fmt_in_use(f: &mut fmt::Formatter<'_>, folder: &str, owner: Option<u32>) -> fmt::Result {
    match owner {
        Some(pid) => write!(f, "the data folder {folder} is in use by process {pid}"),
        None => write!(f, "the data folder {folder} is in use by another process"),
    }
}

fn fmt_fenced(f: &mut fmt::Formatter<'_>, by: &str, epoch: u64) -> fmt::Result {
    if by.is_empty() {
        write!(f, "another server has taken over the log (epoch {epoch})")
    } else {
        write!(f, "the server {by} has taken over the log (epoch {epoch})")
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error.as_ref()),
            _ => None,
        }
    }
}

impl From<Bug> for StorageError {
    fn from(bug: Bug) -> StorageError {
        StorageError::Bug(bug)
    }
}
