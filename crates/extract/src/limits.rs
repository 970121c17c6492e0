//! What bounds an extraction.

use std::time::Instant;

use crate::error::{EXPANDED, ExtractError, MEMBERS};

/// Bounds of one call of [`crate::extract`].
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest file, member or message that is read, in bytes.
    pub input_bytes_max: u64,
    /// Longest text of one document, in bytes; the rest is cut and `truncated` set. Leaves room for
    /// the other fields in a document of 16 MB.
    pub text_bytes_max: usize,
    /// All that gzip, zip and mail unpack from one file, at every depth, in bytes.
    pub expanded_bytes_max: u64,
    /// How many times larger than its packed form a member may be, from 16 MiB on. Text shrinks
    /// 3- to 20-fold, logs up to 100-fold, bombs 1,000-fold.
    pub expansion_ratio_max: u64,
    /// Containers within containers.
    pub depth_max: u32,
    /// Members of archives and attachments in one file. Messages of an mbox do not count, since
    /// their number cannot grow faster than the file.
    pub members_max: u64,
    pub pages_max: u32,
    /// Checked between members, pages and blocks of text. The time that the receiver of the output
    /// takes does not count.
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

/// What one file has used up so far, over all of its members.
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

    /// How many bytes a member of `packed_bytes` may unpack to, one more than allowed, so that a
    /// reader of that many can see that there are more; and the error if there are.
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
