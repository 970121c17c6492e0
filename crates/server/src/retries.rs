//! The reply to a retried statement of a retryable write. It is made from the stored result of the
//! first execution, if the retrying command fits to it.

use windrow_collection::{Image, StatementResult};
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode};

/// MongoDB's error codes for retries that do not fit to the stored result.
const NOT_A_REMOVAL: ErrorCode = ErrorCode(40_606);
const NO_VERSION_OF_REMOVAL: ErrorCode = ErrorCode(40_607);
const NOT_AN_UPSERT: ErrorCode = ErrorCode(40_608);
const NO_VERSION_AFTER: ErrorCode = ErrorCode(40_611);
const NO_VERSION_BEFORE: ErrorCode = ErrorCode(40_612);
const WAS_A_DELETION: ErrorCode = ErrorCode(40_638);

/// Returns the result of an update: the `_id` that it inserted, if it did.
pub fn as_update(done: &StatementResult) -> Result<Option<&DocumentBuf>, CommandError> {
    match done {
        StatementResult::Inserted(document) => Ok(Some(document)),
        StatementResult::Updated(_) => Ok(None),
        StatementResult::Deleted(_) => Err(incompatible(WAS_A_DELETION, "update", "a deletion")),
    }
}

/// Returns the result of a `findAndModify`: the document to return.
pub fn as_modification(
    done: &StatementResult,
    options: FindAndModifyOptions,
) -> Result<Option<&DocumentBuf>, CommandError> {
    let command = "findAndModify";
    match done {
        StatementResult::Deleted(Some(document)) if options.removes => Ok(Some(document)),
        StatementResult::Deleted(None) if options.removes => Err(incompatible(
            NO_VERSION_OF_REMOVAL,
            command,
            "a deletion of which the document was not kept",
        )),
        StatementResult::Deleted(_) => Err(incompatible(NOT_A_REMOVAL, command, "a deletion")),
        StatementResult::Inserted(document) if options.upserts => {
            Ok(options.new.then_some(document))
        }
        StatementResult::Inserted(_) => Err(incompatible(NOT_AN_UPSERT, command, "an insertion")),
        StatementResult::Updated(Some(Image::After(document))) if options.new => Ok(Some(document)),
        StatementResult::Updated(Some(Image::Before(document))) if !options.new => {
            Ok(Some(document))
        }
        StatementResult::Updated(_) if options.new => Err(incompatible(
            NO_VERSION_AFTER,
            command,
            "an update of which the new version was not kept",
        )),
        StatementResult::Updated(_) => Err(incompatible(
            NO_VERSION_BEFORE,
            command,
            "an update of which the old version was not kept",
        )),
    }
}

/// The options of a `findAndModify`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FindAndModifyOptions {
    pub removes: bool,
    pub upserts: bool,
    pub new: bool,
}

fn incompatible(code: ErrorCode, command: &str, what: &str) -> CommandError {
    let message = format!(
        "{command} retry request is not compatible with previous write in the transaction, {what}"
    );
    CommandError::new(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn stored_results_answer_matching_retries() {
        let document = || doc! { "_id": 1 };
        let check =
            |done: StatementResult, options: (bool, bool, bool), expected: Result<bool, i32>| {
                let (removes, upserts, new) = options;
                let options = FindAndModifyOptions {
                    removes,
                    upserts,
                    new,
                };
                let found = as_modification(&done, options).map(|found| found.is_some());
                assert_eq!(
                    found.map_err(|error| error.code.number()),
                    expected,
                    "{done:?}"
                );
            };
        let (update, new, upsert, remove) = (
            (false, false, false),
            (false, false, true),
            (false, true, false),
            (true, false, false),
        );
        check(StatementResult::Inserted(document()), update, Err(40_608));
        check(StatementResult::Inserted(document()), remove, Err(40_608));
        check(StatementResult::Inserted(document()), upsert, Ok(false));
        check(StatementResult::Deleted(Some(document())), remove, Ok(true));
        check(
            StatementResult::Deleted(Some(document())),
            update,
            Err(40_606),
        );
        check(
            StatementResult::Updated(Some(Image::Before(document()))),
            update,
            Ok(true),
        );
        check(
            StatementResult::Updated(Some(Image::Before(document()))),
            new,
            Err(40_611),
        );
        check(
            StatementResult::Updated(Some(Image::After(document()))),
            new,
            Ok(true),
        );
        check(
            StatementResult::Updated(Some(Image::After(document()))),
            remove,
            Err(40_612),
        );
        check(StatementResult::Updated(None), update, Err(40_612));
        // A deletion by `delete` had the reply of a `findAndModify` that found nothing.
        check(StatementResult::Deleted(None), remove, Err(40_607));
        assert!(as_update(&StatementResult::Deleted(None)).is_err());
        assert!(
            as_update(&StatementResult::Updated(None))
                .unwrap()
                .is_none()
        );
    }
}
