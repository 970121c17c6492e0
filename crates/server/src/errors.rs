//! The table of errors: converts the errors of lower layers to MongoDB's codes and messages.

use windrow_access::Error as AccessError;
use windrow_collection::StorageError;
use windrow_collection::{DuplicateKey, Error as CollectionError, FailedValidation};
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef};
use windrow_invariant::Bug;
use windrow_queryable_encryption::Error as EncryptionError;
use windrow_wire::{CommandError, ErrorCode};

use crate::shell_text;

/// Fails with a code and a message.
pub fn refuse<T>(
    code: impl Into<ErrorCode>,
    message: impl Into<String>,
) -> Result<T, CommandError> {
    Err(CommandError::new(code.into(), message))
}

/// Converts an error of a lower layer to that of a command.
pub trait IntoCommandError {
    fn into_command_error(self) -> CommandError;
}

/// Converts the error of a result, for use with `?`.
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

impl IntoCommandError for AccessError {
    fn into_command_error(self) -> CommandError {
        let message = self.to_string();
        let code = match self {
            AccessError::Invalid(_)
            | AccessError::UnknownAction(_)
            | AccessError::TooManyRoles { .. } => ErrorCode::BadValue,
            AccessError::Malformed(_) | AccessError::WrongProof => ErrorCode::AuthenticationFailed,
        };
        CommandError::new(code, message)
    }
}

impl IntoCommandError for EncryptionError {
    fn into_command_error(self) -> CommandError {
        let message = self.to_string();
        let code = match self {
            EncryptionError::Invalid { code, .. } => ErrorCode(code),
            EncryptionError::Unsupported(_) => ErrorCode::NotImplemented,
            EncryptionError::Damaged(_) => ErrorCode::DataCorruptionDetected,
            EncryptionError::NoRandomNumbers(_) => ErrorCode::UnknownError,
        };
        CommandError::new(code, message)
    }
}

impl IntoCommandError for Bug {
    fn into_command_error(self) -> CommandError {
        CommandError::new(ErrorCode::UnknownError, self.to_string())
    }
}

impl IntoCommandError for CollectionError {
    fn into_command_error(self) -> CommandError {
        let message = self.to_string();
        let code = match self {
            CollectionError::Language(error) => return error.into_command_error(),
            CollectionError::Storage(error) => return error.into_command_error(),
            CollectionError::FailedValidation(failed) => return failed_validation(*failed),
            CollectionError::DuplicateKey(duplicate) => return duplicate_key(*duplicate),
            CollectionError::IndexConflict { code, .. } => ErrorCode(code),
            CollectionError::InvalidNamespace(_) => ErrorCode::InvalidNamespace,
            CollectionError::NamespaceExists(_) => ErrorCode::NamespaceExists,
            CollectionError::DatabaseDifferCase { .. } => ErrorCode::DatabaseDifferCase,
            CollectionError::NamespaceNotFound(_) => ErrorCode::NamespaceNotFound,
            CollectionError::IsView(_) => ErrorCode::CommandNotSupportedOnView,
            CollectionError::IndexNotFound(_) => ErrorCode::IndexNotFound,
            CollectionError::DocumentTooLarge { .. } => ErrorCode::BSONObjectTooLarge,
            CollectionError::SnapshotTooOld => ErrorCode::SnapshotUnavailable,
            CollectionError::SnapshotNotKept(_) => ErrorCode::SnapshotTooOld,
            CollectionError::Interrupted(interrupted) => ErrorCode(interrupted.code()),
            CollectionError::WriteConflict(_) => ErrorCode::WriteConflict,
            CollectionError::LockTimeout => ErrorCode::LockTimeout,
            CollectionError::CollectionChanged(_) => ErrorCode::SnapshotUnavailable,
            CollectionError::NotInTransaction(_) => ErrorCode::OperationNotSupportedInTransaction,
            CollectionError::TransactionTooLarge { .. } => ErrorCode::TransactionTooLarge,
            CollectionError::Bug(_) => ErrorCode::UnknownError,
            CollectionError::NoRoomForTransactions => ErrorCode::TransactionTooLargeForCache,
        };
        CommandError::new(code, message)
    }
}

/// A duplicate key in MongoDB's form. Under a collation, the strings of a key are collation keys
/// and not text, and are shown as bytes.
fn duplicate_key(duplicate: DuplicateKey) -> CommandError {
    let (namespace, index) = (&duplicate.namespace, &duplicate.index);
    let start = format!("E11000 duplicate key error collection: {namespace} index: {index}");
    let key = duplicate.key_value.as_document();
    let Some(collation) = duplicate.collation else {
        let message = format!("{start} dup key: {}", shell_text::document(key));
        return CommandError::new(ErrorCode::DuplicateKey, message)
            .with("keyPattern", duplicate.key_pattern)
            .with("keyValue", duplicate.key_value);
    };
    let shown = |digits: String| format!("CollationKey(0x{digits})");
    let message = format!(
        "{start} collation: {} dup key: {}",
        shell_text::document(collation.as_document()),
        shell_text::document(by_bytes(key, &shown).as_document())
    );
    let parts = key.iter().map(|(_, part)| part);
    let encoded: ArrayBuf = parts.map(|part| Value::from(has_strings(part))).collect();
    CommandError::new(ErrorCode::DuplicateKey, message)
        .with("keyPattern", duplicate.key_pattern)
        .with("keyValue", by_bytes(key, &|digits| digits))
        .with("collation", collation)
        .with("hexEncoded", encoded)
}

