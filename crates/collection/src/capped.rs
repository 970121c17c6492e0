//! Capped collections: of limited size, the oldest documents make room for new ones.
//!
//! Documents that have to go are deleted in the log like any others, so that snapshots, recovery and
//! indexes need to know nothing of it. A crash between an insert and its deletions leaves more than is
//! allowed; the next insert puts it right.

use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use windrow_document::{Document, ValueRef};
use windrow_mql::Error as LanguageError;

use crate::collection::Collection;
use crate::error::Error;
use crate::write::{Change, DocumentValidation, Inserted};

const BAD_VALUE: i32 = 2;
const CANNOT_GROW: i32 = 10_003;

/// How much a capped collection holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    pub bytes: u64,
    /// None: as many as fit.
    pub documents: Option<u64>,
}

impl Cap {
    /// What the options of a collection say; None where it is not capped.
    pub fn of(options: Document<'_>) -> Option<Cap> {
        let number = |name| options.get(name).and_then(ValueRef::as_whole);
        let positive = |name| number(name).filter(|one| *one > 0).map(i64::unsigned_abs);
        options.get("capped").filter(|is| is.is_truthy())?;
        Some(Cap {
            bytes: positive("size").unwrap_or(0),
            documents: positive("max"),
        })
    }

    /// Refuses a document that would not fit if it were the only one.
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

    /// Refuses a new version of another size, as MongoDB does.
    pub fn check_change(&self, old: Document<'_>, new: Document<'_>) -> Result<(), Error> {
        let (old, new) = (old.as_bytes().len(), new.as_bytes().len());
        if old == new {
            return Ok(());
        }
        let message =
            format!("Cannot change the size of a document in a capped collection: {old} != {new}");
        Err(LanguageError::new(CANNOT_GROW, message).into())
    }

    fn is_exceeded(&self, documents: u64, bytes: u64) -> bool {
        bytes > self.bytes || self.documents.is_some_and(|most| documents > most)
    }
}

/// What writers of a capped collection and those who wait for its documents share.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// One insert at a time: each leaves the collection within its limits.
    inserting: Mutex<()>,
    /// How many inserts there have been.
    count: Mutex<u64>,
    arrived: Condvar,
}

impl Collection {
    pub(crate) fn insert_capped(
        &self,
        cap: &Cap,
        documents: Bytes,
        ordered: bool,
        validation: DocumentValidation,
    ) -> Result<Inserted, Error> {
        let inserting = self.arrivals.inserting.lock();
        let inserted = self.insert_uncapped(documents, ordered, validation)?;
        self.trim(cap)?;
        drop(inserting);
        *self.arrivals.count.lock() += 1;
        self.arrivals.arrived.notify_all();
        Ok(inserted)
    }

    /// Deletes the oldest documents until the rest is within the limits.
    pub(crate) fn trim(&self, cap: &Cap) -> Result<(), Error> {
        let (mut count, mut bytes) = (self.count(), self.bytes());
        if !cap.is_exceeded(count, bytes) {
            return Ok(());
        }
        let reader = self.reader()?;
        let mut oldest = reader.records(windrow_fold::Direction::Forward);
        let mut batch = self.batch();
        while cap.is_exceeded(count, bytes) && oldest.next()? {
            batch.change(oldest.id(), |_| Ok::<Change, Error>(Change::Delete))?;
            count = count.saturating_sub(1);
            bytes = bytes.saturating_sub(oldest.document().len() as u64);
        }
        batch.commit()
    }

    /// How many inserts there have been since it was opened: asked before reading, it tells
    /// [`wait_for_arrival`](Self::wait_for_arrival) what has been seen.
    pub fn arrivals(&self) -> u64 {
        *self.arrivals.count.lock()
    }

    /// Waits until there have been more inserts than so many, at most so long; whether there have.
    pub fn wait_for_arrival(&self, seen: u64, at_most: Duration) -> bool {
        let mut count = self.arrivals.count.lock();
        if *count == seen {
            self.arrivals.arrived.wait_for(&mut count, at_most);
        }
        *count > seen
    }

    /// Whether and how it is capped.
    pub fn cap(&self) -> Option<Cap> {
        self.rules().cap()
    }
}
