//! The row of the catalog that describes a section.

use std::ops::Range;

use windrow_storage::{Position, RunId};

use crate::block::PostingsForm;
use crate::entry::{EntryKey, RecordId};
use crate::filter::HashedKey;
use crate::marks::Marks;
use crate::varint;

/// The location and the content of a section. Keys longer than `KEY_BYTES_MAX` are cut: the first
/// key is then a lower bound, and the last one is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionDescriptor {
    /// The run that has the section.
    pub run: RunId,
    /// The offset of the root block in the run.
    pub root_offset: u64,
    /// The stored length of the root block, in bytes.
    pub root_length: u32,
    /// The newest log position that the section has folded.
    pub position: Position,
    /// The number of entries, including tombstones and older versions.
    pub entries: u64,
    /// The number of tombstones.
    pub deletions: u64,
    /// The bytes of the section in the run file.
    pub bytes_stored: u64,
    /// The bytes of its blocks before compression.
    pub bytes_raw: u64,
    /// Data blocks are packed, see [`columns`](crate::columns).
    pub packed: bool,
    /// The form of the keys if the entries are postings, see
    /// [`SectionOptions`](super::SectionOptions).
    pub postings: Option<PostingsForm>,
    /// The first key, cut to `KEY_BYTES_MAX`.
    pub first_key: Vec<u8>,
    /// The id of the first entry. 0 if the key was cut.
    pub first_id: RecordId,
    /// The last key. `None` if it is too long.
    pub last_key: Option<Vec<u8>>,
    /// The id of the last entry.
    pub last_id: RecordId,
    /// The sum of the entries' hashes, see [`EntryDigest`](crate::EntryDigest). `None` if the
    /// section has tombstones or several versions of an entry, whose digest depends on other
    /// sections, or if it was written without a digest.
    pub hash: Option<u64>,
    /// The counts of the marks.
    pub marks: Marks,
}

/// Rows of the catalog must be small.
pub const KEY_BYTES_MAX: usize = 1024;

