//! Proof that every index says what its collection says.
//!
//! Both sides are read at one snapshot and with_digest up as sets: see [`windrow_fold::EntryDigest`]. The
//! documents' side is always read. The indexes' side is known without reading where nothing was deleted
//! since their sections were merged, since sections keep the sums of their entries; otherwise, and in a
//! full validation, it is read too, and with it every block. Where sums differ the entries are compared
//! one by one, to name those that are wrong. Of a unique index the entries are always read, since sums do
//! not tell whether two records stand under one key.
//!
//! No lock is taken that writers or readers wait for.

mod compare;
mod conformance;
mod duplicate_keys;

use windrow_document::{Document, Value};
use windrow_fold::{EntryDigest, RecordId};
use windrow_index::{Scratch, is_mark};
use windrow_storage::StorageError;

use crate::collection::Collection;
use crate::error::Error;
use crate::generation::append_id_key;
use crate::read::Reader;
use crate::rules::Judge;
use duplicate_keys::DuplicateKeys;

/// What is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Every block of every index is read, and the structure of every document looked at.
    pub full: bool,
    /// Documents that BSON's specification would have otherwise are counted.
    pub conformance: bool,
}

impl Checks {
    pub const QUICK: Checks = Checks {
        full: false,
        conformance: false,
    };
    pub const FULL: Checks = Checks {
        full: true,
        conformance: false,
    };
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    pub documents: u64,
    /// What is wrong with documents.
    pub errors: Vec<String>,
    /// The records of those.
    pub corrupt: Vec<RecordId>,
    /// Documents that the collection's validator refuses.
    pub refused: DocumentFindings,
    /// Others that do not conform to BSON's specification.
    pub not_conforming: DocumentFindings,
    pub indexes: Vec<IndexReport>,
    /// Of a clustered collection: the index that it is, as far as it is kept beside the documents.
    pub of_ids: Option<IndexReport>,
}

/// So many documents, and what is the matter with the first.
#[derive(Clone, Debug, Default)]
pub struct DocumentFindings {
    pub count: u64,
    pub first: Option<String>,
}

impl DocumentFindings {
    fn note(&mut self, id: RecordId, what: &str) {
        self.count += 1;
        let first = || format!("record {}: {what}", id.0);
        self.first.get_or_insert_with(first);
    }
}

impl Validation {
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty() && self.reports().all(IndexReport::is_valid)
    }

    /// Of all indexes, also of the one that a clustered collection is.
    pub fn reports(&self) -> impl Iterator<Item = &IndexReport> {
        self.of_ids.iter().chain(&self.indexes)
    }
}

#[derive(Clone, Debug, Default)]
pub struct IndexReport {
    pub name: String,
    pub keys: u64,
    /// What it says otherwise than the documents, or does not say at all.
    pub errors: Vec<String>,
    /// Of a unique index: records that share a key. That is the documents' fault: made anew, the index has
    /// them again.
    pub duplicates: Option<String>,
    /// Entries that documents have and the index lacks.
    pub missing: WrongEntries,
    /// Entries of the index that are no document's.
    pub extra: WrongEntries,
}

impl IndexReport {
    pub fn is_valid(&self) -> bool {
        self.all_errors().next().is_none()
    }

    /// What is wrong with it, whosever fault it is.
    pub fn all_errors(&self) -> impl Iterator<Item = &String> {
        self.errors.iter().chain(&self.duplicates)
    }
}

/// So many, and the first of them.
#[derive(Clone, Debug, Default)]
pub struct WrongEntries {
    pub count: u64,
    pub first: Vec<WrongEntry>,
}

/// An entry that is missing, or that is one too many.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongEntry {
    pub key: Vec<u8>,
    /// What stands beside the key.
    pub payload: Vec<u8>,
    pub record: RecordId,
    /// The `_id` of the document, where there is one.
    pub id: Option<Value>,
}

impl Collection {
    /// Reads all documents, sums up what must stand in the indexes, and compares.
    pub fn validate(&self, checks: Checks) -> Result<Validation, Error> {
        self.validate_while(checks, &|| None)
    }

