//! The progress of imports: those that run, and those that ended recently.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::PageError;
use crate::texts::error as texts;

/// The imports by their ids. A page draws a random id, so other pages cannot guess it.
#[derive(Debug, Default)]
pub struct Imports {
    all: Mutex<HashMap<String, Arc<Import>>>,
}

/// The progress of an import.
#[derive(Debug)]
pub struct Import {
    bytes: AtomicU64,
    documents: AtomicU64,
    is_interrupted: AtomicBool,
    end: Mutex<Option<(Instant, ImportEnd)>>,
}

/// The result of an import that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportEnd {
    /// All documents were inserted.
    Complete,
    /// The user cancelled it or left the page.
    Cancelled,
    /// It failed with this message.
    Failed(String),
}

/// The number of hexadecimal digits of an id.
const DIGITS: usize = 32;
/// The maximum number of known imports.
const IMPORTS_MAX: usize = 256;
/// The result of an import is kept for this time.
const ENDED_TIME_MAX: Duration = Duration::from_secs(600);

impl Imports {
    /// Begins an import.
    ///
    /// # Errors
    /// Fails if the id is malformed or in use, or if too many imports run.
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
            is_interrupted: AtomicBool::new(false),
            end: Mutex::new(None),
        });
        all.insert(number.to_owned(), import.clone());
        Ok(import)
    }

    /// Returns the import with an id.
    pub fn find(&self, number: &str) -> Option<Arc<Import>> {
        self.lock().get(number).cloned()
    }

    /// Removes imports that ended too long ago.
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
    /// Adds to the number of received bytes.
    pub fn add_bytes(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds to the number of inserted documents.
    pub fn add_documents(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.documents.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the number of received bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of inserted documents.
    pub fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// Requests the end of the import before its next batch.
    pub fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the end of the import was requested.
    pub fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Relaxed)
    }

    /// Records the result.
    pub fn finish(&self, end: ImportEnd) {
        *self.lock_end() = Some((Instant::now(), end));
    }

    /// Returns the result. `None` if the import still runs.
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
