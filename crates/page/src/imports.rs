//! Imports that go on, and the newest that have ended: how far they are, for the page that began them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::PageError;
use crate::texts::error as texts;

/// The imports by their numbers. A page draws its number at random, so other pages do not know it.
#[derive(Debug, Default)]
pub struct Imports {
    all: Mutex<HashMap<String, Arc<Import>>>,
}

/// How far an import is.
#[derive(Debug)]
pub struct Import {
    bytes: AtomicU64,
    documents: AtomicU64,
    is_cancelled: AtomicBool,
    end: Mutex<Option<(Instant, ImportEnd)>>,
}

/// How an import has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportEnd {
    /// All documents are there.
    Complete,
    /// Its person has cancelled it, or has left the page.
    Cancelled,
    /// An error, in a sentence.
    Failed(String),
}

/// The hexadecimal digits of a number.
const DIGITS: usize = 32;
/// So many imports are known at a time.
const IMPORTS_MAX: usize = 256;
/// So long an import is known after its end.
const ENDED_TIME_MAX: Duration = Duration::from_secs(600);

impl Imports {
    /// Begins an import.
    ///
    /// # Errors
    /// Fails if the number is none or known, or if there are too many.
    pub fn begin(&self, number: &str) -> Result<Arc<Import>, PageError> {
        let is_number = number.len() == DIGITS && number.bytes().all(|it| it.is_ascii_hexdigit());
        let mut all = self.lock();
        if !is_number || all.contains_key(number) {
            return Err(PageError::bad_request(texts::NO_IMPORT));
        }
        if all.len() >= IMPORTS_MAX {
            all.retain(|_, import| import.end().is_none());
        }
        if all.len() >= IMPORTS_MAX {
            return Err(PageError::unavailable(&texts::IMPORTS_MAX));
        }
        let import = Arc::new(Import {
            bytes: AtomicU64::new(0),
            documents: AtomicU64::new(0),
            is_cancelled: AtomicBool::new(false),
            end: Mutex::new(None),
        });
        all.insert(number.to_owned(), import.clone());
        Ok(import)
    }

    /// Returns an import.
    pub fn find(&self, number: &str) -> Option<Arc<Import>> {
        self.lock().get(number).cloned()
    }

    /// Forgets imports that have ended a while ago.
    pub fn clean(&self) {
        self.lock().retain(|_, import| {
            let end = import.lock_end();
            end.as_ref()
                .is_none_or(|(at, _)| at.elapsed() < ENDED_TIME_MAX)
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Import>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Import {
    /// Records bytes that were received.
    pub fn add_bytes(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }

    /// Records documents that were inserted.
    pub fn add_documents(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.documents.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the bytes that were received.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the documents that were inserted.
    pub fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// Ends the import before its next batch.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the import is to end.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Records the end.
    pub fn finish(&self, end: ImportEnd) {
        *self.lock_end() = Some((Instant::now(), end));
    }

    /// Returns how it has ended. `None` if it goes on.
    pub fn end(&self) -> Option<ImportEnd> {
        self.lock_end().as_ref().map(|(_, end)| end.clone())
    }

    fn lock_end(&self) -> MutexGuard<'_, Option<(Instant, ImportEnd)>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_known_by_their_numbers() {
        let imports = Imports::default();
        let number = "0123456789abcdef".repeat(2);
        let import = imports.begin(&number).unwrap();
        import.add_documents(3);
        assert_eq!(imports.find(&number).unwrap().documents(), 3);
        for wrong in ["", "0", &number, &"x".repeat(DIGITS)] {
            assert!(imports.begin(wrong).is_err(), "{wrong}");
        }
        import.finish(ImportEnd::Cancelled);
        imports.clean();
        assert_eq!(import.end(), Some(ImportEnd::Cancelled));
        assert!(imports.find(&number).is_some());
    }

    #[test]
    fn ended_imports_make_room() {
        let imports = Imports::default();
        let number = |count: usize| format!("{count:032x}");
        let first = imports.begin(&number(0)).unwrap();
        for count in 1..IMPORTS_MAX {
            imports.begin(&number(count)).unwrap();
        }
        let error = imports.begin(&number(IMPORTS_MAX)).unwrap_err();
        assert!(error.message.contains("Too many"), "{error}");
        first.finish(ImportEnd::Complete);
        assert!(imports.begin(&number(IMPORTS_MAX)).is_ok());
    }
}