impl SectionDescriptor {
    /// Returns the first entry key, or a lower bound of it if the key was cut.
    pub fn first_entry_key(&self) -> EntryKey<'_> {
        EntryKey::new(&self.first_key, self.first_id)
    }

    /// Returns the last entry key. `None` if the key is so long that it could be the beginning of a
    /// cut first key: these two cannot be compared.
    pub fn last_entry_key(&self) -> Option<EntryKey<'_>> {
        let key = self.last_key.as_ref();
        let key = key.filter(|key| key.len() < KEY_BYTES_MAX)?;
        Some(EntryKey::new(key, self.last_id))
    }

    /// Returns `true` if all entries of this section are before all entries of the other.
    pub fn is_before(&self, other: &SectionDescriptor) -> bool {
        self.ends_before(&other.first_key, other.first_id)
    }

    /// Returns `true` if all entries are before an entry key.
    pub fn ends_before(&self, key: &[u8], id: RecordId) -> bool {
        let last = self.last_entry_key();
        last.is_some_and(|last| last < EntryKey::new(key, id))
    }

    /// Returns `true` if all entries are after an entry key.
    pub fn begins_after(&self, key: &[u8], id: RecordId) -> bool {
        self.first_entry_key() > EntryKey::new(key, id)
    }

    /// Returns `false` if a key is outside of the range of the section.
    pub fn may_contain_key(&self, key: &[u8]) -> bool {
        self.first_key.as_slice() <= key
            && self
                .last_key
                .as_ref()
                .is_none_or(|last| key <= last.as_slice())
    }

    /// Returns the indexes of the keys that are inside the range of the section. `keys` must be
    /// sorted.
    pub(crate) fn keys_within(&self, keys: &[HashedKey<'_>]) -> Range<usize> {
        let is_before = |it: &HashedKey<'_>| it.key < self.first_key.as_slice();
        let is_within = |it: &HashedKey<'_>| {
            let last = self.last_key.as_ref();
            last.is_none_or(|last| it.key <= last.as_slice())
        };
        keys.partition_point(is_before)..keys.partition_point(is_within)
    }

    /// Returns `true` if counts and keys are consistent, as a [writer](super::SectionWriter) makes
    /// them.
    fn is_sound(&self) -> bool {
        self.deletions <= self.entries
            && self.first_key.len() <= KEY_BYTES_MAX
            && self.last_key.as_ref().is_none_or(|last| {
                last.len() <= KEY_BYTES_MAX && !self.begins_after(last, self.last_id)
            })
    }

    /// Encodes `packed` and `postings` as one number.
    fn form(&self) -> u64 {
        let postings = self.postings.map_or(0, PostingsForm::code);
        postings << 1 | u64::from(self.packed)
    }

    /// Encodes the descriptor as the value of a row.
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(self.is_sound(), "{self:?}");
        let mut bytes = Vec::new();
        for number in [
            self.run.0,
            self.root_offset,
            u64::from(self.root_length),
            self.position.0,
            self.entries,
            self.deletions,
            self.bytes_stored,
            self.bytes_raw,
            self.first_id.0,
            self.last_id.0,
            self.form(),
            self.first_key.len() as u64,
        ] {
            varint::put(&mut bytes, number);
        }
        bytes.extend_from_slice(&self.first_key);
        match &self.last_key {
            None => varint::put(&mut bytes, 0),
            Some(key) => {
                varint::put(&mut bytes, key.len() as u64 + 1);
                bytes.extend_from_slice(key);
            }
        }
        self.marks.encode(&mut bytes);
        if let Some(hash) = self.hash {
            bytes.extend_from_slice(&hash.to_le_bytes());
        }
        bytes
    }

    /// Decodes a descriptor. Returns `None` if [`encode`](Self::encode) cannot have made the bytes.
    pub fn decode(mut bytes: &[u8]) -> Option<SectionDescriptor> {
        let mut numbers = [0; 11];
        for number in &mut numbers {
            *number = varint::take(&mut bytes)?;
        }
        let [
            run,
            root_offset,
            root_length,
            position,
            entries,
            deletions,
            rest @ ..,
        ] = numbers;
        let [bytes_stored, bytes_raw, first_id, last_id, form] = rest;
        let postings = match form >> 1 {
            0 => None,
            code => Some(PostingsForm::from_code(code)?),
        };
        let length = varint::take(&mut bytes)?;
        let first_key = varint::take_bytes(&mut bytes, length)?.to_vec();
        let last_key = match varint::take(&mut bytes)? {
            0 => None,
            length => Some(varint::take_bytes(&mut bytes, length - 1)?.to_vec()),
        };
        let marks = Marks::decode(&mut bytes)?;
        let hash = match bytes {
            [] => None,
            bytes => Some(u64::from_le_bytes(bytes.try_into().ok()?)),
        };
        let descriptor = SectionDescriptor {
            run: RunId(run),
            root_offset,
            root_length: u32::try_from(root_length).ok()?,
            position: Position(position),
            entries,
            deletions,
            bytes_stored,
            bytes_raw,
            packed: form & 1 != 0,
            postings,
            first_key,
            first_id: RecordId(first_id),
            last_key,
            last_id: RecordId(last_id),
            hash,
            marks,
        };
        descriptor.is_sound().then_some(descriptor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_round_trip() {
        let descriptor = SectionDescriptor {
            run: RunId(1),
            root_offset: 1 << 40,
            root_length: 77,
            position: Position(5),
            entries: 6,
            deletions: 2,
            bytes_stored: 700,
            bytes_raw: 900,
            packed: true,
            postings: None,
            first_key: b"a".to_vec(),
            first_id: RecordId(3),
            last_key: Some(b"a".to_vec()),
            last_id: RecordId::MAX,
            hash: None,
            marks: Marks::default(),
        };
        let bytes = descriptor.encode();
        assert_eq!(SectionDescriptor::decode(&bytes), Some(descriptor.clone()));
        let open = SectionDescriptor {
            last_key: None,
            ..descriptor
        };
        let with_digest = SectionDescriptor {
            hash: Some(u64::MAX - 1),
            ..open.clone()
        };
        assert_eq!(
            SectionDescriptor::decode(&with_digest.encode()),
            Some(with_digest)
        );
        assert_eq!(
            SectionDescriptor::decode(&open.encode()),
            Some(open.clone())
        );
        let mut marks = Marks::default();
        marks.add(&[0, 1], 3, 1 << 40);
        marks.add(&[0, 2], 0, 1);
        let of_postings = SectionDescriptor {
            postings: Some(PostingsForm::ByField),
            ..open.clone()
        };
        let decoded = SectionDescriptor::decode(&of_postings.encode());
        assert_eq!(decoded, Some(of_postings));
        let mark_byte = SectionDescriptor { marks, ..open };
        assert_eq!(
            SectionDescriptor::decode(&mark_byte.encode()),
            Some(mark_byte)
        );
        for length in 0..bytes.len() {
            assert_eq!(SectionDescriptor::decode(&bytes[..length]), None);
        }
        // Descriptors that no writer makes.
        let refused: [fn(&mut SectionDescriptor); 3] = [
            |it| it.deletions = it.entries + 1,
            |it| it.last_key = Some(b"".to_vec()),
            |it| it.first_key = vec![b'a'; KEY_BYTES_MAX + 1],
        ];
        for unsound in refused {
            let mut descriptor = descriptor_of(&bytes);
            unsound(&mut descriptor);
            assert!(!descriptor.is_sound(), "{descriptor:?}");
        }
    }

    fn descriptor_of(bytes: &[u8]) -> SectionDescriptor {
        SectionDescriptor::decode(bytes).unwrap()
    }
}
