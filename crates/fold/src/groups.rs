//! Parsing of the groups of a data block without their entries. The layout is in
//! [`block`](crate::block).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

use crate::block::{LONE, LONE_WITH_PAYLOAD, LONG, PIECE, PLAIN};
use crate::entry::RecordId;
use crate::varint;

/// A group: its form and the offsets of its entries in the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockGroup {
    pub form: GroupForm,
    /// The bytes of the entries begin at this offset of the block, after the head.
    pub start: usize,
    pub end: usize,
}

/// The form of a group, which its head encodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupForm {
    /// One settled entry with this id.
    One { id: RecordId, has_payload: bool },
    /// Several entries, one after the other.
    Rows(RowFormat),
    /// A piece of packed postings.
    Piece,
}

/// How the entries of a group of rows are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowFormat {
    pub count: u64,
    pub has_payloads: bool,
    pub has_versions: bool,
}

/// The key of a group, relative to that of the group before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelativeKey<'b> {
    /// The number of bytes that it shares with the beginning of the last key.
    pub shared: usize,
    pub suffix: &'b [u8],
}

impl GroupForm {
    /// Decodes the head of a group.
    #[inline]
    pub fn from_head(head: u64) -> GroupForm {
        if head == PIECE {
            return GroupForm::Piece;
        }
        match head & 3 {
            LONE | LONE_WITH_PAYLOAD => GroupForm::One {
                id: RecordId(head >> 2),
                has_payload: head & 3 == LONE_WITH_PAYLOAD,
            },
            PLAIN => GroupForm::Rows(RowFormat {
                count: head >> 2,
                ..RowFormat::default()
            }),
            _ => GroupForm::Rows(RowFormat {
                count: head >> 4,
                has_payloads: head & 8 != 0,
                has_versions: head & 4 != 0,
            }),
        }
    }
}

impl RowFormat {
    /// Skips the entries. Returns `None` if the bytes end before.
    pub fn skip(self, rest: &mut &[u8]) -> Option<()> {
        let numbers = 1 + u64::from(self.has_versions);
        if !self.has_payloads {
            return varint::skip(rest, self.count.checked_mul(numbers)?);
        }
        for _ in 0..self.count {
            varint::skip(rest, numbers)?;
            take_payload(rest)?;
        }
        Some(())
    }
}

impl<'b> RelativeKey<'b> {
    /// Takes the key of a group off the front. Returns `None` if the bytes are damaged.
    #[inline]
    pub fn take(rest: &mut &'b [u8]) -> Option<RelativeKey<'b>> {
        let (&lengths, behind) = rest.split_first()?;
        *rest = behind;
        let mut long = |short: u8| match short {
            LONG => varint::take(rest)?.checked_add(u64::from(LONG)),
            short => Some(u64::from(short)),
        };
        let (shared, length) = (long(lengths >> 4)?, long(lengths & LONG)?);
        Some(RelativeKey {
            shared: usize::try_from(shared).ok()?,
            suffix: varint::take_bytes(rest, length)?,
        })
    }
}

/// Takes a payload or a piece off the front: its length, then its bytes.
#[inline]
pub(crate) fn take_payload<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = varint::take(rest)?;
    varint::take_bytes(rest, length)
}

/// Parses the group at offset `at` of a block. Returns `None` if it is damaged.
pub(crate) fn read(block: &[u8], at: usize, end: usize) -> Option<(RelativeKey<'_>, BlockGroup)> {
    let mut rest = block.get(at..end)?;
    let key = RelativeKey::take(&mut rest)?;
    let form = GroupForm::from_head(varint::take(&mut rest)?);
    let mut start = end - rest.len();
    match form {
        GroupForm::Piece => {
            let piece = take_payload(&mut rest)?;
            start = end - rest.len() - piece.len();
        }
        GroupForm::One { has_payload, .. } => {
            if has_payload {
                take_payload(&mut rest)?;
            }
        }
        GroupForm::Rows(rows) => rows.skip(&mut rest)?,
    }
    let end = end - rest.len();
    Some((key, BlockGroup { form, start, end }))
}
