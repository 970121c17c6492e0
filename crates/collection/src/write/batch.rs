//! Updates and deletions: the newest version of a document is locked, shown, and changed.
//!
//! A batch collects changes of several documents for one log record. It holds the locks of its
//! documents until they are in the log. It waits for a lock only while it holds none, so batches
//! cannot wait for each other in a circle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::MutexGuard;
use windrow_document::{Document, DocumentBuf};
use windrow_index::Scratch;

use super::checks::{DocumentValidation, check_fits};
use super::entries::entries_of;
use super::unique::holder;
use crate::claims::{Added, Claim};
use crate::collection::Collection;
use crate::error::Error;
use crate::index::Index;
use crate::read::{Reader, RecordId};
use crate::record::{self, IndexChange};
use crate::rules::Verdict;

/// What is to become of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Keep,
    /// The new version; its `_id` is the old one's.
    Replace(DocumentBuf),
    Delete,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is no such document any more.
    Gone,
    Kept,
    Replaced,
    Deleted,
}

/// A log record is written when so many bytes or changes have come together.
const BYTES_MAX: usize = 1 << 20;
const CHANGES_MAX: usize = 1000;
/// Locks are held about so long at most while nothing else is found to change.
const HELD_MAX: Duration = Duration::from_millis(20);

/// See the module. What was not committed when it is dropped did not happen.
pub struct Batch<'c> {
    collection: &'c Collection,
    payload: Vec<u8>,
    ids: Vec<RecordId>,
    locks: BTreeMap<usize, MutexGuard<'c, ()>>,
    claim: Claim<'c>,
    schema: Option<parking_lot::RwLockReadGuard<'c, ()>>,
    /// Since when it has held the schema.
    since: Instant,
    validation: DocumentValidation,
}

/// A key that comes to a unique index.
struct UniqueKey {
    index: Arc<Index>,
    key: Vec<u8>,
    shape: Vec<u8>,
}

impl Collection {
    /// Begins a batch of changes.
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            collection: self,
            payload: record::begin(self.id),
            ids: Vec::new(),
            locks: BTreeMap::new(),
            claim: self.claims.begin(),
            schema: None,
            since: Instant::now(),
            validation: DocumentValidation::Asked,
        }
    }
}

