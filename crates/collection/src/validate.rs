//! Validation: proves that each index agrees with its collection.
//!
//! Both sides are read at one snapshot and summed up as sets; see [`windrow_fold::EntryDigest`].
//! The documents are always read. An index's digest is known without reading it if nothing was
//! deleted since its sections were merged, because sections store their digests. Otherwise, and in
//! a full validation, the index is read with all its blocks. If the digests differ, the entries are
//! compared one by one to name the wrong ones. The entries of a unique index are always read,
//! because a digest does not show whether two records have one key.
//!
//! It takes no lock that writers or readers wait for.

mod compare;
mod conformance;
mod duplicate_keys;

use windrow_document::{Document, Value};
use windrow_fold::{EntryDigest, RecordId};
use windrow_index::{Scratch, is_mark};
use windrow_interrupt::{Interrupt, PacedInterrupt, Uninterrupted};
use windrow_storage::StorageError;

use crate::collection::Collection;
use crate::error::Error;
use crate::generation::append_id_key;
use crate::read::Reader;
use crate::rules::CurrentValidator;
use duplicate_keys::DuplicateKeys;

/// The optional parts of a validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Read all blocks of all indexes, and check the structure of all documents.
    pub full: bool,
    /// Count documents that violate BSON's specification.
    pub conformance: bool,
}

impl Checks {
    /// Checks only that the indexes agree with the documents.
    pub const QUICK: Checks = Checks {
        full: false,
        conformance: false,
    };
    /// Checks everything.
    pub const FULL: Checks = Checks {
        full: true,
        conformance: false,
    };
}

/// The result of a validation.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    /// The number of documents.
    pub documents: u64,
    /// Errors in documents.
    pub errors: Vec<String>,
    /// The record ids of corrupt documents.
    pub corrupt: Vec<RecordId>,
    /// Documents that the collection's validator rejects.
    pub refused: DocumentFindings,
    /// Other documents that violate BSON's specification.
    pub not_conforming: DocumentFindings,
    /// One report per index.
    pub indexes: Vec<IndexReport>,
    /// In a clustered collection, the report of the map by record id.
    pub records_map: Option<IndexReport>,
}

/// A number of documents, with the fault of the first.
#[derive(Clone, Debug, Default)]
pub struct DocumentFindings {
    /// The number of documents.
    pub count: u64,
    /// The fault of the first one.
    pub first: Option<String>,
}

impl DocumentFindings {
    fn record(&mut self, id: RecordId, what: &str) {
        self.count += 1;
        let first = || format!("record {}: {what}", id.0);
        self.first.get_or_insert_with(first);
    }
}

impl Validation {
    /// Returns `true` if no document and no index has an error.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty() && self.reports().all(IndexReport::is_valid)
    }

    /// Iterates over the reports of all indexes, including [`records_map`](Self::records_map).
    pub fn reports(&self) -> impl Iterator<Item = &IndexReport> {
        self.records_map.iter().chain(&self.indexes)
    }
}

/// The validation of one index.
#[derive(Clone, Debug, Default)]
pub struct IndexReport {
    /// The name of the index.
    pub name: String,
    /// The number of keys.
    pub keys: u64,
    /// The differences between the index and the documents, or the error of reading the index.
    pub errors: Vec<String>,
    /// Records that share a key of a unique index. Their documents are at fault, so rebuilding the
    /// index does not help.
    pub duplicates: Option<String>,
    /// Entries that documents have and the index lacks.
    pub missing: WrongEntries,
    /// Entries of the index that no document has.
    pub extra: WrongEntries,
}

impl IndexReport {
    /// Returns `true` if the index has no errors.
    pub fn is_valid(&self) -> bool {
        self.all_errors().next().is_none()
    }

    /// Iterates over all errors, including duplicates.
    pub fn all_errors(&self) -> impl Iterator<Item = &String> {
        self.errors.iter().chain(&self.duplicates)
    }
}

/// A number of wrong entries, with the first of them.
#[derive(Clone, Debug, Default)]
pub struct WrongEntries {
    /// The number of entries.
    pub count: u64,
    /// The first of them.
    pub first: Vec<WrongEntry>,
}

/// A missing or an extra entry.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongEntry {
    /// The key.
    pub key: Vec<u8>,
    /// The payload.
    pub payload: Vec<u8>,
    /// The record id.
    pub record: RecordId,
    /// The `_id` of the document, if it exists.
    pub id: Option<Value>,
}

