//! The packed form of a block: bytes of one kind are stored together in a column, and each column
//! is compressed with its own code.
//!
//! ```text
//! packed    0 | block                                       the block as `block` writes it
//!           1 | column length varint: 34 times | column: 34 times
//! columns   from the groups of the block, in order:
//!           0        the number of groups of each restart interval, u8
//!           1        lengths
//!           2        the numbers after lengths of 15
//!           3 to 7   heads: the first bytes, the second bytes, … the fifth and all further bytes
//!           8 to 32  key bytes: the first bytes of keys, … the 25th and all further bytes
//!           33       the bytes after heads
//! ```
//! The entry count and the restarts are not stored. They are computed again.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

use crate::block::LONG;
use crate::block_layout::BlockLayout;
use crate::groups::{GroupForm, take_payload};
use crate::varint;

const ROWS: u8 = 0;
const COLUMNS: u8 = 1;

const INTERVALS: usize = 0;
const LENGTHS: usize = 1;
const LONG_LENGTHS: usize = 2;
const HEADS: std::ops::Range<usize> = 3..8;
const KEYS: std::ops::Range<usize> = 8..33;
const BODIES: usize = 33;
const COUNT: usize = 34;

/// Encodes a block unchanged, as the one part of a packed block.
pub fn rows(block: &[u8]) -> Vec<Vec<u8>> {
    let mut bytes = Vec::with_capacity(block.len() + 1);
    bytes.push(ROWS);
    bytes.extend_from_slice(block);
    vec![bytes]
}

/// Encodes a block by columns. Each part has statistics of its own. Returns `None` if the bytes are
/// not a block.
pub fn columns(block: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut parts = split(block)?;
    let mut head = vec![COLUMNS];
    parts
        .iter()
        .for_each(|part| varint::put(&mut head, part.len() as u64));
    parts.insert(0, head);
    Some(parts)
}

/// Decodes a packed block. Returns `None` if the bytes are not a packed block.
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    match packed.split_first()? {
        (&ROWS, block) => Some(block.to_vec()),
        (&COLUMNS, columns) => Columns::read(columns)?.join(),
        _ => None,
    }
}

fn split(block: &[u8]) -> Option<Vec<Vec<u8>>> {
    let layout = BlockLayout::read(block)?;
    let mut columns = vec![Vec::new(); COUNT];
    for number in 0..layout.intervals() {
        let mut interval = layout.interval(number)?;
        let mut count = 0u8;
        while !interval.is_empty() {
            split_group(&mut interval, &mut columns)?;
            count = count.checked_add(1)?;
        }
        columns.get_mut(INTERVALS)?.push(count);
    }
    Some(columns)
}

fn split_group(rest: &mut &[u8], columns: &mut [Vec<u8>]) -> Option<()> {
    let lengths = take(rest)?;
    columns.get_mut(LENGTHS)?.push(lengths);
    let lengths = KeyLengths::decode(lengths, rest, columns.get_mut(LONG_LENGTHS)?)?;
    let suffix = varint::take_bytes(rest, lengths.suffix as u64)?;
    let mut places = KEYS.skip(lengths.shared);
    for byte in suffix {
        let place = places.next().unwrap_or(KEYS.end - 1);
        columns.get_mut(place)?.push(*byte);
    }
    let head = take_varint(rest)?;
    let mut places = HEADS;
    for byte in head {
        let place = places.next().unwrap_or(HEADS.end - 1);
        columns.get_mut(place)?.push(*byte);
    }
    let (body, _) = body(rest, number(head)?)?;
    columns.get_mut(BODIES)?.extend_from_slice(body);
    Some(())
}

/// The columns of a packed block, without what was decoded already.
struct Columns<'c> {
    remaining: [&'c [u8]; COUNT],
    bytes: usize,
}

