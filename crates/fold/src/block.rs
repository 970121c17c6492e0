//! The data blocks of a section: entries in order, each key stored once.
//!
//! ```text
//! block    group* | restart: u32 LE each | restart count u32 LE | entry count u32 LE
//! restart  the offset of a group whose key is whole: the first one, and one after at most 32 groups
//!          or 512 bytes
//! group    lengths u8 | shared varint, if 15 | length varint, if 15 | key bytes | head varint | ...
//! lengths  shared << 4 | length: the key has the first `shared` bytes of the last key, then `length`
//!          bytes of its own; if one of the numbers is 15, the number minus 15 follows
//! head     id << 2           one entry, settled, not deleted, without payload: nothing follows
//!                            (ids from 2^62 on use the forms with a count)
//!          id << 2 | 1       one entry, settled, not deleted: length varint | payload
//!          count << 2 | 2    `count` entries, settled, not deleted, without payload: entry*
//!          count << 4 | payloads << 3 | versions << 2 | 3: entry*
//!          3                 a piece of packed postings: length varint | piece (see
//!                            `windrow_postings`); only in sections of postings, always at a restart
//! entry    id varint (from the second one on: minus the last id)
//!          if versions: position << 1 | deleted, varint        (otherwise settled, not deleted)
//!          if payloads: length varint | payload                (otherwise empty)
//! ```
//! All versions of an entry are in one group of one block. A key with many ids continues in another
//! group after 2 KB, or in the next block.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod pieces;

use std::sync::Arc;

use windrow_invariant::Bug;
use windrow_postings::GROUP;

use crate::entry::{Entry, RecordId, common_prefix, same_key};
use crate::varint;
pub use pieces::PostingsForm;
use pieces::{PiecePacker, ROWS_MAX};
pub(crate) use pieces::{PiecePositions, SectionLengths};

/// A block is closed at this size, in bytes before compression.
pub const BLOCK_BYTES: usize = 32 << 10;
/// A restart interval ends after this many groups or bytes. A lookup of one entry decodes one
/// interval.
const RESTART_GROUPS: usize = 32;
const RESTART_BYTES: usize = 512;
/// A group ends after this many bytes, and the key continues in another group.
const GROUP_BYTES: usize = 2 << 10;
/// Lengths in the first byte of a group from this one on continue in a number of their own.
pub(crate) const LONG: u8 = 15;

/// The kinds of a group's head, in its lowest two bits.
pub(crate) const LONE: u64 = 0;
pub(crate) const LONE_WITH_PAYLOAD: u64 = 1;
pub(crate) const PLAIN: u64 = 2;
const GENERAL: u64 = 3;
/// The head of a group that is a piece of packed postings.
pub(crate) const PIECE: u64 = GENERAL;

/// Writes entries, which are pushed in order, into blocks.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// The number of groups since the last restart.
    groups: usize,
    entries: u32,
    last_key: Vec<u8>,
    group: GroupBuilder,
    /// Packs runs of postings of one key. `None` if the payloads are not postings.
    packer: Option<PiecePacker>,
}

/// The entries of the key that is being written.
#[derive(Debug, Default)]
struct GroupBuilder {
    key: Vec<u8>,
    rows: Vec<GroupEntry>,
    payloads: Vec<u8>,
    /// The payloads before this offset are written already.
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
    /// Creates a builder for entries whose payloads are postings.
    pub(crate) fn for_postings(form: PostingsForm, lengths: Arc<SectionLengths>) -> BlockBuilder {
        BlockBuilder {
            packer: Some(PiecePacker::new(form, lengths)),
            ..BlockBuilder::default()
        }
    }

    /// Takes the positions of the blocks built so far. `None` if the payloads are not postings.
    pub(crate) fn take_positions(&mut self) -> Option<PiecePositions> {
        self.packer.as_mut().map(PiecePacker::take_positions)
    }

    /// Returns the number of entries in the current block.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Returns `true` if the current block has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Estimates the size of the current block, in bytes before compression.
    pub fn len(&self) -> usize {
        match self.packer {
            // Packed postings take about a third of their bytes.
            Some(_) => self.bytes.len() + self.group.len() / 3,
            None => self.bytes.len() + self.group.len(),
        }
    }

    /// Returns `true` if the block must be closed before this entry. Versions of one entry are not
    /// divided.
    pub fn is_full_before(&self, entry: &Entry<'_>) -> bool {
        if self.len() < BLOCK_BYTES {
            return false;
        }
        let same = self
            .group
            .rows
            .last()
            .is_some_and(|last| last.id == entry.id);
        !(same && same_key(&self.group.key, entry.key))
    }