impl Collection {
    /// Reads all documents, computes the entries that the indexes must have, and compares.
    pub fn validate(&self, checks: Checks) -> Result<Validation, Error> {
        self.validate_with(checks, &Uninterrupted)
    }

    /// Validates like [`validate`](Self::validate). The interrupt stops the validation.
    pub fn validate_with(
        &self,
        checks: Checks,
        interrupt: &dyn Interrupt,
    ) -> Result<Validation, Error> {
        let interrupt = &mut PacedInterrupt::new(interrupt);
        let reader = self.reader_without_age_limit()?;
        let rules = self.rules();
        let input = DocumentChecks {
            checks,
            validator: rules.current_validator(),
        };
        let mut validation = Validation::default();
        let expected = match expected_entries(&reader, &input, &mut validation, interrupt) {
            Err(error) => {
                // Without all documents the indexes cannot be checked.
                validation.errors.push(damage(error)?);
                return Ok(validation);
            }
            Ok(expected) => expected,
        };
        for (number, expected) in expected.iter().enumerate() {
            let mut report = compare::index(&reader, number, expected, checks, interrupt)?;
            if let Some(index) = reader.indexes().get(number) {
                let duplicates = expected.duplicates.error(index.definition());
                report.duplicates = report.duplicates.or(duplicates);
            }
            if reader.is_clustered() && number == 0 {
                validation.records_map = Some(report)
            } else {
                validation.indexes.push(report)
            }
        }
        Ok(validation)
    }
}

/// Returns the text of an error about damaged bytes. Passes others on.
fn damage(error: Error) -> Result<String, Error> {
    match error {
        Error::Storage(StorageError::Damaged { .. }) => Ok(error.to_string()),
        other => Err(other),
    }
}

/// The entries that an index must have, by the documents.
struct ExpectedEntries {
    digest: EntryDigest,
    /// The number of entries that are keys. The others are marks.
    keys: u64,
    /// For the clustered index of a clustered collection: documents that share an `_id`.
    duplicates: DuplicateKeys,
}

/// The checks of each document.
struct DocumentChecks<'r> {
    checks: Checks,
    validator: CurrentValidator<'r>,
}

/// Reads and checks all documents. Returns what each index must contain.
fn expected_entries(
    reader: &Reader,
    input: &DocumentChecks<'_>,
    validation: &mut Validation,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<Vec<ExpectedEntries>, Error> {
    let expected = reader.indexes().iter().map(|_| ExpectedEntries {
        digest: EntryDigest::default(),
        keys: 0,
        duplicates: DuplicateKeys::default(),
    });
    let mut expected: Vec<ExpectedEntries> = expected.collect();
    let (mut scratch, mut key) = (Scratch::default(), Vec::new());
    let mut cursor = reader.range(None, None)?;
    while cursor.next()? {
        interrupt.step()?;
        validation.documents += 1;
        let id = cursor.id();
        if input.checks.full
            && let Err(error) = Document::from_bytes(cursor.document())
        {
            validation.record_corrupt(id, &error.to_string());
            continue;
        }
        let document = Document::from_validated(cursor.document());
        if input.validator.refuses(document)? {
            validation.refused.record(id, "the validator refuses it");
        } else if input.checks.conformance
            && let Some(what) = conformance::fault(document)
        {
            validation.not_conforming.record(id, &what);
        }
        if let Some(id_index) = reader.indexes().first().filter(|_| reader.is_clustered()) {
            append_id_key(id_index.definition(), document, &mut key);
            let stored_key = cursor.bound();
            if let Some(expected) = expected.first_mut() {
                expected.duplicates.add(&stored_key, id, b"");
            }
            if key != stored_key {
                validation.record_corrupt(id, "stands elsewhere than its _id says");
            }
        }
        for (index, expected) in reader.indexes().iter().zip(&mut expected) {
            let is_clustered = index.definition().clustered;
            compare::each_entry(index, document, &mut scratch, &mut |key, payload| {
                expected.keys += u64::from(!is_mark(key));
                let payload = if is_clustered { b"" } else { payload };
                expected.digest.add(key, id, payload);
            })?;
        }
    }
    Ok(expected)
}

impl Validation {
    fn record_corrupt(&mut self, id: RecordId, what: &str) {
        self.errors.push(format!("record {}: {what}", id.0));
        self.corrupt.push(id);
    }
}
