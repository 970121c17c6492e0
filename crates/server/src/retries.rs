//! What the statements of a retryable write have done, so that they are not done again.
//!
//! The answer to a statement that is sent again is made of what the first one did, as far as the
//! command that asks can be answered with it.

use std::collections::BTreeMap;

use windrow_document::{DocumentBuf, Value};
use windrow_wire::{CommandError, ErrorCode};

/// What a statement has done to a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    Inserted(DocumentBuf),
    /// With the version that its command gave, where it gave one.
    Updated(Option<Image>),
    /// With the document, where the command gave it.
    Deleted(Option<DocumentBuf>),
}

/// A version of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Image {
    Before(DocumentBuf),
    After(DocumentBuf),
}

/// The number of a statement that is not to be remembered, and of one that says that some are not.
const UNNUMBERED: i32 = -1;
const INCOMPLETE: i32 = -2;

/// See the module.
#[derive(Debug, Default)]
pub struct Retries {
    done: BTreeMap<i32, Done>,
    is_incomplete: bool,
}

impl Retries {
    pub fn note(&mut self, statement: i32, done: Done) {
        match statement {
            UNNUMBERED => {}
            INCOMPLETE => self.is_incomplete = true,
            _ => _ = self.done.insert(statement, done),
        }
    }

    /// What a statement has done; None where it has done nothing.
    pub fn done(&self, statement: i32) -> Result<Option<Done>, CommandError> {
        match self.done.get(&statement) {
            None if self.is_incomplete => Err(CommandError::new(
                ErrorCode::IncompleteTransactionHistory,
                format!("whether statement {statement} has been executed is not known"),
            )),
            found => Ok(found.cloned()),
        }
    }
}

/// MongoDB's codes of answers that what was done does not give.
const NOT_A_REMOVAL: ErrorCode = ErrorCode(40_606);
const NOT_AN_UPSERT: ErrorCode = ErrorCode(40_608);
const NO_VERSION_AFTER: ErrorCode = ErrorCode(40_611);
const NO_VERSION_BEFORE: ErrorCode = ErrorCode(40_612);
const WAS_A_DELETION: ErrorCode = ErrorCode(40_638);

impl Done {
    /// As the answer to an update: the `_id` that it upserted, where it did.
    pub fn as_update(&self) -> Result<Option<&DocumentBuf>, CommandError> {
        match self {
            Done::Inserted(document) => Ok(Some(document)),
            Done::Updated(_) => Ok(None),
            Done::Deleted(_) => Err(incompatible(WAS_A_DELETION, "update", "a deletion")),
        }
    }

    /// As the answer to a `findAndModify`: what it is to give.
    pub fn as_modification(
        &self,
        asked: Modification,
    ) -> Result<Option<&DocumentBuf>, CommandError> {
        let command = "findAndModify";
        match self {
            Done::Deleted(document) if asked.removes => Ok(document.as_ref()),
            Done::Deleted(_) => Err(incompatible(NOT_A_REMOVAL, command, "a deletion")),
            Done::Inserted(document) if asked.upserts => Ok(asked.new.then_some(document)),
            Done::Inserted(_) => Err(incompatible(NOT_AN_UPSERT, command, "an insertion")),
            Done::Updated(Some(Image::After(document))) if asked.new => Ok(Some(document)),
            Done::Updated(Some(Image::Before(document))) if !asked.new => Ok(Some(document)),
            Done::Updated(_) if asked.new => Err(incompatible(
                NO_VERSION_AFTER,
                command,
                "an update of which the new version was not kept",
            )),
            Done::Updated(_) => Err(incompatible(
                NO_VERSION_BEFORE,
                command,
                "an update of which the old version was not kept",
            )),
        }
    }

    /// The document's `_id`, of an insertion.
    pub fn inserted_id(&self) -> Option<Value> {
        match self {
            Done::Inserted(document) => document.get("_id").map(|id| id.to_value()),
            _ => None,
        }
    }
}

/// What a `findAndModify` asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modification {
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
    fn what_was_done_answers_what_fits_it() {
        let document = || doc! { "_id": 1 };
        let check = |done: Done, asked: (bool, bool, bool), expected: Result<bool, i32>| {
            let (removes, upserts, new) = asked;
            let asked = Modification {
                removes,
                upserts,
                new,
            };
            let found = done.as_modification(asked).map(|found| found.is_some());
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
        check(Done::Inserted(document()), update, Err(40_608));
        check(Done::Inserted(document()), remove, Err(40_608));
        check(Done::Inserted(document()), upsert, Ok(false));
        check(Done::Deleted(Some(document())), remove, Ok(true));
        check(Done::Deleted(Some(document())), update, Err(40_606));
        check(
            Done::Updated(Some(Image::Before(document()))),
            update,
            Ok(true),
        );
        check(
            Done::Updated(Some(Image::Before(document()))),
            new,
            Err(40_611),
        );
        check(Done::Updated(Some(Image::After(document()))), new, Ok(true));
        check(
            Done::Updated(Some(Image::After(document()))),
            remove,
            Err(40_612),
        );
        check(Done::Updated(None), update, Err(40_612));
        assert!(Done::Deleted(None).as_update().is_err());
        assert!(Done::Updated(None).as_update().unwrap().is_none());
    }

    #[test]
    fn statements_that_cannot_be_remembered_are_not() {
        let mut retries = Retries::default();
        retries.note(-1, Done::Updated(None));
        assert_eq!(retries.done(-1).unwrap(), None);
        retries.note(4, Done::Updated(None));
        assert_eq!(retries.done(4).unwrap(), Some(Done::Updated(None)));
        retries.note(-2, Done::Updated(None));
        assert!(retries.done(4).is_ok() && retries.done(5).is_err());
    }
}
