//! The unique keys of the documents of an insert.

use std::sync::Arc;

use windrow_document::Document;
use windrow_fold::HashedKey;
use windrow_index::Scratch;
use windrow_invariant::Bug;

use super::key_locking::{KeyLocker, KeyOwnership, blocking_transaction};
use crate::collection::Collection;
use crate::error::Error;
use crate::index::Index;
use crate::read::Reader;
use crate::record::KeyHashes;
use crate::state::IndexState;
use crate::transaction_locks::TransactionWaiter;
use crate::unique_keys::claims::{self, Claim};

/// The unique keys of the documents of an insert. Keys have numbers: those of one index are
/// consecutive, and in order once they are [sorted](Self::sort).
pub(super) struct InsertKeys<'i> {
    indexes: Vec<&'i IndexState>,
    /// The bytes of all keys.
    bytes: Vec<u8>,
    keys: Vec<KeyEntry>,
    scratch: Scratch,
}

/// A key: its document, its position in the bytes, and what is known about it.
#[derive(Clone, Debug)]
pub(super) struct KeyEntry {
    index: usize,
    start: usize,
    length: usize,
    hash: u64,
    document: usize,
    /// Once sorted, the number of the first equal key.
    first: usize,
    /// `true` if it must be looked up, because a record may have it.
    pub look_up: bool,
    /// `true` if a document of the same insert has it.
    pub is_taken: bool,
    /// What the transaction knows about it, if there is one.
    pub ownership: Option<KeyOwnership>,
}

/// A key of an insert.
#[derive(Debug)]
pub(super) struct InsertKey<'i, 'k> {
    pub index: &'i Index,
    pub bytes: &'k [u8],
    /// The first key that is equal to it. It contains what is known about all of them.
    pub first_equal: &'k KeyEntry,
}

impl KeyEntry {
    fn bytes<'b>(&self, of: &'b [u8]) -> &'b [u8] {
        &of[self.start..self.start + self.length]
    }

    fn hashed<'b>(&self, of: &'b [u8]) -> HashedKey<'b> {
        HashedKey {
            key: self.bytes(of),
            hash: self.hash,
        }
    }
}