    /// Adds the next entry in order. `new_key` says that its key differs from that of the last
    /// entry.
    pub fn push(&mut self, entry: &Entry<'_>, new_key: bool) -> Result<(), Bug> {
        debug_assert!(entry.position.0 >> 63 == 0, "position {}", entry.position);
        if let Some(last) = self.group.rows.last() {
            debug_assert!(
                new_key || last.id <= entry.id && same_key(&self.group.key, entry.key),
                "record {} follows record {}",
                entry.id,
                last.id
            );
            let is_full = match self.packer {
                Some(_) => self.group.rows.len() >= ROWS_MAX,
                None => self.group.len() >= GROUP_BYTES,
            };
            let is_long = last.id != entry.id && is_full;
            if new_key || is_long {
                self.end_group()?;
            }
        }
        if self.group.rows.is_empty() {
            self.group.key.extend_from_slice(entry.key);
        }
        let version = entry.position.0 << 1 | u64::from(entry.deleted);
        self.group.versions |= version != 0;
        self.group.payloads.extend_from_slice(entry.payload);
        let payload_end = self.group.payloads.len();
        self.group.rows.push(GroupEntry {
            id: entry.id,
            version,
            payload_end,
        });
        self.entries += 1;
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), Bug> {
        // Most keys of a large index have one entry. This check keeps them off the packer.
        if self.group.rows.len() >= GROUP
            && let Some(mut packer) = self.packer.take()
        {
            let packed = self.pack_group(&mut packer);
            self.packer = Some(packer);
            packed?;
        }
        if !self.group.rows.is_empty() {
            self.put_key(false);
            self.group.write(self.group.rows.len(), &mut self.bytes)?;
        }
        std::mem::swap(&mut self.last_key, &mut self.group.key);
        self.group.key.clear();
        self.group.versions = false;
        Ok(())
    }

    /// Writes the entries up to the last that can be packed. The others stay in the group.
    fn pack_group(&mut self, packer: &mut PiecePacker) -> Result<(), Bug> {
        loop {
            let plain = self.group.plain_from(0);
            if plain >= GROUP {
                if !packer.fill(&mut self.group, plain)? {
                    return Ok(());
                }
                self.put_key(true);
                packer.put_piece(&mut self.bytes);
                self.last_key.clone_from(&self.group.key);
                continue;
            }
            // Entries with versions cannot be packed: the rows up to them are written.
            let Some(rows) = self.group.next_to_pack(plain + 1) else {
                return Ok(());
            };
            self.put_rows(rows)?;
        }
    }

    /// Writes the first entries of the group as rows.
    fn put_rows(&mut self, count: usize) -> Result<(), Bug> {
        if count > 0 {
            self.put_key(false);
            self.group.write(count, &mut self.bytes)?;
            self.last_key.clone_from(&self.group.key);
        }
        Ok(())
    }

    /// Writes the key of the group, without the prefix that it shares with the last key. With
    /// `restarts` the key is whole, and an interval begins.
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

    /// Finishes the block and moves its bytes to `raw`, whose content is replaced. The next block
    /// begins.
    pub fn finish(&mut self, raw: &mut Vec<u8>) -> Result<(), Bug> {
        if !self.group.rows.is_empty() {
            self.end_group()?;
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
        Ok(())
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
    /// Estimates the size of the group, in bytes.
    fn len(&self) -> usize {
        self.payloads.len() + 4 * self.rows.len()
    }

    /// Writes the first `count` entries and removes them.
    fn write(&mut self, count: usize, bytes: &mut Vec<u8>) -> Result<(), Bug> {
        let (rows, _) = self.rows.split_at(count);
        let start = self.payloads_start;
        let end = rows.last().map_or(start, |last| last.payload_end);
        let payloads = self.payload(start, end)?;
        let versions = self.versions && rows.iter().any(|body| body.version != 0);
        match rows {
            [body] if !versions && body.id.0 >> 62 == 0 => match payloads {
                [] => varint::put(bytes, body.id.0 << 2 | LONE),
                payload => {
                    varint::put(bytes, body.id.0 << 2 | LONE_WITH_PAYLOAD);
                    varint::put(bytes, payload.len() as u64);
                    bytes.extend_from_slice(payload);
                }
            },
            _ => write_many(rows, payloads, start, versions, bytes),
        }
        self.forget(count, end);
        Ok(())
    }

    /// Returns the number of consecutive entries from `from` on that are settled and not deleted.
    fn plain_from(&self, from: usize) -> usize {
        let rest = self.rows.get(from..).unwrap_or(&[]);
        let end = rest.iter().position(|body| body.version != 0);
        end.filter(|_| self.versions).unwrap_or(rest.len())
    }

    /// Returns the index of the first entry from `from` on at which a group of postings can be
    /// packed.
    fn next_to_pack(&self, mut from: usize) -> Option<usize> {
        while from + GROUP <= self.rows.len() {
            let plain = self.plain_from(from);
            if plain >= GROUP {
                return Some(from);
            }
            from += plain + 1;
        }
        None
    }

    fn payload(&self, start: usize, end: usize) -> Result<&[u8], Bug> {
        self.payloads.get(start..end).ok_or_else(|| {
            let bytes = self.payloads.len();
            Bug::new(format!(
                "bytes {start} to {end} of the {bytes} bytes of payloads of a group are written"
            ))
        })
    }

    /// Removes the first entries. The payload of the next one begins at `payloads_start`.
    fn forget(&mut self, rows: usize, payloads_start: usize) {
        if rows == self.rows.len() {
            self.rows.clear();
            self.payloads.clear();
            self.payloads_start = 0;
        } else {
            self.rows.drain(..rows);
            self.payloads_start = payloads_start;
        }
    }
}

/// Writes several entries as rows. The payloads begin at `start` of the payloads of the group.
fn write_many(
    rows: &[GroupEntry],
    payloads: &[u8],
    mut start: usize,
    versions: bool,
    bytes: &mut Vec<u8>,
) {
    let (count, has_payloads) = (rows.len() as u64, !payloads.is_empty());
    let head = if has_payloads || versions {
        count << 4 | u64::from(has_payloads) << 3 | u64::from(versions) << 2 | GENERAL
    } else {
        count << 2 | PLAIN
    };
    varint::put(bytes, head);
    let (mut last_id, mut left) = (0, payloads);
    for body in rows {
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