    /// The same. `should_stop` is asked now and then, and says why.
    pub fn validate_while(
        &self,
        checks: Checks,
        should_stop: &dyn Fn() -> Option<String>,
    ) -> Result<Validation, Error> {
        let pace = &mut Pace {
            should_stop,
            steps: 0,
        };
        let reader = self.lasting_reader()?;
        let rules = self.rules();
        let input = ValidationInput {
            checks,
            judge: rules.judge(),
        };
        let mut validation = Validation::default();
        let expected = match of_documents(&reader, &input, &mut validation, pace) {
            Err(error) => {
                // Without all documents nothing can be said of indexes.
                validation.errors.push(damage(error)?);
                return Ok(validation);
            }
            Ok(expected) => expected,
        };
        for (number, expected) in expected.iter().enumerate() {
            let mut report = compare::index(&reader, number, expected, checks, pace)?;
            if let Some(index) = reader.indexes().get(number) {
                let of_documents = expected.duplicates.error(index.definition());
                report.duplicates = report.duplicates.or(of_documents);
            }
            if reader.is_clustered() && number == 0 {
                validation.of_ids = Some(report)
            } else {
                validation.indexes.push(report)
            }
        }
        Ok(validation)
    }
}

/// Documents and entries between two questions.
const STEPS_PER_QUESTION: u32 = 1000;

/// Counts documents and entries, and asks now and then whether to go on.
struct Pace<'a> {
    should_stop: &'a dyn Fn() -> Option<String>,
    steps: u32,
}

impl Pace<'_> {
    fn step(&mut self) -> Result<(), Error> {
        self.steps += 1;
        if !self.steps.is_multiple_of(STEPS_PER_QUESTION) {
            return Ok(());
        }
        self.ask()
    }

    fn ask(&self) -> Result<(), Error> {
        (self.should_stop)().map_or(Ok(()), |why| Err(Error::Interrupted(why)))
    }
}

/// The text of an error that names damaged bytes; others are passed on.
fn damage(error: Error) -> Result<String, Error> {
    match error {
        Error::Storage(StorageError::Damaged { .. }) => Ok(error.to_string()),
        other => Err(other),
    }
}

/// What the documents say of an index.
struct Expected {
    sum: EntryDigest,
    /// How many of the entries are keys; others are marks.
    keys: u64,
    /// Of the index that a clustered collection is: what its documents stand by.
    duplicates: DuplicateKeys,
}

/// What documents are held against.
struct ValidationInput<'r> {
    checks: Checks,
    judge: Judge<'r>,
}

/// Reads all documents.
fn of_documents(
    reader: &Reader,
    input: &ValidationInput<'_>,
    validation: &mut Validation,
    pace: &mut Pace<'_>,
) -> Result<Vec<Expected>, Error> {
    let expected = reader.indexes().iter().map(|_| Expected {
        sum: EntryDigest::default(),
        keys: 0,
        duplicates: DuplicateKeys::default(),
    });
    let mut expected: Vec<Expected> = expected.collect();
    let (mut scratch, mut key) = (Scratch::default(), Vec::new());
    let mut cursor = reader.range(None, None)?;
    while cursor.next()? {
        pace.step()?;
        validation.documents += 1;
        let id = cursor.id();
        if input.checks.full
            && let Err(error) = Document::from_bytes(cursor.document())
        {
            validation.record_corrupt(id, &error.to_string());
            continue;
        }
        let document = Document::from_validated(cursor.document());
        if input.judge.refuses(document)? {
            validation.refused.note(id, "the validator refuses it");
        } else if input.checks.conformance
            && let Some(what) = conformance::fault(document)
        {
            validation.not_conforming.note(id, &what);
        }
        if let Some(of_ids) = reader.indexes().first().filter(|_| reader.is_clustered()) {
            append_id_key(of_ids.definition(), document, &mut key);
            let place = cursor.place();
            if let Some(of_ids) = expected.first_mut() {
                of_ids.duplicates.note(&place, id, b"");
            }
            if key != place {
                validation.record_corrupt(id, "stands elsewhere than its _id says");
            }
        }
        for (index, expected) in reader.indexes().iter().zip(&mut expected) {
            let is_clustered = index.definition().clustered;
            compare::each_entry(index, document, &mut scratch, &mut |key, payload| {
                expected.keys += u64::from(!is_mark(key));
                let payload = if is_clustered { b"" } else { payload };
                expected.sum.add(key, id, payload);
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
