//! Limits of an extraction.

use std::time::Instant;

use crate::error::{EXPANDED, ExtractError, MEMBERS};

/// Limits of one call of [`crate::extract`]. They protect against decompression bombs, excessive
/// nesting and endless input.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest file, member or message in bytes.
    pub input_bytes_max: u64,
    /// The longest text of a document in bytes. A longer text is cut. The default leaves room for
    /// metadata within the 16 MB of a stored document.
    pub text_bytes_max: usize,
    /// The bytes that gzip, zip and mail members may decompress to, summed over the file at all
    /// depths.
    pub expanded_bytes_max: u64,
    /// The maximal ratio of a member's decompressed to its compressed size, applied from 16 MiB on.
    /// Text has a ratio of 3 to 20, logs up to 100, decompression bombs about 1,000.
    pub expansion_ratio_max: u64,
    /// The maximal number of nested containers.
    pub depth_max: u32,
    /// The maximal number of archive members and attachments in a file. Messages of an mbox do not
    /// count: their number cannot grow faster than the file.
    pub members_max: u64,
    /// The maximal number of pages of a PDF. Later pages are cut.
    pub pages_max: u32,
    /// When the extraction must end. Checked between members, pages and blocks of text. The time
    /// that the caller spends with the output does not count.
    pub deadline: Option<Instant>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            input_bytes_max: 128 << 20,
            text_bytes_max: 8 << 20,
            expanded_bytes_max: 512 << 20,
            expansion_ratio_max: 200,
            depth_max: 5,
            members_max: 100_000,
            pages_max: 10_000,
            deadline: None,
        }
    }
}

const RATIO: &str = "the expansion of packed data";
const RATIO_FREE_BYTES: u64 = 16 << 20;

impl Limits {
    pub(crate) fn check_deadline(&self) -> Result<(), ExtractError> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(ExtractError::Deadline),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_input(&self, bytes: usize) -> Result<(), ExtractError> {
        within(bytes as u64, self.input_bytes_max, "the size", "bytes")
    }

    pub(crate) fn check_depth(&self, depth: u32) -> Result<(), ExtractError> {
        within(
            depth.into(),
            self.depth_max.into(),
            "the depth of containers",
            "levels",
        )
    }
}

/// Resources that a file has used so far, over all of its members.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    expanded_bytes: u64,
    members: u64,
}

impl Spent {
    pub(crate) fn member(&mut self, limits: &Limits) -> Result<(), ExtractError> {
        limits.check_deadline()?;
        self.members += 1;
        within(self.members, limits.members_max, MEMBERS, "members")
    }

    /// Returns how many bytes a member of `packed_bytes` may decompress to, and the error if it has
    /// more.
    pub(crate) fn room(&self, packed_bytes: u64, limits: &Limits) -> (u64, ExtractError) {
        let ratio_bytes = packed_bytes
            .saturating_mul(limits.expansion_ratio_max)
            .max(RATIO_FREE_BYTES);
        let expanded_bytes = limits
            .expanded_bytes_max
            .saturating_sub(self.expanded_bytes);
        let bounds = [
            (
                expanded_bytes,
                exceeded(EXPANDED, limits.expanded_bytes_max, "bytes"),
            ),
            (
                limits.input_bytes_max,
                exceeded("the size", limits.input_bytes_max, "bytes"),
            ),
            (
                ratio_bytes,
                exceeded(RATIO, limits.expansion_ratio_max, "times"),
            ),
        ];
        let [first, second, third] = bounds;
        [second, third].into_iter().fold(
            first,
            |least, bound| {
                if bound.0 < least.0 { bound } else { least }
            },
        )
    }

    pub(crate) fn expanded(&mut self, bytes: usize, limits: &Limits) -> Result<(), ExtractError> {
        self.expanded_bytes = self.expanded_bytes.saturating_add(bytes as u64);
        within(
            self.expanded_bytes,
            limits.expanded_bytes_max,
            EXPANDED,
            "bytes",
        )
    }
}

fn within(
    value: u64,
    limit: u64,
    what: &'static str,
    unit: &'static str,
) -> Result<(), ExtractError> {
    if value > limit {
        Err(exceeded(what, limit, unit))
    } else {
        Ok(())
    }
}

fn exceeded(what: &'static str, limit: u64, unit: &'static str) -> ExtractError {
    ExtractError::Limit { what, limit, unit }
}
