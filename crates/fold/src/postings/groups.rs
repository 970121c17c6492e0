//! The groups of a data block, without decoding their entries. The layout is in [`block`](crate::block).

use crate::block::{LONE, LONE_WITH_PAYLOAD, LONG, PIECE, PLAIN};
use crate::varint;

/// A group: its place in the block and its form.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub form: Form,
    /// The bytes of the block that hold the entries: those after the head.
    pub start: usize,
    pub end: usize,
}

/// The form of a group. See [`block`](crate::block).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One entry with that id, and whether a payload follows.
    One { id: u64, has_payload: bool },
    /// So many entries.
    Rows {
        count: u64,
        has_payloads: bool,
        has_versions: bool,
    },
    /// A piece of packed postings.
    Piece,
}

/// The key of a group, relative to that of the group before.
#[derive(Clone, Copy, Debug)]
pub struct RelativeKey<'b> {
    /// How many bytes of the last key it begins with.
    pub shared: usize,
    pub suffix: &'b [u8],
}

/// Reads the group at a place of the block. Returns `None` if it is damaged.
pub fn read(block: &[u8], at: usize, end: usize) -> Option<(RelativeKey<'_>, Group)> {
    let mut rest = block.get(at..end)?;
    let (&lengths, behind) = rest.split_first()?;
    rest = behind;
    let shared = take_length(lengths >> 4, &mut rest)?;
    let length = take_length(lengths & LONG, &mut rest)?;
    let suffix = varint::take_bytes(&mut rest, length)?;
    let key = RelativeKey {
        shared: usize::try_from(shared).ok()?,
        suffix,
    };
    let head = varint::take(&mut rest)?;
    let form = match (head, head & 3) {
        (PIECE, _) => Form::Piece,
        (_, LONE) => Form::One {
            id: head >> 2,
            has_payload: false,
        },
        (_, LONE_WITH_PAYLOAD) => Form::One {
            id: head >> 2,
            has_payload: true,
        },
        (_, PLAIN) => Form::Rows {
            count: head >> 2,
            has_payloads: false,
            has_versions: false,
        },
        _ => Form::Rows {
            count: head >> 4,
            has_payloads: head & 8 != 0,
            has_versions: head & 4 != 0,
        },
    };
    let mut start = end - rest.len();
    match form {
        Form::Piece => {
            let length = varint::take(&mut rest)?;
            start = end - rest.len();
            varint::take_bytes(&mut rest, length)?;
        }
        Form::One { has_payload, .. } => skip_payload(&mut rest, has_payload)?,
        Form::Rows {
            count,
            has_payloads: false,
            has_versions,
        } => varint::skip(&mut rest, count.checked_mul(1 + u64::from(has_versions))?)?,
        Form::Rows {
            count,
            has_versions,
            ..
        } => {
            for _ in 0..count {
                varint::skip(&mut rest, 1 + u64::from(has_versions))?;
                skip_payload(&mut rest, true)?;
            }
        }
    }
    let end = end - rest.len();
    Some((key, Group { form, start, end }))
}

fn take_length(short: u8, rest: &mut &[u8]) -> Option<u64> {
    if short < LONG {
        return Some(u64::from(short));
    }
    varint::take(rest)?.checked_add(u64::from(LONG))
}

fn skip_payload(rest: &mut &[u8], has_payload: bool) -> Option<()> {
    if has_payload {
        let length = varint::take(rest)?;
        varint::take_bytes(rest, length)?;
    }
    Some(())
}
