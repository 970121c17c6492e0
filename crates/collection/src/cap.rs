//! The limits of a capped collection, and the state that its writers share.

use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_mql::Error as LanguageError;

use crate::error::Error;
use crate::lock_order::{OrderedGuard, OrderedLock, Rank};
use crate::transaction_locks::{WaitControl, while_waiting};

const BAD_VALUE: i32 = 2;
const CANNOT_GROW: i32 = 10_003;

/// The limits of a capped collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// The maximal bytes of documents.
    pub bytes: u64,
    /// The maximal number of documents. `None`: no limit.
    pub documents: Option<u64>,
}

impl Cap {
    /// Reads the limits from the options of a collection. Returns `None` if it is not capped.
    pub fn from_options(options: Document<'_>) -> Option<Cap> {
        let number = |name| options.get(name).and_then(ValueRef::as_whole);
        let positive = |name| number(name).filter(|one| *one > 0).map(i64::unsigned_abs);
        options.get("capped").filter(|is| is.is_truthy())?;
        Some(Cap {
            bytes: positive("size").unwrap_or(0),
            documents: positive("max"),
        })
    }

    /// Returns the options of a capped collection with other limits. The next insert removes the
    /// excess documents, as in MongoDB. `documents`: 0 is no limit.
    pub fn resized(
        options: Document<'_>,
        bytes: Option<u64>,
        documents: Option<u64>,
    ) -> DocumentBuf {
        let mut new = DocumentBuf::new();
        for (name, value) in options.iter() {
            match (name, bytes) {
                ("size", Some(bytes)) => new.push(name, bytes as i64),
                ("max", _) if documents.is_some() => {}
                _ => new.push(name, value),
            }
        }
        if let Some(documents) = documents.filter(|documents| *documents > 0) {
            new.push("max", documents as i64);
        }
        new
    }

    /// Rejects a document that exceeds the limits by itself.
    pub fn check(&self, document: Document<'_>) -> Result<(), Error> {
        let bytes = document.as_bytes().len() as u64;
        if bytes <= self.bytes {
            return Ok(());
        }
        let message = format!(
            "object to insert exceeds cappedMaxSize: {bytes} bytes, the limit is {}",
            self.bytes
        );
        Err(LanguageError::new(BAD_VALUE, message).into())
    }

    /// Rejects a new version of another size, as MongoDB does.
    pub fn check_change(&self, old: Document<'_>, new: Document<'_>) -> Result<(), Error> {
        let (old, new) = (old.as_bytes().len(), new.as_bytes().len());
        if old == new {
            return Ok(());
        }
        let message =
            format!("Cannot change the size of a document in a capped collection: {old} != {new}");
        Err(LanguageError::new(CANNOT_GROW, message).into())
    }

    pub(crate) fn is_exceeded(&self, documents: u64, bytes: u64) -> bool {
        bytes > self.bytes || self.documents.is_some_and(|most| documents > most)
    }
}

/// The state that the writers of a capped collection share.
#[derive(Debug)]
pub(crate) struct CappedInserts {
    inserting: OrderedLock,
}

impl Default for CappedInserts {
    fn default() -> CappedInserts {
        CappedInserts {
            inserting: OrderedLock::new(Rank::CappedInsert),
        }
    }
}

impl CappedInserts {
    /// Waits until no other insert runs. Each insert leaves the collection within its limits.
    pub fn begin(&self, wait_control: &dyn WaitControl) -> OrderedGuard<'_> {
        let waiting = || while_waiting(wait_control, || self.inserting.lock());
        self.inserting.try_lock().unwrap_or_else(waiting)
    }
}
