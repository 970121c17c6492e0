//! The keys that a document has at one path, as they are collected.

use std::ops::Range;

use windrow_postings::Posting;
use windrow_postings::payload::put_position;

use super::keys::EXISTS;
use super::mapping::IndexOptions;

/// What a document has at one path. Terms are appended to one buffer and sorted at the end, so that a
/// token needs no memory of its own.
#[derive(Default)]
pub(super) struct PathEntries {
    /// The bytes of the keys behind the path and its end.
    bytes: Vec<u8>,
    occurrences: Vec<Occurrence>,
    /// The number of tokens.
    length: u32,
    /// The first position of the next string.
    next_position: u32,
}

/// An occurrence of a key.
struct Occurrence {
    /// Of the path's bytes.
    key: Range<usize>,
    /// `None` for keys without positions.
    position: Option<u32>,
    /// Whether it adds to the frequency, beyond the first.
    is_counted: bool,
}

impl PathEntries {
    /// Forgets what was collected, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.occurrences.clear();
        self.length = 0;
        self.next_position = 0;
    }

    /// Adds that the document has the path.
    pub fn add_existence(&mut self) {
        if self.occurrences.is_empty() {
            self.add_plain(&[EXISTS]);
        }
    }

    /// Adds a key that counts once and has no position.
    pub fn add_plain(&mut self, key: &[u8]) {
        self.add(&[], key, None, false);
    }

    /// Adds a token at a position after that of the strings before. `kind` is the first byte of its key.
    pub fn add_token(&mut self, kind: u8, term: &str, position: u32, options: IndexOptions) {
        let has_position = options == IndexOptions::Positions;
        let is_counted = options != IndexOptions::Docs;
        let position = has_position.then_some(position);
        self.add(&[kind], term.as_bytes(), position, is_counted);
        self.length = self.length.saturating_add(1);
    }

    fn add(&mut self, kind: &[u8], key: &[u8], position: Option<u32>, is_counted: bool) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(kind);
        self.bytes.extend_from_slice(key);
        self.occurrences.push(Occurrence {
            key: start..self.bytes.len(),
            position,
            is_counted,
        });
    }

    /// The first position of the next string.
    pub fn next_position(&self) -> u32 {
        self.next_position
    }

    /// Sets the first position of the next string.
    pub fn set_next_position(&mut self, position: u32) {
        self.next_position = position;
    }

    /// Visits each key once, in order, with its posting.
    pub fn each(&mut self, positions: &mut Vec<u8>, visit: &mut dyn FnMut(&[u8], &Posting<'_>)) {
        let PathEntries {
            bytes,
            occurrences,
            length,
            ..
        } = self;
        let key_of = |one: &Occurrence| bytes.get(one.key.clone()).unwrap_or_default();
        occurrences.sort_by(|one, other| {
            let keys = key_of(one).cmp(key_of(other));
            keys.then(one.position.cmp(&other.position))
        });
        for same in occurrences.chunk_by(|one, other| key_of(one) == key_of(other)) {
            let Some(first) = same.first() else {
                continue;
            };
            positions.clear();
            let mut last = None;
            for position in same.iter().filter_map(|one| one.position) {
                put_position(positions, last, position);
                last = Some(position);
            }
            let counted = same.iter().filter(|one| one.is_counted).count();
            let posting = Posting {
                frequency: u32::try_from(counted).unwrap_or(u32::MAX >> 1).max(1),
                length: (*length).max(1),
                score: None,
                positions,
            };
            visit(key_of(first), &posting);
        }
    }
}
