//! Error labels, by which drivers decide to retry a command, to restart a transaction, or to resume
//! a change stream.

use windrow_wire::{CommandError, ErrorCode};

/// The transaction cannot continue. Drivers start it again.
const TRANSIENT: &str = "TransientTransactionError";
/// A write, or the end of a transaction, can be retried.
const RETRYABLE_WRITE: &str = "RetryableWriteError";
/// The change stream can be resumed after its last event.
const RESUMABLE_STREAM: &str = "ResumableChangeStreamError";

/// Errors after which a restarted transaction can succeed.
const TRANSIENT_CODES: &[ErrorCode] = &[
    ErrorCode::WriteConflict,
    ErrorCode::LockTimeout,
    ErrorCode::PreparedTransactionInProgress,
    ErrorCode::SnapshotTooOld,
    ErrorCode::SnapshotUnavailable,
    ErrorCode::NoSuchTransaction,
];

/// Errors after which a retry can succeed, on this server after a restart, or on another one. The
/// errors of other members are caused by fail points only.
const RETRYABLE_CODES: &[ErrorCode] = &[
    ErrorCode::HostUnreachable,
    ErrorCode::HostNotFound,
    ErrorCode::NetworkTimeout,
    ErrorCode::ShutdownInProgress,
    ErrorCode::PrimarySteppedDown,
    ErrorCode::ExceededTimeLimit,
    ErrorCode::SocketException,
    ErrorCode::NotWritablePrimary,
    ErrorCode::InterruptedAtShutdown,
    ErrorCode::InterruptedDueToReplStateChange,
    ErrorCode::NotPrimaryNoSecondaryOk,
    ErrorCode::NotPrimaryOrSecondary,
];

/// Errors after which a change stream can be resumed.
const RESUMABLE_CODES: &[ErrorCode] = &[
    // StaleShardVersion
    ErrorCode(63),
    ErrorCode::FailedToSatisfyReadPreference,
    // StaleEpoch
    ErrorCode(150),
    ErrorCode::RetryChangeStream,
    // StaleConfig
    ErrorCode(13_388),
];

/// The kind of a failed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    RetryableWrite,
    InTransaction,
    EndOfTransaction,
    ChangeStream,
    Other,
}

impl FailureKind {
    /// Returns `true` for commands of a transaction.
    pub fn is_within_transaction(self) -> bool {
        matches!(
            self,
            FailureKind::InTransaction | FailureKind::EndOfTransaction
        )
    }
}

/// Returns the error with its label for this kind of command.
pub fn with_label_for(error: CommandError, failed: FailureKind) -> CommandError {
    match label(error.code, failed) {
        Some(label) => with_label(error, label),
        None => error,
    }
}

/// Returns the label of an error code.
pub fn label(code: ErrorCode, failed: FailureKind) -> Option<&'static str> {
    let is_resumable = || RESUMABLE_CODES.contains(&code);
    let is_retryable = RETRYABLE_CODES.contains(&code);
    match failed {
        FailureKind::RetryableWrite | FailureKind::EndOfTransaction => {
            is_retryable.then_some(RETRYABLE_WRITE)
        }
        FailureKind::InTransaction => is_retryable.then_some(TRANSIENT),
        FailureKind::ChangeStream => (is_retryable || is_resumable()).then_some(RESUMABLE_STREAM),
        FailureKind::Other => None,
    }
}

fn with_label(error: CommandError, label: &'static str) -> CommandError {
    if error.labels.iter().any(|known| known == label) {
        error
    } else {
        error.with_label(label)
    }
}

/// Returns the error of a command in a transaction, with a label if the transaction can be started
/// again.
pub fn with_transient_label(error: CommandError) -> CommandError {
    if TRANSIENT_CODES.contains(&error.code) {
        with_label(error, TRANSIENT)
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_labels_of_their_command() {
        let check = |code: ErrorCode, failed: FailureKind, expected: &[&str]| {
            let error = with_label_for(CommandError::new(code, "x"), failed);
            assert_eq!(error.labels, expected, "{code:?} {failed:?}");
        };
        let ends = ErrorCode::ShutdownInProgress;
        check(ends, FailureKind::RetryableWrite, &["RetryableWriteError"]);
        check(
            ends,
            FailureKind::EndOfTransaction,
            &["RetryableWriteError"],
        );
        check(
            ends,
            FailureKind::InTransaction,
            &["TransientTransactionError"],
        );
        check(
            ends,
            FailureKind::ChangeStream,
            &["ResumableChangeStreamError"],
        );
        check(ends, FailureKind::Other, &[]);
        check(
            ErrorCode::InterruptedAtShutdown,
            FailureKind::ChangeStream,
            &["ResumableChangeStreamError"],
        );
        check(ErrorCode::BadValue, FailureKind::ChangeStream, &[]);
        let stream = &["ResumableChangeStreamError"];
        check(
            ErrorCode::RetryChangeStream,
            FailureKind::ChangeStream,
            stream,
        );
        check(
            ErrorCode::RetryChangeStream,
            FailureKind::RetryableWrite,
            &[],
        );
        let write = &["RetryableWriteError"];
        check(
            ErrorCode::NotWritablePrimary,
            FailureKind::RetryableWrite,
            write,
        );
        check(
            ErrorCode::HostUnreachable,
            FailureKind::EndOfTransaction,
            write,
        );
        check(ErrorCode::MaxTimeMSExpired, FailureKind::InTransaction, &[]);
    }
}