impl<'c> Columns<'c> {
    fn read(mut bytes: &'c [u8]) -> Option<Columns<'c>> {
        let mut lengths = [0; COUNT];
        for length in &mut lengths {
            *length = varint::take(&mut bytes)?;
        }
        let (mut remaining, all) = ([&b""[..]; COUNT], bytes.len());
        for (column, length) in remaining.iter_mut().zip(lengths) {
            *column = varint::take_bytes(&mut bytes, length)?;
        }
        let columns = Columns {
            remaining,
            bytes: all,
        };
        bytes.is_empty().then_some(columns)
    }

    fn join(mut self) -> Option<Vec<u8>> {
        let intervals = std::mem::take(self.remaining.get_mut(INTERVALS)?);
        let mut block = Vec::with_capacity(self.bytes + 4 * intervals.len() + 8);
        let (mut restarts, mut entries) = (Vec::with_capacity(intervals.len()), 0u32);
        for groups in intervals {
            restarts.push(u32::try_from(block.len()).ok()?);
            for _ in 0..*groups {
                let count = self.join_group(&mut block)?;
                entries = entries.checked_add(u32::try_from(count).ok()?)?;
            }
        }
        for number in restarts.iter().chain([&(restarts.len() as u32), &entries]) {
            block.extend_from_slice(&number.to_le_bytes());
        }
        let is_all = self.remaining.iter().all(|column| column.is_empty());
        is_all.then_some(block)
    }

    /// Decodes the next group. Returns the number of its entries.
    fn join_group(&mut self, block: &mut Vec<u8>) -> Option<u64> {
        let lengths = take(self.remaining.get_mut(LENGTHS)?)?;
        block.push(lengths);
        let lengths = KeyLengths::decode(lengths, self.remaining.get_mut(LONG_LENGTHS)?, block)?;
        let first = KEYS.start.checked_add(lengths.shared)?;
        let end = first.checked_add(lengths.suffix)?;
        let last = KEYS.end - 1;
        for place in first.min(last)..end.min(last) {
            block.push(take(self.remaining.get_mut(place)?)?);
        }
        let behind = end.saturating_sub(first.max(last));
        let rest = self.remaining.get_mut(last)?;
        block.extend_from_slice(varint::take_bytes(rest, behind as u64)?);
        let head = self.join_head(block)?;
        let (body, entries) = body(self.remaining.get_mut(BODIES)?, head)?;
        block.extend_from_slice(body);
        Some(entries)
    }

    fn join_head(&mut self, block: &mut Vec<u8>) -> Option<u64> {
        let start = block.len();
        for place in HEADS.chain(std::iter::repeat(HEADS.end - 1)) {
            let byte = take(self.remaining.get_mut(place)?)?;
            block.push(byte);
            if byte < 0x80 {
                break;
            }
        }
        number(block.get(start..)?)
    }
}

/// The lengths of the two parts of a key, in bytes.
struct KeyLengths {
    /// The length of the part that the key has in common with the key before it.
    shared: usize,
    /// The length of the rest.
    suffix: usize,
}

impl KeyLengths {
    /// Decodes the lengths of a key from the first byte of a group. Lengths that do not fit into it
    /// are taken off `long`, and their bytes are appended to `into`.
    fn decode(lengths: u8, long: &mut &[u8], into: &mut Vec<u8>) -> Option<KeyLengths> {
        let mut length_of = |short: u8| {
            if short < LONG {
                return Some(usize::from(short));
            }
            let more = take_varint(long)?;
            into.extend_from_slice(more);
            usize::try_from(number(more)?)
                .ok()?
                .checked_add(usize::from(LONG))
        };
        Some(KeyLengths {
            shared: length_of(lengths >> 4)?,
            suffix: length_of(lengths & LONG)?,
        })
    }
}

/// Takes the bytes that follow a group's head. Returns them and the number of entries of the group.
fn body<'b>(rest: &mut &'b [u8], head: u64) -> Option<(&'b [u8], u64)> {
    let all = *rest;
    let entries = match GroupForm::from_head(head) {
        // Blocks with pieces are packed already and are stored as rows.
        GroupForm::Piece => return None,
        GroupForm::One { has_payload, .. } => {
            if has_payload {
                take_payload(rest)?;
            }
            1
        }
        GroupForm::Rows(rows) => {
            rows.skip(rest)?;
            rows.count
        }
    };
    Some((all.get(..all.len() - rest.len())?, entries))
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (&byte, behind) = rest.split_first()?;
    *rest = behind;
    Some(byte)
}

