//! The blocks of a section: entries in order, each key once.
//!
//! ```text
//! block    group* | restart: u32 LE each | restart count u32 LE | entry count u32 LE
//! restart  the offset of a group whose key stands there whole: the first, then at the latest after
//!          32 groups or 512 bytes
//! group    lengths u8 | shared varint, if 15 | length varint, if 15 | key bytes | head varint | ...
//! lengths  shared << 4 | length: the key is the last one's first `shared` bytes and `length` more;
//!          15 says that the number less 15 follows
//! head     id << 2           one entry, settled, not deleted, without payload; nothing follows
//!                            (ids from 2^62 on stand in the forms with a count)
//!          id << 2 | 1       one entry, settled, not deleted: length varint | payload
//!          count << 2 | 2    so many entries, settled, not deleted, without payload: entry*
//!          count << 4 | payloads << 3 | versions << 2 | 3: entry*
//!          3                a piece of packed postings: length varint | piece (see `windrow_postings`);
//!                           in sections of postings only, and always behind a restart
//! entry    id varint (from the second on: less the last one's)
//!          with versions: position << 1 | deleted, varint      (without: settled, not deleted)
//!          with payloads: length varint | payload              (without: empty)
//! ```
//! Versions of one key and id stand in one group of one block. A key with many ids may go on in the
//! next group, after 2 KB, or in the next block.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod pieces;

use windrow_postings::GROUP;

use crate::entry::{Entry, RecordId, common_prefix, same_key};
use crate::varint;
pub use pieces::PostingsForm;
pub(crate) use pieces::{FieldLengths, PiecePositions};
use pieces::{PiecePacker, ROWS_MAX};

/// A block is closed when it has so many bytes, before compression.
pub const BLOCK_BYTES: usize = 32 << 10;
/// After so many groups, or so many bytes, the key stands whole and the block can be entered: who looks
/// for one entry decodes no more than that.
const RESTART_GROUPS: usize = 32;
const RESTART_BYTES: usize = 512;
/// The entries of one key go on in another group after so many bytes.
const GROUP_BYTES: usize = 2 << 10;
/// A length of a key's part from which on it stands in a number of its own.
pub(crate) const LONG: u8 = 15;

/// The kinds of a group's head: its lowest two bits.
pub(crate) const LONE: u64 = 0;
pub(crate) const LONE_WITH_PAYLOAD: u64 = 1;
pub(crate) const PLAIN: u64 = 2;
const GENERAL: u64 = 3;
/// The whole head of a group that is a piece of packed postings.
pub(crate) const PIECE: u64 = GENERAL;

/// Writes entries, which come in order, into a block.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// Since the last restart.
    groups: usize,
    entries: u32,
    last_key: Vec<u8>,
    group: GroupBuilder,
    /// Packs the entries of a key with many of them, if the entries are postings.
    packer: Option<PiecePacker>,
}

/// The entries of the key that is being written.
#[derive(Debug, Default)]
struct GroupBuilder {
    key: Vec<u8>,
    bodies: Vec<GroupEntry>,
    payloads: Vec<u8>,
    /// Where in the payloads those of the bodies begin. Those before are written.
    payloads_start: usize,
    versions: bool,
}

#[derive(Clone, Copy, Debug)]
struct GroupEntry {
    id: RecordId,
    version: u64,
    payload_end: usize,
}

impl BlockBuilder {
    /// A builder for entries whose payloads are postings.
    pub fn for_postings(form: PostingsForm) -> BlockBuilder {
        BlockBuilder {
            packer: Some(PiecePacker::new(form)),
            ..BlockBuilder::default()
        }
    }

    /// Takes what the blocks so far have beside them, if the entries are postings.
    pub(crate) fn take_aside(&mut self) -> Option<PiecePositions> {
        self.packer.as_mut().map(PiecePacker::take_aside)
    }

    /// Takes the field lengths of all blocks, if the entries are postings.
    pub(crate) fn take_lengths(&mut self) -> Vec<FieldLengths> {
        self.packer
            .as_mut()
            .map_or(Vec::new(), PiecePacker::take_lengths)
    }

