//! The results of the operations of a bulk write, one document each, and their total counts.

use windrow_document::{DocumentBuf, doc};
use windrow_wire::CommandError;

use crate::changes::{self, UpdateResult};
use crate::operations::Operation;
use crate::writes;

/// The results so far.
pub struct BulkResults {
    errors_only: bool,
    documents: Vec<DocumentBuf>,
    counts: BulkCounts,
}

/// The counts of the reply.
#[derive(Debug, Default, PartialEq)]
pub struct BulkCounts {
    errors: u64,
    inserted: u64,
    matched: u64,
    modified: u64,
    upserted: u64,
    deleted: u64,
}

impl BulkCounts {
    /// Adds the counts to the log, the profile and the metrics.
    pub fn record(&self, operation: &Operation) {
        let counts = [
            ("ninserted", self.inserted),
            ("nMatched", self.matched),
            ("nModified", self.modified),
            ("nUpserted", self.upserted),
            ("ndeleted", self.deleted),
        ];
        let some = counts.iter().filter(|(_, count)| *count > 0);
        some.for_each(|(name, count)| operation.record(name, *count as i64));
    }

    pub fn add_to(&self, reply: &mut DocumentBuf) {
        let counts = [
            ("nErrors", self.errors),
            ("nInserted", self.inserted),
            ("nMatched", self.matched),
            ("nModified", self.modified),
            ("nUpserted", self.upserted),
            ("nDeleted", self.deleted),
        ];
        counts
            .iter()
            .for_each(|(name, count)| reply.push(name, *count as i32));
    }
}

impl BulkResults {
    pub fn new(errors_only: bool) -> BulkResults {
        BulkResults {
            errors_only,
            documents: Vec::new(),
            counts: BulkCounts::default(),
        }
    }

    /// Returns `true` if an operation has failed.
    pub fn has_errors(&self) -> bool {
        self.counts.errors > 0
    }

    /// Adds the result of an insert.
    pub fn inserted(&mut self, place: usize) {
        self.counts.inserted += 1;
        self.add(place, 1, DocumentBuf::new());
    }

    /// Adds the result of an update.
    pub fn updated(&mut self, place: usize, updated: &UpdateResult) {
        let mut matched = updated.tally.matched;
        self.counts.matched += matched;
        self.counts.modified += updated.tally.changed;
        let mut rest = doc! { "nModified": (updated.tally.changed as i32) };
        if let Some(inserted) = &updated.inserted {
            self.counts.upserted += 1;
            matched += 1;
            let mut upserted = DocumentBuf::new();
            upserted.push("_id", changes::id(inserted));
            rest.push("upserted", upserted);
        }
        self.add(place, matched, rest);
    }

    /// Adds the result of a delete.
    pub fn deleted(&mut self, place: usize, count: u64) {
        self.counts.deleted += count;
        self.add(place, count, DocumentBuf::new());
    }

    /// Records the failure of an operation. Fails itself if the error ends the whole command.
    pub fn failed(
        &mut self,
        place: usize,
        is_update: bool,
        error: &CommandError,
    ) -> Result<(), CommandError> {
        if writes::ends_command(error) {
            return Err(error.clone());
        }
        self.counts.errors += 1;
        let mut result = doc! { "ok": 0.0, "idx": (place as i32), "code": (error.code.number()) };
        for (name, value) in error.extra.iter() {
            result.push(name, value);
        }
        result.push("errmsg", &error.message);
        result.push("n", 0);
        if is_update {
            result.push("nModified", 0);
        }
        self.documents.push(result);
        Ok(())
    }

    fn add(&mut self, place: usize, count: u64, rest: DocumentBuf) {
        if self.errors_only {
            return;
        }
        let mut result = doc! { "ok": 1.0, "idx": (place as i32), "n": (count as i32) };
        rest.iter()
            .for_each(|(name, value)| result.push(name, value));
        self.documents.push(result);
    }

    /// Returns the documents of the cursor, and the counts.
    pub fn finish(self) -> (Vec<DocumentBuf>, BulkCounts) {
        (self.documents, self.counts)
    }
}
