//! The unique keys that the documents of an insert want.

use std::sync::Arc;

use windrow_document::Document;
use windrow_fold::HashedKey;
use windrow_index::Scratch;

use super::holding::{Held, Holding};
use crate::claims::{self, Claim};
use crate::error::Error;
use crate::holds::{self, Holds, Ticket};
use crate::index::Index;
use crate::read::Reader;
use crate::record::KeyHashes;
use crate::state::IndexState;

/// See the module. Keys have numbers: those of an index follow each other, in order once they are
/// [sorted](Self::sort).
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
    start: usize,
    length: usize,
    hash: u64,
    document: usize,
    /// The number of the first key that is equal, once they are sorted.
    first: usize,
    /// Somebody may have it.
    pub look_up: bool,
    /// A document of the same insert has taken it.
    pub taken: bool,
    /// What the transaction has of it, if there is one.
    pub held: Option<Held>,
}

impl Key {
    fn bytes<'b>(&self, of: &'b [u8]) -> &'b [u8] {
        of.get(self.start..self.start + self.length)
            .unwrap_or_default()
    }

    fn hashed<'b>(&self, of: &'b [u8]) -> HashedKey<'b> {
        HashedKey {
            key: self.bytes(of),
            hash: self.hash,
        }
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

    /// Notes the unique keys of documents, with their numbers.
    pub fn want<'d>(
        &mut self,
        documents: impl Iterator<Item = (usize, Document<'d>)> + Clone,
    ) -> Result<(), Error> {
        let (bytes, keys) = (&mut self.bytes, &mut self.keys);
        for (index, state) in self.indexes.iter().enumerate() {
            let definition = &state.index.definition;
            for (document, of) in documents.clone() {
                let mut want = |key: &[u8], _: &[u8]| {
                    keys.push(Key {
                        index,
                        start: bytes.len(),
                        length: key.len(),
                        hash: HashedKey::of(key).hash,
                        document,
                        first: keys.len(),
                        look_up: true,
                        taken: false,
                        held: None,
                    });
                    bytes.extend_from_slice(key);
                };
                definition.keys(of, &mut self.scratch, &mut want)?;
            }
        }
        Ok(())
    }

    /// Brings the keys into order, in which they know which of them are equal; one that a document has
    /// twice counts once.
    pub fn sort(&mut self) {
        let Wanted { bytes, keys, .. } = self;
        let order = |one: &Key, other: &Key| {
            let indexes = one.index.cmp(&other.index);
            indexes.then_with(|| one.bytes(bytes).cmp(other.bytes(bytes)))
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

    /// Claims all; whether two of them may be equal.
    pub fn claim(&mut self, claim: &mut Claim<'_>) -> bool {
        let wanted = |key: &Key| {
            let index = self.indexes.get(key.index)?;
            Some(claims::Wanted {
                key: key.hashed(&self.bytes),
                map: index.index.map,
                is_of_ids: index.index.definition.is_of_ids(),
            })
        };
        let wanted: Vec<claims::Wanted<'_>> = self.keys.iter().filter_map(wanted).collect();
        let added = claim.add(&wanted);
        for number in added.unheard {
            if let Some(key) = self.keys.get_mut(number) {
                key.look_up = false;
            }
        }
        added.are_double
    }

    /// Lets a transaction hold all, which are in order.
    pub fn hold(&mut self, holding: &Holding<'_>) -> Result<(), Error> {
        for number in 0..self.keys.len() {
            let Some((index, bytes, key)) = self.key(number) else {
                continue;
            };
            if key.first != number {
                continue;
            }
            let held = holding.hold(index, bytes, None)?;
            if let Some(key) = self.keys.get_mut(number) {
                key.held = Some(held);
            }
        }
        Ok(())
    }

    /// The transaction that holds one of the keys, if one does.
    pub fn holder(&self, holds: &Holds) -> Option<Arc<Ticket>> {
        if !holds.any() {
            return None;
        }
        let held = |key: &Key| {
            let index = self.indexes.get(key.index)?;
            Some(holds::Held::Key(
                index.index.map,
                key.bytes(&self.bytes).to_vec(),
            ))
        };
        let mut held = self.keys.iter().filter_map(held);
        held.find_map(|held| holds.holder(&held))
    }

    /// Finds those that nobody has all at once: they need no look each by itself.
    pub fn pass_absent(&mut self, newest: &Reader) -> Result<(), Error> {
        let Wanted {
            indexes,
            bytes,
            keys,
            ..
        } = self;
        for of_index in keys.chunk_by_mut(|one, other| one.index == other.index) {
            let index = of_index.first().and_then(|key| indexes.get(key.index));
            let Some(state) = index else { continue };
            let looked_up = || of_index.iter().filter(|key| key.look_up);
            let hashed: Vec<HashedKey<'_>> = looked_up().map(|key| key.hashed(bytes)).collect();
            // An index that is not asked need not know its newest keys.
            if hashed.is_empty() {
                continue;
            }
            let held = newest.may_hold(state.index.map, &hashed)?;
            let looked_up = of_index.iter_mut().filter(|key| key.look_up);
            for (key, held) in looked_up.zip(held) {
                key.look_up = held;
            }
        }
        Ok(())
    }

    /// Whether there is a key that somebody may have.
    pub fn are_doubtful(&self) -> bool {
        self.keys.iter().any(|key| key.look_up)
    }
}
