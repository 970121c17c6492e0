//! The restart offsets of a block, at which decoding can begin. The layout is in
//! [`block`](crate::block).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

use windrow_postings::Piece;

use crate::entry::{EntryKey, RecordId};
use crate::groups::{GroupForm, RelativeKey, take_payload};
use crate::varint;

/// The restart offsets of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockLayout<'a> {
    groups: &'a [u8],
    restarts: &'a [u8],
}

/// What a restart interval begins with.
pub(crate) enum IntervalContent<'a> {
    /// A piece of packed postings.
    Piece { key: &'a [u8], piece: Piece<'a> },
    /// Other entries.
    Entries,
}

impl<'a> BlockLayout<'a> {
    /// Reads the offsets from the end of a block. Returns `None` if the bytes are not a block.
    pub fn read(block: &'a [u8]) -> Option<BlockLayout<'a>> {
        let (rest, _entries) = block.split_last_chunk::<4>()?;
        let (rest, count) = rest.split_last_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let groups_end = rest.len().checked_sub(count.checked_mul(4)?)?;
        let (groups, restarts) = rest.split_at_checked(groups_end)?;
        Some(BlockLayout { groups, restarts })
    }

    /// Returns the number of restart intervals.
    pub fn intervals(&self) -> usize {
        self.restarts.len() / 4
    }

    /// Returns the offset of the end of the last group.
    pub(crate) fn groups_end(&self) -> usize {
        self.groups.len()
    }

    /// Returns the offset at which an interval begins.
    pub(crate) fn restart(&self, interval: usize) -> Option<usize> {
        let bytes = self.restarts.get(4 * interval..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes) as usize)
    }

    /// Returns the bytes of an interval. `None` if there is no such interval or the block is
    /// damaged.
    pub(crate) fn interval(&self, interval: usize) -> Option<&'a [u8]> {
        let start = self.restart(interval)?;
        match self.restart(interval + 1) {
            Some(end) => self.groups.get(start..end),
            None => self.groups.get(start..),
        }
    }

    /// Returns what an interval begins with. `None` if the block is damaged.
    pub(crate) fn content(&self, interval: usize) -> Option<IntervalContent<'a>> {
        let IntervalStart {
            key,
            form,
            mut rest,
        } = IntervalStart::read(self.interval(interval)?)?;
        if form != GroupForm::Piece {
            return Some(IntervalContent::Entries);
        }
        let piece = Piece::read(take_payload(&mut rest)?)?;
        Some(IntervalContent::Piece { key, piece })
    }

    /// Returns the last interval whose first entry is at or before the entry key, or 0 if there is
    /// none. `None` if the block is damaged.
    pub fn interval_of(&self, key: &[u8], id: RecordId) -> Option<usize> {
        self.search(self.intervals() / 2, usize::MAX, key, id)
    }

    /// Returns the same as [`interval_of`](Self::interval_of). The search begins at the interval
    /// `guess` and reads fewer intervals the closer the result is to it.
    pub(crate) fn interval_near(&self, guess: usize, key: &[u8], id: RecordId) -> Option<usize> {
        self.search(guess, 1, key, id)
    }

    /// Searches from an interval on, in steps that are doubled each time but are never longer than
    /// those of a binary search.
    fn search(
        &self,
        mut middle: usize,
        mut step: usize,
        key: &[u8],
        id: RecordId,
    ) -> Option<usize> {
        let (mut low, mut high) = (0, self.intervals());
        while high.saturating_sub(low) > 1 {
            middle = middle.clamp(low + 1, high - 1);
            if self.begins_after(middle, key, id)? {
                high = middle;
                middle = high - step.min((high - low) / 2);
            } else {
                low = middle;
                middle = low + step.min((high - low) / 2);
            }
            step = step.saturating_mul(2);
        }
        Some(low)
    }

    /// Returns `true` if the first entry of an interval is behind the entry key. `None` if the
    /// block is damaged.
    fn begins_after(&self, interval: usize, key: &[u8], id: RecordId) -> Option<bool> {
        Some(first_of(self.interval(interval)?)? > EntryKey::new(key, id))
    }
}

/// The start of an interval.
struct IntervalStart<'b> {
    /// The key of the first entry.
    key: &'b [u8],
    /// The form of the first group.
    form: GroupForm,
    /// The bytes after the head of the group.
    rest: &'b [u8],
}

impl IntervalStart<'_> {
    fn read(mut bytes: &[u8]) -> Option<IntervalStart<'_>> {
        // At a restart, the suffix is the whole key.
        let key = RelativeKey::take(&mut bytes)?.suffix;
        let form = GroupForm::from_head(varint::take(&mut bytes)?);
        Some(IntervalStart {
            key,
            form,
            rest: bytes,
        })
    }
}

/// Returns the key and id of the first entry of an interval.
fn first_of(bytes: &[u8]) -> Option<EntryKey<'_>> {
    let IntervalStart {
        key,
        form,
        mut rest,
    } = IntervalStart::read(bytes)?;
    let id = match form {
        GroupForm::Piece => RecordId(Piece::read(take_payload(&mut rest)?)?.first_id()),
        GroupForm::One { id, .. } => id,
        GroupForm::Rows(_) => RecordId(varint::take(&mut rest)?),
    };
    Some(EntryKey::new(key, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockBuilder;
    use crate::entry::Entry;
    use windrow_storage::Position;

    #[test]
    fn search_near_a_guess_finds_the_same_interval() {
        let mut builder = BlockBuilder::default();
        for id in (10..2_000).step_by(7) {
            let entry = Entry {
                key: b"",
                id: RecordId(id),
                position: Position::ZERO,
                deleted: false,
                payload: &[1; 100],
            };
            builder.push(&entry, id == 10).unwrap();
        }
        let mut block = Vec::new();
        builder.finish(&mut block).unwrap();
        let layout = BlockLayout::read(&block).unwrap();
        assert!(layout.intervals() > 10, "{}", layout.intervals());
        for id in (0..2_100).map(RecordId) {
            let expected = layout.interval_of(b"", id).unwrap();
            for guess in 0..=layout.intervals() {
                assert_eq!(layout.interval_near(guess, b"", id), Some(expected));
            }
        }
    }
}
