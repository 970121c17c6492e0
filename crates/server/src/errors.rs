//! The one table of errors: what the layers below say went wrong, as MongoDB's codes and words.

use windrow_collection::StorageError;
use windrow_collection::{DuplicateKey, Error as CollectionError};
use windrow_wire::{CommandError, ErrorCode};

/// An error of a layer below, as the client learns of it.
pub trait IntoCommandError {
    fn into_command_error(self) -> CommandError;
}

/// `result?` for the errors of the layers below.
pub trait OrCommandError<T> {
    fn or_command_error(self) -> Result<T, CommandError>;
}

impl<T, E: IntoCommandError> OrCommandError<T> for Result<T, E> {
    fn or_command_error(self) -> Result<T, CommandError> {
        self.map_err(IntoCommandError::into_command_error)
    }
}

impl IntoCommandError for CommandError {
    fn into_command_error(self) -> CommandError {
        self
    }
}

impl IntoCommandError for windrow_mql::Error {
    fn into_command_error(self) -> CommandError {
        CommandError::new(ErrorCode(self.code), self.message)
    }
}

impl IntoCommandError for CollectionError {
    fn into_command_error(self) -> CommandError {
        let message = self.to_string();
        let code = match self {
            CollectionError::Language(error) => return error.into_command_error(),
            CollectionError::Storage(error) => return error.into_command_error(),
            CollectionError::DuplicateKey(duplicate) => return duplicate_key(*duplicate, message),
            CollectionError::IndexConflict { code, .. } => ErrorCode(code),
            CollectionError::InvalidNamespace(_) => ErrorCode::InvalidNamespace,
            CollectionError::NamespaceExists(_) => ErrorCode::NamespaceExists,
            CollectionError::NamespaceNotFound(_) => ErrorCode::NamespaceNotFound,
            CollectionError::IndexNotFound(_) => ErrorCode::IndexNotFound,
            CollectionError::DocumentTooLarge { .. } => ErrorCode::BSONObjectTooLarge,
            CollectionError::Interrupted(_) => ErrorCode::Interrupted,
        };
        CommandError::new(code, message)
    }
}

fn duplicate_key(duplicate: DuplicateKey, message: String) -> CommandError {
    CommandError::new(ErrorCode::DuplicateKey, message)
        .with("keyPattern", duplicate.key_pattern)
        .with("keyValue", duplicate.key_value)
}

impl IntoCommandError for windrow_query::Error {
    fn into_command_error(self) -> CommandError {
        match self {
            windrow_query::Error::Language(error) => error.into_command_error(),
            windrow_query::Error::Interrupted { code, message } => {
                CommandError::new(ErrorCode(code), message)
            }
            windrow_query::Error::Collection(error) => error.into_command_error(),
        }
    }
}

impl IntoCommandError for StorageError {
    fn into_command_error(self) -> CommandError {
        let code = match &self {
            StorageError::Full { .. } => ErrorCode::OutOfDiskSpace,
            StorageError::Damaged { .. } => ErrorCode::DataCorruptionDetected,
            StorageError::InUse { .. } => ErrorCode::DBPathInUse,
            StorageError::RefusingWrites { .. } => ErrorCode::UserWritesBlocked,
            StorageError::TooLarge { .. } => ErrorCode::BSONObjectTooLarge,
            StorageError::NoPermission { .. } | StorageError::Io { .. } => {
                ErrorCode::FileStreamFailed
            }
            StorageError::UnknownFormat { .. } | StorageError::NotADataFolder { .. } => {
                ErrorCode::UnsupportedFormat
            }
        };
        CommandError::new(code, self.to_string())
    }
}