    /// The number of entries.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// About the bytes so far.
    pub fn len(&self) -> usize {
        match self.packer {
            // Packed, they take about a third.
            Some(_) => self.bytes.len() + self.group.len() / 3,
            None => self.bytes.len() + self.group.len(),
        }
    }

    /// Whether the block should be closed before this entry, the next in order.
    pub fn is_full_before(&self, entry: &Entry<'_>) -> bool {
        if self.len() < BLOCK_BYTES {
            return false;
        }
        let same = self
            .group
            .bodies
            .last()
            .is_some_and(|last| last.id == entry.id);
        !(same && same_key(&self.group.key, entry.key))
    }

    /// Adds the next entry in order. `new_key`: it has another key than the last.
    pub fn push(&mut self, entry: &Entry<'_>, new_key: bool) {
        debug_assert!(entry.position.0 >> 63 == 0, "position {}", entry.position);
        if let Some(last) = self.group.bodies.last() {
            debug_assert!(
                new_key || last.id <= entry.id && same_key(&self.group.key, entry.key),
                "record {} follows record {}",
                entry.id,
                last.id
            );
            let is_full = match self.packer {
                Some(_) => self.group.bodies.len() >= ROWS_MAX,
                None => self.group.len() >= GROUP_BYTES,
            };
            let is_long = last.id != entry.id && is_full;
            if new_key || is_long {
                self.end_group();
            }
        }
        if self.group.bodies.is_empty() {
            self.group.key.extend_from_slice(entry.key);
        }
        let version = entry.position.0 << 1 | u64::from(entry.deleted);
        self.group.versions |= version != 0;
        self.group.payloads.extend_from_slice(entry.payload);
        let payload_end = self.group.payloads.len();
        self.group.bodies.push(GroupEntry {
            id: entry.id,
            version,
            payload_end,
        });
        self.entries += 1;
    }

    fn end_group(&mut self) {
        // Most keys of a large index have one entry.
        if self.group.bodies.len() >= GROUP
            && let Some(mut packer) = self.packer.take()
        {
            self.pack_group(&mut packer);
            self.packer = Some(packer);
        }
        if !self.group.bodies.is_empty() {
            self.put_key(false);
            self.group.write(self.group.bodies.len(), &mut self.bytes);
        }
        std::mem::swap(&mut self.last_key, &mut self.group.key);
        self.group.key.clear();
        self.group.versions = false;
    }

    /// Writes the entries up to the last that can be packed. The others stay in the group.
    fn pack_group(&mut self, packer: &mut PiecePacker) {
        loop {
            let plain = self.group.plain_from(0);
            if plain >= GROUP {
                if !packer.fill(&mut self.group, plain) {
                    return;
                }
                self.put_key(true);
                packer.put_piece(&mut self.bytes);
                self.last_key.clone_from(&self.group.key);
                continue;
            }
            // Entries with versions stand between.
            let Some(rows) = self.group.next_to_pack(plain + 1) else {
                return;
            };
            self.put_rows(rows);
        }
    }

    /// Writes the first entries of the group as rows.
    fn put_rows(&mut self, count: usize) {
        if count > 0 {
            self.put_key(false);
            self.group.write(count, &mut self.bytes);
            self.last_key.clone_from(&self.group.key);
        }
    }

    /// Puts the group's key, as far as it is not that of the group before. `restarts`: the whole key.
    fn put_key(&mut self, restarts: bool) {
        let mut shared = 0;
        let start = self.restarts.last().map(|start| *start as usize);
        let should_continue = start.is_some_and(|start| {
            self.groups < RESTART_GROUPS && self.bytes.len() - start < RESTART_BYTES
        });
        if should_continue && !restarts {
            shared = common_prefix(&self.last_key, &self.group.key);
        } else {
            self.restarts.push(self.bytes.len() as u32);
            self.groups = 0;
        }
        let (_, suffix) = self.group.key.split_at(shared);
        put_lengths(&mut self.bytes, shared, suffix.len());
        self.bytes.extend_from_slice(suffix);
        self.groups += 1;
    }

