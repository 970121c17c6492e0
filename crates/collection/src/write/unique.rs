//! Unique keys: claimed, then looked up.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf, key};
use windrow_index::{KeyKind, Scratch};

use super::entries::entries_of;
use super::plan::InsertPlan;
use crate::claims::{Added, Claim};
use crate::collection::Collection;
use crate::error::{DuplicateKey, Error};
use crate::holds::{Held, Holds, Taken, Ticket};
use crate::index::Index;
use crate::read::{Reader, RecordId};
use crate::state::IndexState;
use crate::transaction::{Transaction, conflict};

/// A document's unique key: its map, its bytes, and its shape.
type Place = ((u64, Vec<u8>), Vec<u8>);

/// Unique keys by map and key, with whether each must be looked up and whose it is by now.
#[derive(Default)]
struct Wanted<'i> {
    keys: BTreeMap<(u64, Vec<u8>), Key<'i>>,
}

struct Key<'i> {
    index: &'i Index,
    look_up: bool,
    /// A document of the same batch has taken it.
    taken: bool,
}

impl Collection {
    /// Claims the unique keys of the documents of an insert, and takes those out of the plan whose
    /// keys are there already. `ids_settled`: the `_id`s need no look.
    pub(super) fn claim_unique(
        &self,
        documents: &Bytes,
        ordered: bool,
        ids_settled: bool,
        indexes: &[IndexState],
        claiming: Claiming<'_, '_>,
        mut plan: InsertPlan,
    ) -> Result<Planned, Error> {
        let unique = |state: &&IndexState| {
            let is_settled = ids_settled && state.index.definition.is_of_ids();
            state.index.refuses_doubles() && !is_settled
        };
        let indexes: Vec<&IndexState> = indexes.iter().filter(unique).collect();
        let mut wanted = Wanted::default();
        let mut places = Vec::with_capacity(plan.kept.len());
        for (offset, length, _) in &plan.kept {
            let bytes = documents.get(*offset..offset + length).unwrap_or_default();
            places.push(wanted.want(Document::from_validated(bytes), &indexes)?);
        }
        wanted.claim(claiming.claim);
        if claiming.transaction.is_none()
            && let Some(holder) = wanted.holder(&self.holds)
        {
            return Ok(Planned::HeldBy(holder));
        }
        let looking = Looking::new(self, claiming.transaction)?;
        wanted.pass_absent(&looking.newest)?;
        let mut kept = Vec::with_capacity(plan.kept.len());
        for (place, keys) in std::mem::take(&mut plan.kept).into_iter().zip(places) {
            match self.take_keys(&mut wanted, keys, &looking)? {
                None => kept.push(place),
                Some(error) => plan.errors.push((place.2, error)),
            }
            if ordered && !plan.errors.is_empty() {
                break;
            }
        }
        plan.errors.sort_by_key(|(number, _)| *number);
        if ordered {
            plan.errors.truncate(1);
        }
        plan.count = kept.len();
        plan.kept = kept;
        Ok(Planned::Plan(plan))
    }

    /// Takes a document's keys; the error where one of them is there already.
    fn take_keys(
        &self,
        wanted: &mut Wanted<'_>,
        keys: Vec<Place>,
        looking: &Looking<'_>,
    ) -> Result<Option<Error>, Error> {
        for (place, shape) in &keys {
            let Some(key) = wanted.keys.get(place) else {
                continue;
            };
            if key.taken || looking.is_there(key.index, &place.1, key.look_up, None)? {
                return Ok(Some(self.duplicate(key.index, &place.1, shape)));
            }
        }
        for (place, _) in &keys {
            if let Some(key) = wanted.keys.get_mut(place) {
                key.taken = true;
            }
        }
        Ok(None)
    }

    /// The error that says which key of which index is there already. `shape` may be empty where it is
    /// not at hand.
    pub(crate) fn duplicate(&self, index: &Index, key: &[u8], shape: &[u8]) -> Error {
        let definition = &index.definition;
        Error::DuplicateKey(Box::new(DuplicateKey {
            namespace: self.namespace().to_string(),
            index: definition.name.clone(),
            key_pattern: definition.key_pattern().to_buf(),
            key_value: key_value(index, key, shape),
        }))
    }
}

/// What an insert claims with.
pub(super) struct Claiming<'a, 'c> {
    pub claim: &'a mut Claim<'c>,
    /// It holds what it claims until its end.
    pub transaction: Option<&'a Transaction>,
}

/// Which documents go in.
pub(super) enum Planned {
    Plan(InsertPlan),
    /// It is not known: a transaction holds one of the keys, and nothing may be held while it is waited
    /// for.
    HeldBy(Arc<Ticket>),
}