impl<'i> InsertKeys<'i> {
    /// Creates an empty list. If the index on `_id` is included, it must be the first.
    pub fn new(indexes: Vec<&'i IndexState>) -> InsertKeys<'i> {
        InsertKeys {
            indexes,
            bytes: Vec::new(),
            keys: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Adds the unique keys of documents.
    pub fn add(&mut self, documents: &[Document<'_>]) -> Result<(), Error> {
        let (bytes, keys) = (&mut self.bytes, &mut self.keys);
        for (index, state) in self.indexes.iter().enumerate() {
            let definition = &state.index.definition;
            for (document, of) in documents.iter().enumerate() {
                let mut push = |key: &[u8], _: &[u8]| {
                    keys.push(KeyEntry {
                        index,
                        start: bytes.len(),
                        length: key.len(),
                        hash: HashedKey::new(key).hash,
                        document,
                        first: keys.len(),
                        look_up: true,
                        is_taken: false,
                        ownership: None,
                    });
                    bytes.extend_from_slice(key);
                };
                definition.keys(*of, &mut self.scratch, &mut push)?;
            }
        }
        Ok(())
    }

    /// Sorts the keys, and finds equal ones. A key that one document has twice counts once.
    pub fn sort(&mut self) {
        let InsertKeys { bytes, keys, .. } = self;
        let order = |one: &KeyEntry, other: &KeyEntry| {
            let indexes = one.index.cmp(&other.index);
            indexes.then_with(|| one.bytes(bytes).cmp(other.bytes(bytes)))
        };
        keys.sort_unstable_by(|one, other| {
            order(one, other).then(one.document.cmp(&other.document))
        });
        let is_same = |one: &KeyEntry, other: &KeyEntry| order(one, other).is_eq();
        keys.dedup_by(|one, other| is_same(one, other) && one.document == other.document);
        let mut first = 0;
        for run in keys.chunk_by_mut(is_same) {
            run.iter_mut().for_each(|key| key.first = first);
            first += run.len();
        }
    }

    /// Returns the hashes of all keys, by index.
    pub fn hashes(&self) -> Result<Vec<KeyHashes>, Bug> {
        let of_indexes = self.keys.chunk_by(|one, other| one.index == other.index);
        let of_index = |keys: &[KeyEntry]| {
            let [first, ..] = keys else {
                return Ok(None);
            };
            Ok(Some(KeyHashes {
                map: self.index_of(first)?.index.map,
                hashes: keys.iter().map(|key| key.hash).collect(),
            }))
        };
        of_indexes
            .map(of_index)
            .filter_map(Result::transpose)
            .collect()
    }

    fn index_of(&self, key: &KeyEntry) -> Result<&'i IndexState, Bug> {
        let index = self.indexes.get(key.index).copied();
        index.ok_or_else(|| no_index(key.index, self.indexes.len()))
    }

    /// Returns the key with this number.
    pub fn key(&self, number: usize) -> Result<InsertKey<'i, '_>, Bug> {
        let no_key = || no_key(number, self.keys.len());
        let key = self.keys.get(number).ok_or_else(no_key)?;
        Ok(InsertKey {
            index: &self.index_of(key)?.index,
            bytes: key.bytes(&self.bytes),
            first_equal: self.keys.get(key.first).ok_or_else(no_key)?,
        })
    }

    fn key_mut(&mut self, number: usize) -> Result<&mut KeyEntry, Bug> {
        let keys = self.keys.len();
        let key = self.keys.get_mut(number);
        key.ok_or_else(|| no_key(number, keys))
    }

    /// Marks a key as taken by a document of the insert.
    pub fn take(&mut self, number: usize) -> Result<(), Bug> {
        let first = self.key_mut(number)?.first;
        self.key_mut(first)?.is_taken = true;
        Ok(())
    }

    /// Returns the numbers of each document's keys.
    pub fn numbers_by_document(&self, count: usize) -> Result<Vec<Vec<usize>>, Bug> {
        let mut numbers = vec![Vec::new(); count];
        for (number, key) in self.keys.iter().enumerate() {
            let own = numbers.get_mut(key.document).ok_or_else(|| {
                let document = key.document;
                Bug::new(format!(
                    "an insert of {count} documents has a key of document {document}"
                ))
            })?;
            own.push(number);
        }
        Ok(numbers)
    }

    /// Claims all keys. Returns `true` if two of them may be equal.
    pub fn claim(&mut self, claim: &mut Claim<'_>) -> Result<bool, Bug> {
        let claimed = |key: &KeyEntry| {
            let index = &self.index_of(key)?.index;
            Ok(claims::ClaimedKey {
                key: key.hashed(&self.bytes),
                map: index.map,
                is_of_ids: index.definition.is_of_ids(),
            })
        };
        let claimed: Vec<_> = self.keys.iter().map(claimed).collect::<Result<_, Bug>>()?;
        let added = claim.add(&claimed);
        for number in added.new_ids {
            self.key_mut(number)?.look_up = false;
        }
        Ok(added.has_duplicates)
    }

    /// Locks all keys, which are sorted, for a transaction.
    pub fn lock(&mut self, locker: &KeyLocker<'_>) -> Result<(), Error> {
        for number in 0..self.keys.len() {
            let key = self.key(number)?;
            // An equal key was locked already.
            if key.first_equal.first != number {
                continue;
            }
            let ownership = locker.lock(key.index, key.bytes, None)?;
            self.key_mut(number)?.ownership = Some(ownership);
        }
        Ok(())
    }

    /// Returns a transaction that must end before it is known whether one of the keys is free.
    pub fn blocking_transaction(
        &self,
        collection: &Collection,
    ) -> Result<Option<Arc<TransactionWaiter>>, Error> {
        if !collection.transaction_locks.any() {
            return Ok(None);
        }
        for key in &self.keys {
            let index = &self.index_of(key)?.index;
            let blocking_transaction =
                blocking_transaction(collection, index, key.bytes(&self.bytes), None)?;
            if blocking_transaction.is_some() {
                return Ok(blocking_transaction);
            }
        }
        Ok(None)
    }

    /// Looks all keys up together, and marks the absent ones. The others are looked up one by one.
    pub fn mark_absent(&mut self, newest: &Reader) -> Result<(), Error> {
        let InsertKeys {
            indexes,
            bytes,
            keys,
            ..
        } = self;
        for of_index in keys.chunk_by_mut(|one, other| one.index == other.index) {
            let [first, ..] = &*of_index else {
                continue;
            };
            let (number, count) = (first.index, indexes.len());
            let index = indexes.get(number);
            let state = index.ok_or_else(|| no_index(number, count))?;
            let looked_up = || of_index.iter().filter(|key| key.look_up);
            let hashed: Vec<HashedKey<'_>> = looked_up().map(|key| key.hashed(bytes)).collect();
            // An index without lookups need not track its recent keys.
            if hashed.is_empty() {
                continue;
            }
            let possible = newest.may_contain(state.index.map, &hashed)?;
            debug_assert_eq!(possible.len(), hashed.len());
            let looked_up = of_index.iter_mut().filter(|key| key.look_up);
            for (key, is_possible) in looked_up.zip(possible) {
                key.look_up = is_possible;
            }
        }
        Ok(())
    }

    /// Returns `true` if any key must be looked up.
    pub fn have_lookups(&self) -> bool {
        self.keys.iter().any(|key| key.look_up)
    }
}

#[cold]
fn no_key(number: usize, keys: usize) -> Bug {
    Bug::new(format!(
        "an insert of {keys} unique keys has no key {number}"
    ))
}

#[cold]
fn no_index(index: usize, indexes: usize) -> Bug {
    Bug::new(format!(
        "an insert with {indexes} unique indexes has a key of index {index}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unique_keys::claims::Claims;
    use windrow_invariant::tolerate_bugs;

    /// The key of an unknown index used to be neither claimed nor looked up, so a second document
    /// with it was inserted.
    #[test]
    fn a_key_without_an_index_is_a_bug() {
        let mut keys = InsertKeys::new(Vec::new());
        keys.keys.push(KeyEntry {
            index: 0,
            start: 0,
            length: 0,
            hash: 0,
            document: 0,
            first: 0,
            look_up: true,
            is_taken: false,
            ownership: None,
        });
        let claims = Claims::default();
        tolerate_bugs(|| {
            keys.claim(&mut claims.begin()).unwrap_err();
            keys.hashes().unwrap_err();
            keys.key(0).unwrap_err();
            keys.take(1).unwrap_err();
            keys.numbers_by_document(0).unwrap_err();
        });
        // Nothing was claimed, so another claim does not wait.
        assert!(claims.begin().add_range(b"a", b"b"));
    }
}
