//! The unique keys that the documents of an insert want.

use std::sync::Arc;

use windrow_document::Document;
use windrow_fold::HashedKey;
use windrow_fold::entry::{KeyHead, compare_keys};
use windrow_index::Scratch;

use crate::claims::{self, Claim};
use crate::error::Error;
use crate::holds::{Held, Holds, Ticket};
use crate::index::Index;
use crate::read::Reader;
use crate::record::KeyHashes;
use crate::state::IndexState;

/// See the module. Keys have numbers: those in order of index and key, once they are [sorted](Self::sort).
pub(super) struct Wanted<'i> {
    indexes: Vec<&'i IndexState>,
    /// The keys one after the other.
    bytes: Vec<u8>,
    keys: Vec<Key>,
    scratch: Scratch,
}

/// Whose key it is, where it stands, and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Key {
    index: usize,
    head: u128,
    start: usize,
    length: usize,
    hash: u64,
    document: usize,
    /// The number of the first key that is equal.
    first: usize,
    /// Somebody may have it.
    pub look_up: bool,
    /// A document of the same insert has taken it.
    pub taken: bool,
}

impl Key {
    fn bytes<'b>(&self, of: &'b [u8]) -> &'b [u8] {
        of.get(self.start..self.start + self.length)
            .unwrap_or_default()
    }
}

impl<'i> Wanted<'i> {
    /// None yet. The index on `_id` is the first, where it is among them.
    pub fn of(indexes: Vec<&'i IndexState>) -> Wanted<'i> {
        Wanted {
            indexes,
            bytes: Vec::new(),
            keys: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Notes the unique keys of a document.
    pub fn want(&mut self, document: usize, of: Document<'_>) -> Result<(), Error> {
        let (bytes, keys) = (&mut self.bytes, &mut self.keys);
        for (index, state) in self.indexes.iter().enumerate() {
            let definition = &state.index.definition;
            let mut want = |key: &[u8], _: &[u8]| {
                keys.push(Key {
                    index,
                    head: KeyHead::of(key).number(),
                    start: bytes.len(),
                    length: key.len(),
                    hash: HashedKey::of(key).hash,
                    document,
                    first: 0,
                    look_up: true,
                    taken: false,
                });
                bytes.extend_from_slice(key);
            };
            definition.keys(of, &mut self.scratch, &mut want)?;
        }
        Ok(())
    }

    /// Gives the keys their numbers; one that a document has twice counts once.
    pub fn sort(&mut self) {
        let Wanted { bytes, keys, .. } = self;
        let order = |one: &Key, other: &Key| {
            let heads = (one.index, one.head).cmp(&(other.index, other.head));
            heads.then_with(|| compare_keys(one.bytes(bytes), other.bytes(bytes)))
        };
        keys.sort_unstable_by(|one, other| {
            order(one, other).then(one.document.cmp(&other.document))
        });
        let is_same = |one: &Key, other: &Key| order(one, other).is_eq();
        keys.dedup_by(|one, other| is_same(one, other) && one.document == other.document);
        let mut first = 0;
        for run in keys.chunk_by_mut(is_same) {
            run.iter_mut().for_each(|key| key.first = first);
            first += run.len();
        }
    }

    /// The hashes of all, for each index.
    pub fn hashes(&self) -> Vec<KeyHashes> {
        let of_indexes = self.keys.chunk_by(|one, other| one.index == other.index);
        let of_index = |keys: &[Key]| {
            let index = self.indexes.get(keys.first()?.index)?;
            Some(KeyHashes {
                map: index.index.map,
                hashes: keys.iter().map(|key| key.hash).collect(),
            })
        };
        of_indexes.filter_map(of_index).collect()
    }

    /// A key by its number: its index, its bytes, and what is known of it.
    pub fn key(&self, number: usize) -> Option<(&'i Index, &[u8], &Key)> {
        let key = self.keys.get(number)?;
        let known = self.keys.get(key.first)?;
        let index = self.indexes.get(key.index)?;
        Some((&index.index, key.bytes(&self.bytes), known))
    }

    /// Notes that a document of the insert has taken the key.
    pub fn take(&mut self, number: usize) {
        let first = self.keys.get(number).map(|key| key.first);
        if let Some(first) = first.and_then(|first| self.keys.get_mut(first)) {
            first.taken = true;
        }
    }

    /// The numbers of the keys of each of so many documents.
    pub fn of_documents(&self, count: usize) -> Vec<Vec<usize>> {
        let mut numbers = vec![Vec::new(); count];
        for (number, key) in self.keys.iter().enumerate() {
            if let Some(numbers) = numbers.get_mut(key.document) {
                numbers.push(number);
            }
        }
        numbers
    }

    /// Claims all.
    pub fn claim(&mut self, claim: &mut Claim<'_>) {
        let wanted = |key: &Key| {
            let index = self.indexes.get(key.index)?;
            Some(claims::Wanted {
                key: self.hashed(key),
                map: index.index.map,
                is_of_ids: index.index.definition.is_of_ids(),
            })
        };
        let wanted: Vec<claims::Wanted<'_>> = self.keys.iter().filter_map(wanted).collect();
        let unheard = claim.add(&wanted);
        let unheard = self.keys.get_mut(unheard).unwrap_or_default();
        unheard.iter_mut().for_each(|key| key.look_up = false);
    }

    fn hashed(&self, key: &Key) -> HashedKey<'_> {
        HashedKey {
            key: key.bytes(&self.bytes),
            hash: key.hash,
        }
    }

    /// The transaction that holds one of the keys, if one does.
    pub fn holder(&self, holds: &Holds) -> Option<Arc<Ticket>> {
        if !holds.any() {
            return None;
        }
        let held = |key: &Key| {
            let index = self.indexes.get(key.index)?;
            Some(Held::Key(index.index.map, key.bytes(&self.bytes).to_vec()))
        };
        let mut held = self.keys.iter().filter_map(held);
        held.find_map(|held| holds.holder(&held))
    }

    /// Finds those that nobody has all at once, in their order: they need no look each by itself.
    pub fn pass_absent(&mut self, newest: &Reader) -> Result<(), Error> {
        let mut numbers: Vec<usize> = (0..self.keys.len()).collect();
        numbers.retain(|number| {
            let key = self.keys.get(*number);
            key.is_some_and(|key| key.look_up && key.first == *number)
        });
        let index_of = |number: &usize| self.keys.get(*number).map(|key| key.index);
        let mut held = Vec::with_capacity(numbers.len());
        for of_index in numbers.chunk_by(|one, other| index_of(one) == index_of(other)) {
            let keys = of_index.iter().filter_map(|number| self.keys.get(*number));
            let keys: Vec<HashedKey<'_>> = keys.map(|key| self.hashed(key)).collect();
            let index = of_index.first().and_then(index_of);
            let Some(state) = index.and_then(|index| self.indexes.get(index)) else {
                continue;
            };
            held.extend(newest.may_hold(state.index.map, &keys)?);
        }
        for (number, held) in numbers.into_iter().zip(held) {
            if let Some(key) = self.keys.get_mut(number) {
                key.look_up = held;
            }
        }
        Ok(())
    }

    /// Whether there is a key that somebody may have, or that two documents want.
    pub fn are_doubtful(&self) -> bool {
        let mut keys = self.keys.iter().enumerate();
        keys.any(|(number, key)| key.first != number || key.look_up)
    }
}
