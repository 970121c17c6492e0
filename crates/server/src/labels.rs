//! Labels of errors: what drivers decide by, whether they send a command again, begin a transaction
//! anew or open a change stream again where it stood.

use windrow_wire::{CommandError, ErrorCode};

/// That no transaction can go on: drivers begin it anew.
const TRANSIENT: &str = "TransientTransactionError";
/// That a write or an end of a transaction may be sent again.
const RETRYABLE_WRITE: &str = "RetryableWriteError";
/// That a change stream may be opened again at what it told last.
const RESUMABLE_STREAM: &str = "ResumableChangeStreamError";

/// Errors after which a transaction that is begun anew may do.
const TRANSIENT_CODES: &[ErrorCode] = &[
    ErrorCode::WriteConflict,
    ErrorCode::LockTimeout,
    ErrorCode::SnapshotTooOld,
    ErrorCode::SnapshotUnavailable,
    ErrorCode::NoSuchTransaction,
];

/// Errors after which the same may do, at this server once it has started again or at another.
const RETRYABLE_CODES: &[ErrorCode] = &[
    ErrorCode::ShutdownInProgress,
    ErrorCode::InterruptedAtShutdown,
    ErrorCode::ExceededTimeLimit,
];

/// What a command was that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    RetryableWrite,
    InTransaction,
    EndOfTransaction,
    ChangeStream,
    Other,
}

/// The error of a command that may go on at a server that has started again, with its label.
pub fn labelled_as(error: CommandError, failed: Failed) -> CommandError {
    let label = match failed {
        Failed::RetryableWrite | Failed::EndOfTransaction => RETRYABLE_WRITE,
        Failed::InTransaction => TRANSIENT,
        Failed::ChangeStream => RESUMABLE_STREAM,
        Failed::Other => return error,
    };
    match RETRYABLE_CODES.contains(&error.code) && !error.labels.contains(&label) {
        true => error.with_label(label),
        false => error,
    }
}

/// The error of a command within a transaction that may do where it is begun anew, with its label.
pub fn labelled(error: CommandError) -> CommandError {
    match TRANSIENT_CODES.contains(&error.code) && !error.labels.contains(&TRANSIENT) {
        true => error.with_label(TRANSIENT),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_the_label_of_what_failed() {
        let check = |code: ErrorCode, failed: Failed, expected: &[&str]| {
            let error = labelled_as(CommandError::new(code, "x"), failed);
            assert_eq!(error.labels, expected, "{code:?} {failed:?}");
        };
        let ends = ErrorCode::ShutdownInProgress;
        check(ends, Failed::RetryableWrite, &["RetryableWriteError"]);
        check(ends, Failed::EndOfTransaction, &["RetryableWriteError"]);
        check(ends, Failed::InTransaction, &["TransientTransactionError"]);
        check(ends, Failed::ChangeStream, &["ResumableChangeStreamError"]);
        check(ends, Failed::Other, &[]);
        check(
            ErrorCode::InterruptedAtShutdown,
            Failed::ChangeStream,
            &["ResumableChangeStreamError"],
        );
        check(ErrorCode::BadValue, Failed::ChangeStream, &[]);
        check(ErrorCode::MaxTimeMSExpired, Failed::InTransaction, &[]);
    }
}
