use std::fmt;
use std::io;
use std::sync::Arc;

use windrow_invariant::Bug;

/// What can go wrong in a data folder, by whose fault it is. The text is a sentence with the
/// place and the values. Cloned when one failure answers several callers.
#[derive(Clone, Debug)]
pub enum StorageError {
    /// The machine's: no space is left. Nothing was changed; the call works again once there is
    /// space.
    Full { place: String },
    /// The data's: bytes that were durable are not what was written.
    Damaged { place: String, what: String },
    /// The operator's: another process has the folder open.
    InUse { folder: String, owner: Option<u32> },
    /// The operator's: the folder was written by a version that this one does not know.
    UnknownFormat { place: String, found: String },
    /// The operator's: the folder holds files, and they are not a database.
    NotADataFolder { folder: String, found: String },
    /// The operator's: the file system does not let us.
    NoPermission { place: String },
    /// The log takes no writes until the folder is opened anew.
    RefusingWrites { because: String },
    /// The caller's: more than the format allows.
    TooLarge {
        what: String,
        bytes: u64,
        bytes_max: u64,
    },
    /// The caller's: it asks for a record of the log that is not kept any more.
    NotKept { position: u64, first: u64 },
    /// Ours.
    Bug(Bug),
    /// The machine's, anything else.
    Io {
        place: String,
        error: Arc<io::Error>,
    },
}

impl StorageError {
    /// Names an operating system's error with the place it happened at.
    pub(crate) fn from_io(place: impl Into<String>, error: io::Error) -> Self {
        let place = place.into();
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

    /// Whether the same call can succeed later without the folder being opened anew.
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
            Self::InUse {
                folder,
                owner: Some(pid),
            } => {
                write!(f, "the data folder {folder} is in use by process {pid}")
            }
            Self::InUse {
                folder,
                owner: None,
            } => {
                write!(f, "the data folder {folder} is in use by another process")
            }
            Self::UnknownFormat { place, found } => write!(
                f,
                "{place} says {found:?}, a format that this version of Windrow does not know"
            ),
            Self::NotADataFolder { folder, found } => write!(
                f,
                "{folder} is not a Windrow data folder: it has no FORMAT file but holds {found:?}; name an empty or a new folder"
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
                "record {position} is asked for, but the log is kept from record {first} on"
            ),
            Self::Bug(bug) => bug.fmt(f),
            Self::Io { place, error } => write!(f, "{place}: {error}"),
        }
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