/// The key with strings replaced by hexadecimal digits, each converted by `shown`.
fn by_bytes(key: Document<'_>, shown: &dyn Fn(String) -> String) -> DocumentBuf {
    let mut all = DocumentBuf::new();
    key.iter()
        .for_each(|(name, part)| all.push(name, part_by_bytes(part, shown)));
    all
}

fn has_strings(part: ValueRef<'_>) -> bool {
    match part {
        ValueRef::String(_) => true,
        ValueRef::Document(inner) => inner.iter().any(|(_, part)| has_strings(part)),
        ValueRef::Array(inner) => inner.iter().any(has_strings),
        _ => false,
    }
}

fn part_by_bytes(part: ValueRef<'_>, shown: &dyn Fn(String) -> String) -> Value {
    match part {
        ValueRef::String(sort_key) => {
            let digits = sort_key.bytes().map(|byte| format!("{byte:02x}"));
            shown(digits.collect()).into()
        }
        ValueRef::Document(inner) => by_bytes(inner, shown).into(),
        ValueRef::Array(inner) => {
            let parts = inner.iter().map(|part| part_by_bytes(part, shown));
            parts.collect::<ArrayBuf>().into()
        }
        _ => part.to_value(),
    }
}

fn failed_validation(failed: FailedValidation) -> CommandError {
    let message = "Document failed validation";
    CommandError::new(ErrorCode::DocumentValidationFailure, message)
        .with("errInfo", failed.information)
}

impl IntoCommandError for windrow_query::Error {
    fn into_command_error(self) -> CommandError {
        match self {
            windrow_query::Error::Language(error) => error.into_command_error(),
            windrow_query::Error::Interrupted(interrupted) => {
                CommandError::new(ErrorCode(interrupted.code()), interrupted.into_message())
            }
            windrow_query::Error::Bug(bug) => bug.into_command_error(),
            windrow_query::Error::Collection(error) => error.into_command_error(),
        }
    }
}

impl IntoCommandError for StorageError {
    fn into_command_error(self) -> CommandError {
        let code = match &self {
            StorageError::Bug(_) => ErrorCode::UnknownError,
            StorageError::Full { .. } => ErrorCode::OutOfDiskSpace,
            StorageError::Damaged { .. } => ErrorCode::DataCorruptionDetected,
            StorageError::InUse { .. } => ErrorCode::DBPathInUse,
            StorageError::NotPrimary => ErrorCode::NotWritablePrimary,
            StorageError::Fenced { .. } => ErrorCode::InterruptedDueToReplStateChange,
            StorageError::RunDeleted { .. } => ErrorCode::SnapshotTooOld,
            StorageError::Unavailable { .. } => ErrorCode::HostUnreachable,
            StorageError::Unsuitable { .. } => ErrorCode::UnsupportedFormat,
            StorageError::NotKept { .. } => ErrorCode::ChangeStreamHistoryLost,
            StorageError::RefusingWrites { .. } => ErrorCode::UserWritesBlocked,
            StorageError::TooLarge { .. } => ErrorCode::BSONObjectTooLarge,
            StorageError::NoPermission { .. } | StorageError::Io { .. } => {
                ErrorCode::FileStreamFailed
            }
            StorageError::UnknownFormat { .. }
            | StorageError::NotADataFolder { .. }
            | StorageError::Encrypted { .. }
            | StorageError::NotEncrypted { .. }
            | StorageError::WrongKey { .. } => ErrorCode::UnsupportedFormat,
        };
        CommandError::new(code, self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use windrow_document::doc;

    use super::*;

    #[test]
    fn errors_have_mongodbs_codes() {
        let check = |error: CollectionError, code: i32| {
            assert_eq!(error.into_command_error().code.number(), code);
        };
        let text = || "x".to_owned();
        check(CollectionError::InvalidNamespace(text()), 73);
        check(CollectionError::NamespaceExists(text()), 48);
        check(CollectionError::NamespaceNotFound(text()), 26);
        check(CollectionError::IsView(text()), 166);
        check(CollectionError::IndexNotFound(text()), 27);
        check(CollectionError::DocumentTooLarge { bytes: 1 }, 10334);
        check(
            CollectionError::Language(windrow_mql::Error::new(171, text())),
            171,
        );
        check(StorageError::Full { place: text() }.into(), 14031);
        let damaged = StorageError::Damaged {
            place: text(),
            what: text(),
        };
        check(damaged.into(), 301);
    }

    #[test]
    fn a_duplicate_key_is_shown() {
        let duplicate = DuplicateKey {
            namespace: "a.b".to_owned(),
            index: "n_1".to_owned(),
            collation: None,
            key_pattern: doc! { "n": 1 },
            key_value: doc! { "n": "x" },
        };
        let collated = DuplicateKey {
            collation: Some(doc! { "locale": "en" }),
            key_value: doc! { "n": ")\u{1}", "m": 1 },
            ..duplicate.clone()
        };
        let error = CollectionError::DuplicateKey(Box::new(duplicate)).into_command_error();
        assert_eq!(
            error.extra,
            doc! { "keyPattern": { "n": 1 }, "keyValue": { "n": "x" } }
        );
        assert_eq!(
            error.message,
            "E11000 duplicate key error collection: a.b index: n_1 dup key: { n: \"x\" }"
        );
        let error = CollectionError::DuplicateKey(Box::new(collated)).into_command_error();
        assert_eq!(
            error.message,
            "E11000 duplicate key error collection: a.b index: n_1 collation: { locale: \"en\" } \
             dup key: { n: \"CollationKey(0x2901)\", m: 1 }"
        );
        assert_eq!(
            error.extra,
            doc! {
                "keyPattern": { "n": 1 }, "keyValue": { "n": "2901", "m": 1 },
                "collation": { "locale": "en" }, "hexEncoded": [true, false]
            }
        );
    }
}