impl<'c> Batch<'c> {
    /// The same batch with or without the collection's validator.
    pub fn with_validation(mut self, validation: DocumentValidation) -> Batch<'c> {
        self.validation = validation;
        self
    }

    /// Locks a document and makes of its newest version what `decide` says.
    pub fn change<E: From<Error>>(
        &mut self,
        id: RecordId,
        decide: impl FnOnce(Document<'_>) -> Result<Change, E>,
    ) -> Result<Outcome, E> {
        self.change_found(id, |reader| reader.get(id), decide)
    }

    /// As [`change`](Self::change), of a document of which some version has been seen: so it is found
    /// faster.
    pub fn change_seen<E: From<Error>>(
        &mut self,
        id: RecordId,
        seen: Document<'_>,
        decide: impl FnOnce(Document<'_>) -> Result<Change, E>,
    ) -> Result<Outcome, E> {
        self.change_found(id, |reader| reader.get_seen(id, seen), decide)
    }

    fn change_found<E: From<Error>>(
        &mut self,
        id: RecordId,
        find: impl FnOnce(&Reader) -> Result<Option<Bytes>, Error>,
        decide: impl FnOnce(Document<'_>) -> Result<Change, E>,
    ) -> Result<Outcome, E> {
        self.lock(id)?;
        let newest = find(&self.collection.reader()?)?;
        let Some(bytes) = newest else {
            return Ok(Outcome::Gone);
        };
        let old = Document::from_validated(&bytes);
        let outcome = match decide(old)? {
            Change::Keep => Outcome::Kept,
            Change::Replace(new) => {
                self.replace(id, old, new.as_document())?;
                Outcome::Replaced
            }
            Change::Delete => {
                self.delete(id, old)?;
                Outcome::Deleted
            }
        };
        if self.payload.len() >= BYTES_MAX || self.ids.len() >= CHANGES_MAX {
            self.commit()?;
        }
        Ok(outcome)
    }

    /// Holds the document's lock; commits first where waiting for it could be waiting in a circle,
    /// or where this batch has changed the document already.
    fn lock(&mut self, id: RecordId) -> Result<(), Error> {
        if self.ids.contains(&id) {
            self.commit()?;
        }
        if self.schema.is_none() {
            self.collection.admit()?;
        }
        let locks = &self.collection.document_locks;
        let slot = self.slot(id);
        if !self.locks.contains_key(&slot) {
            let lock = locks
                .get(slot)
                .ok_or_else(|| Error::Interrupted("no lock".to_owned()))?;
            let guard = match lock.try_lock() {
                Some(guard) => guard,
                None => {
                    self.commit()?;
                    lock.lock()
                }
            };
            self.locks.insert(slot, guard);
        }
        if self.schema.is_none() {
            self.schema = Some(self.collection.schema.read_recursive());
            self.since = Instant::now();
        }
        Ok(())
    }

    fn replace(&mut self, id: RecordId, old: Document<'_>, new: Document<'_>) -> Result<(), Error> {
        let bytes = new.as_bytes().len();
        if bytes > crate::DOCUMENT_BYTES_MAX {
            return Err(Error::DocumentTooLarge { bytes });
        }
        if let Some(cap) = self.collection.cap() {
            cap.check_change(old, new)?;
        }
        if self.validation.is_asked() {
            self.validate(old, new)?;
        }
        let mut scratch = Scratch::default();
        let mut changes = Vec::new();
        let mut unique = Vec::new();
        for state in &self.collection.state().indexes {
            let index = &state.index;
            if index.definition.is_of_ids() || !is_touched(index, old, new) {
                continue;
            }
            check_fits(&index.definition, new, &mut scratch)?;
            let change = difference(index, old, new, &mut scratch)?;
            if index.refuses_doubles() {
                unique.extend(change.come.iter().map(|(key, shape)| UniqueKey {
                    index: index.clone(),
                    key: key.clone(),
                    shape: shape.clone(),
                }));
            }
            if !(change.gone.is_empty() && change.come.is_empty()) {
                changes.push(change);
            }
        }
        unique.sort_by(|a, b| (a.index.map, &a.key).cmp(&(b.index.map, &b.key)));
        self.claim(&unique, id)?;
        record::push_update(&mut self.payload, id.0, old.as_bytes().len(), new, &changes);
        self.ids.push(id);
        Ok(())
    }

    fn validate(&self, old: Document<'_>, new: Document<'_>) -> Result<(), Error> {
        match self.collection.rules().check(new, Some(old))? {
            Verdict::Accepted => Ok(()),
            Verdict::Warned(warning) => {
                self.collection.warn(&warning);
                Ok(())
            }
            Verdict::Refused(error) => Err(error),
        }
    }

    /// Claims the unique keys that come to a record, which are in order. What this batch has changed
    /// before is written first: it may free a key, and must not hold one while this waits.
    fn claim(&mut self, unique: &[UniqueKey], own: RecordId) -> Result<(), Error> {
        if unique.is_empty() {
            return Ok(());
        }
        self.flush(Some(own))?;
        let mut look_up = Vec::new();
        for wanted in unique {
            let added = self.claim.add(wanted.index.map, &wanted.key, false);
            if added == Added::LookUp {
                look_up.push(wanted);
            }
        }
        let reader = self.collection.reader()?;
        for UniqueKey { index, key, shape } in look_up {
            if holder(&reader, index, key, Some(own))? {
                return Err(self.collection.duplicate(index, key, shape));
            }
        }
        Ok(())
    }

    fn delete(&mut self, id: RecordId, old: Document<'_>) -> Result<(), Error> {
        let mut scratch = Scratch::default();
        let mut changes = Vec::new();
        for state in &self.collection.state().indexes {
            let gone: Vec<Vec<u8>> = entries_of(&state.index, old, &mut scratch)?
                .into_keys()
                .collect();
            if !gone.is_empty() {
                changes.push(IndexChange {
                    map: state.index.map,
                    gone,
                    come: Vec::new(),
                });
            }
        }
        record::push_delete(&mut self.payload, id.0, old.as_bytes().len(), &changes);
        self.ids.push(id);
        Ok(())
    }

    /// Writes what has come together, and lets go of the locks.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.flush(None)
    }

    /// Commits where it has held locks for long: asked now and then by who looks for more documents to
    /// change, and may not find any for a long time.
    pub fn commit_if_old(&mut self) -> Result<(), Error> {
        match self.schema.is_some() && self.since.elapsed() >= HELD_MAX {
            true => self.commit(),
            false => Ok(()),
        }
    }

    /// As [`commit`](Self::commit), but keeps the lock of a document that is being looked at.
    fn flush(&mut self, keep: Option<RecordId>) -> Result<(), Error> {
        let written = if self.ids.is_empty() {
            Ok(())
        } else {
            self.append()
        };
        self.ids.clear();
        self.payload = record::begin(self.collection.id);
        self.claim = self.collection.claims.begin();
        match keep {
            Some(id) => {
                let kept = self.slot(id);
                self.locks.retain(|slot, _| *slot == kept);
            }
            None => {
                self.locks.clear();
                self.schema = None;
            }
        }
        written
    }

    fn slot(&self, id: RecordId) -> usize {
        id.0 as usize % self.collection.document_locks.len()
    }

    fn append(&mut self) -> Result<(), Error> {
        let payload = Bytes::from(std::mem::take(&mut self.payload));
        let decoded = record::decode(0, payload.clone());
        let Some((commit, effect)) = decoded else {
            return Err(Error::Interrupted(
                "a log record that cannot be read back".to_owned(),
            ));
        };
        if self.collection.state().dropped {
            return Err(Error::NamespaceNotFound(
                self.collection.namespace().to_string(),
            ));
        }
        self.collection
            .append(&[&payload], commit.operations, commit.bytes, effect)
    }
}

/// Whether a change of the document can change its entries: false only where every value that the
/// index looks at has the same bytes.
fn is_touched(index: &Index, old: Document<'_>, new: Document<'_>) -> bool {
    let definition = &index.definition;
    if !definition.reads_only_its_paths() {
        return true;
    }
    let top = |document: Document<'_>, name: &str| {
        let mut elements = document.elements();
        let found = std::iter::from_fn(|| elements.next_raw())
            .find(|element| element.name == name.as_bytes());
        found.map(|element| (element.type_of, element.bytes.to_vec()))
    };
    definition
        .fields
        .iter()
        .filter_map(|field| field.path.components().first())
        .any(|part| top(old, part.name()) != top(new, part.name()))
}

fn difference(
    index: &Index,
    old: Document<'_>,
    new: Document<'_>,
    scratch: &mut Scratch,
) -> Result<IndexChange, Error> {
    let before = entries_of(index, old, scratch)?;
    let after = entries_of(index, new, scratch)?;
    let gone = before
        .keys()
        .filter(|key| !after.contains_key(*key))
        .cloned()
        .collect();
    let come = after
        .into_iter()
        .filter(|(key, payload)| before.get(key) != Some(payload));
    Ok(IndexChange {
        map: index.map,
        gone,
        come: come.collect(),
    })
}