    /// Hands out the block's bytes and begins a new one. `raw` is cleared first.
    pub fn finish(&mut self, raw: &mut Vec<u8>) {
        if !self.group.bodies.is_empty() {
            self.end_group();
        }
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.bytes
            .extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&self.entries.to_le_bytes());
        raw.clear();
        std::mem::swap(raw, &mut self.bytes);
        self.restarts.clear();
        (self.groups, self.entries) = (0, 0);
        self.last_key.clear();
    }
}

fn put_lengths(bytes: &mut Vec<u8>, shared: usize, length: usize) {
    let short = |number: usize| u8::try_from(number).map_or(LONG, |number| number.min(LONG));
    bytes.push(short(shared) << 4 | short(length));
    for number in [shared, length] {
        if let Some(rest) = number.checked_sub(usize::from(LONG)) {
            varint::put(bytes, rest as u64);
        }
    }
}

impl GroupBuilder {
    /// About the bytes that it will take.
    fn len(&self) -> usize {
        self.payloads.len() + 4 * self.bodies.len()
    }

    /// Writes the first entries, and forgets them.
    fn write(&mut self, count: usize, bytes: &mut Vec<u8>) {
        let (bodies, _) = self.bodies.split_at(count);
        let start = self.payloads_start;
        let end = bodies.last().map_or(start, |last| last.payload_end);
        let payloads = self.payload(start, end).unwrap_or(&[]);
        let versions = self.versions && bodies.iter().any(|body| body.version != 0);
        match bodies {
            [body] if !versions && body.id.0 >> 62 == 0 => match payloads {
                [] => varint::put(bytes, body.id.0 << 2 | LONE),
                payload => {
                    varint::put(bytes, body.id.0 << 2 | LONE_WITH_PAYLOAD);
                    varint::put(bytes, payload.len() as u64);
                    bytes.extend_from_slice(payload);
                }
            },
            _ => write_many(bodies, (payloads, start), versions, bytes),
        }
        self.forget(count, end);
    }

    /// How many entries from `from` on have no version.
    fn plain_from(&self, from: usize) -> usize {
        let rest = self.bodies.get(from..).unwrap_or(&[]);
        let end = rest.iter().position(|body| body.version != 0);
        end.filter(|_| self.versions).unwrap_or(rest.len())
    }

    /// The first place from `from` on at which entries that can be packed begin.
    fn next_to_pack(&self, mut from: usize) -> Option<usize> {
        while from + GROUP <= self.bodies.len() {
            let plain = self.plain_from(from);
            if plain >= GROUP {
                return Some(from);
            }
            from += plain + 1;
        }
        None
    }

    fn payload(&self, start: usize, end: usize) -> Option<&[u8]> {
        self.payloads.get(start..end)
    }

    /// Removes the first bodies. The payload of the next one begins at `payloads_start`.
    fn forget(&mut self, bodies: usize, payloads_start: usize) {
        if bodies == self.bodies.len() {
            self.bodies.clear();
            self.payloads.clear();
            self.payloads_start = 0;
        } else {
            self.bodies.drain(..bodies);
            self.payloads_start = payloads_start;
        }
    }
}

/// Writes entries whose payloads are these, from that place of the group's payloads on.
fn write_many(
    bodies: &[GroupEntry],
    (payloads, mut start): (&[u8], usize),
    versions: bool,
    bytes: &mut Vec<u8>,
) {
    let (count, has_payloads) = (bodies.len() as u64, !payloads.is_empty());
    let head = if has_payloads || versions {
        count << 4 | u64::from(has_payloads) << 3 | u64::from(versions) << 2 | GENERAL
    } else {
        count << 2 | PLAIN
    };
    varint::put(bytes, head);
    let (mut last_id, mut left) = (0, payloads);
    for body in bodies {
        varint::put(bytes, body.id.0 - last_id);
        last_id = body.id.0;
        if versions {
            varint::put(bytes, body.version);
        }
        if has_payloads {
            let (payload, behind) = left.split_at(body.payload_end - start);
            varint::put(bytes, payload.len() as u64);
            bytes.extend_from_slice(payload);
            (left, start) = (behind, body.payload_end);
        }
    }
    debug_assert!(left.is_empty(), "payloads of no entry are left");
}