/// Looks whether keys are there: as everybody sees it, or as a transaction does.
pub(super) struct Looking<'a> {
    collection: &'a Collection,
    newest: Reader,
    own: Option<(&'a Transaction, Reader)>,
}

impl<'a> Looking<'a> {
    pub fn new(
        collection: &'a Collection,
        transaction: Option<&'a Transaction>,
    ) -> Result<Looking<'a>, Error> {
        let own = transaction.map(|it| Ok::<_, Error>((it, it.reader(collection)?)));
        Ok(Looking {
            collection,
            newest: collection.reader()?,
            own: own.transpose()?,
        })
    }

    /// Whether a record other than `own` has the key, which is claimed; `look_up`: somebody may. A
    /// transaction takes hold of a key that it may have; one that only others can see is a conflict.
    pub fn is_there(
        &self,
        index: &Index,
        key: &[u8],
        look_up: bool,
        own: Option<RecordId>,
    ) -> Result<bool, Error> {
        let Some((transaction, reader)) = &self.own else {
            return Ok(look_up && holder(&self.newest, index, key, own)?);
        };
        if holder(reader, index, key, own)? {
            return Ok(true);
        }
        let taken = transaction.hold_key(self.collection, index.map, key)?;
        let is_new = taken == Taken::Now && look_up;
        match is_new && holder(&self.newest, index, key, own)? {
            true => Err(conflict(self.collection, "a unique key")),
            false => Ok(false),
        }
    }
}

impl<'i> Wanted<'i> {
    /// The transaction that holds one of the keys, if one does.
    fn holder(&self, holds: &Holds) -> Option<Arc<Ticket>> {
        if !holds.any() {
            return None;
        }
        let mut places = self.keys.keys();
        places.find_map(|(map, key)| holds.holder(&Held::Key(*map, key.clone())))
    }

    /// Notes the unique keys of a document and returns where they stand.
    fn want(
        &mut self,
        document: Document<'_>,
        indexes: &[&'i IndexState],
    ) -> Result<Vec<Place>, Error> {
        let mut places = Vec::new();
        let mut scratch = Scratch::default();
        for state in indexes {
            let index = state.index.as_ref();
            for (key, shape) in entries_of(index, document, &mut scratch)? {
                let place = (index.map, key);
                let fresh = || Key {
                    index,
                    look_up: false,
                    taken: false,
                };
                self.keys.entry(place.clone()).or_insert_with(fresh);
                places.push((place, shape));
            }
        }
        Ok(places)
    }

    /// Finds those that nobody has all at once, in their order: they need no look each by itself.
    fn pass_absent(&mut self, newest: &Reader) -> Result<(), Error> {
        let mut unsure: Vec<(&(u64, Vec<u8>), &mut Key<'i>)> = self
            .keys
            .iter_mut()
            .filter(|(_, key)| key.look_up)
            .collect();
        for of_index in unsure.chunk_by_mut(|one, other| one.0.0 == other.0.0) {
            let map = of_index.first().map(|((map, _), _)| *map);
            let Some(number) = newest.indexes().iter().position(|it| Some(it.map()) == map) else {
                continue;
            };
            let keys: Vec<&[u8]> = of_index
                .iter()
                .map(|((_, key), _)| key.as_slice())
                .collect();
            let held = newest.may_hold(number, &keys)?;
            for ((_, key), held) in of_index.iter_mut().zip(held) {
                key.look_up = held;
            }
        }
        Ok(())
    }

    /// Claims all, in order.
    fn claim(&mut self, claim: &mut Claim<'_>) {
        for ((map, bytes), key) in &mut self.keys {
            let added = claim.add(*map, bytes, key.index.definition.is_of_ids());
            key.look_up = added == Added::LookUp;
        }
    }
}

/// Whether a record other than `own` has the key, as far as the reader sees.
fn holder(
    reader: &Reader,
    index: &Index,
    key: &[u8],
    own: Option<RecordId>,
) -> Result<bool, Error> {
    let found = reader.indexes().iter().position(|it| it.map() == index.map);
    let Some(number) = found else {
        return Ok(false);
    };
    let mut cursor = reader.postings(number, key)?;
    while cursor.next()? && cursor.key() == key {
        if Some(cursor.id()) != own {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The key's values under the names of the index's fields.
fn key_value(index: &Index, key: &[u8], shape: &[u8]) -> DocumentBuf {
    let mut reader = key::Reader::new(key, shape);
    let mut value = DocumentBuf::new();
    for field in &index.definition.fields {
        let read = reader.value(field.kind == KeyKind::Descending);
        value.push(
            &field.path.to_string(),
            read.unwrap_or(windrow_document::Value::Null),
        );
    }
    value
}