/// Takes the bytes of a number.
fn take_varint<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let all = *rest;
    varint::skip(rest, 1)?;
    all.get(..all.len() - rest.len())
}

fn number(mut varint: &[u8]) -> Option<u64> {
    varint::take(&mut varint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_storage::Position;

    use crate::block::BlockBuilder;
    use crate::entry::{Entry, RecordId};

    fn check(entries: &[(Vec<u8>, u64, u64, Vec<u8>)]) {
        let (mut builder, mut block) = (BlockBuilder::default(), Vec::new());
        let mut last: Option<&[u8]> = None;
        for (key, id, position, payload) in entries {
            let entry = Entry {
                key,
                id: RecordId(*id),
                position: Position(*position),
                deleted: *position % 3 == 1,
                payload,
            };
            builder.push(&entry, last != Some(key)).unwrap();
            last = Some(key);
        }
        builder.finish(&mut block).unwrap();
        let packed = columns(&block).unwrap().concat();
        assert_eq!(unpack(&packed).unwrap(), block);
        assert_eq!(unpack(&rows(&block).concat()).unwrap(), block);
        for end in 0..packed.len() {
            assert_ne!(
                unpack(&packed[..end]).as_ref(),
                Some(&block),
                "cut at {end}"
            );
        }
    }

    #[test]
    fn blocks_round_trip() {
        let number = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let with = |key: &dyn Fn(u64) -> Vec<u8>, position: u64, payload: usize| {
            let entry = |n: u64| {
                (
                    key(n),
                    number(n) >> (n % 64),
                    position * n,
                    vec![7; payload],
                )
            };
            let mut entries: Vec<_> = (0..300).map(entry).collect();
            entries.sort();
            entries.dedup_by(|a, b| (&a.0, a.1) == (&b.0, b.1));
            entries
        };
        let short = |n: u64| number(n).to_be_bytes().to_vec();
        let long = |n: u64| [vec![b'x'; 20 + n as usize % 30], short(n)].concat();
        let few = |n: u64| vec![(n % 4) as u8];
        for key in [&short as &dyn Fn(u64) -> Vec<u8>, &long, &few, &|_| {
            Vec::new()
        }] {
            for (position, payload) in [(0, 0), (0, 20), (1, 0), (1, 3)] {
                check(&with(key, position, payload));
            }
        }
    }

    /// The format of existing data folders must not change.
    #[test]
    fn columns_are_as_documented() {
        let (mut builder, mut block) = (BlockBuilder::default(), Vec::new());
        for (key, id) in [(b"ab", 1), (b"ac", 300), (b"bd", 2)] {
            let entry = Entry {
                key,
                id: RecordId(id),
                position: Position::ZERO,
                deleted: false,
                payload: b"",
            };
            builder.push(&entry, true).unwrap();
        }
        builder.finish(&mut block).unwrap();
        let packed = columns(&block).unwrap().concat();
        let mut expected = vec![1, 1, 3, 0, 3, 1, 0, 0, 0, 2, 3];
        expected.extend([0; 24]);
        expected.extend([3, 0x02, 0x11, 0x02, 4, 0xB0, 8, 9]);
        expected.extend(b"abbcd");
        assert_eq!(packed, expected);
    }

    #[test]
    fn other_bytes_than_packed_blocks_are_refused() {
        let none: [&[u8]; 5] = [b"", b"\x02", b"\x01", b"\x01\x05", &[1; 60]];
        for bytes in none {
            assert_eq!(unpack(bytes), None, "{bytes:?}");
        }
        assert_eq!(columns(b"short"), None);
        assert_eq!(columns(&[0xFF; 40]), None);
    }
}
