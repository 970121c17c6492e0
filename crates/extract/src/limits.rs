//! Limits of an extraction.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use crate::error::{ExtractError, Limit};

/// Limits of one call of [`crate::extract()`]. They protect against decompression bombs, excessive
/// nesting and endless input.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The maximum size of a file, member or message in bytes.
    pub input_bytes_max: u64,
    /// The maximum length of the text of a document in bytes. Longer texts are truncated.
    pub text_bytes_max: usize,
    /// The maximum length of the text of an emitted document in bytes. Longer texts are split into
    /// several documents, see [`crate::ExtractedDocument::inner_path`]. The default leaves room for
    /// metadata within the 16 MB of a stored document.
    pub part_bytes_max: usize,
    /// The maximum number of decompressed bytes, summed over all members of the file at all depths.
    pub expanded_bytes_max: u64,
    /// The maximum ratio of a member's decompressed to its compressed size, checked from 16 MiB on.
    /// Text has a ratio of 3 to 20, logs up to 100, decompression bombs about 1,000.
    pub expansion_ratio_max: u64,
    /// The maximum number of nested containers.
    pub depth_max: u32,
    /// The maximum number of archive members and attachments in a file. Messages of an mbox are not
    /// limited, because their number is bounded by the size of the file.
    pub members_max: u64,
    /// The maximum number of pages of a PDF. Further pages are omitted.
    pub pages_max: u32,
    /// The time at which the extraction must end. It is checked between members, pages and blocks
    /// of text. The time that the caller spends with the output does not count.
    pub deadline: Option<Instant>,
    /// The part of the members of the outermost mailbox or archive to extract.
    pub file_part: FilePart,
}

/// A part of the members of a mailbox or archive: those whose number modulo `count` is `index`.
/// Several processes can read the parts of one file at the same time. Files of other formats belong to the part
/// with `index` 0, which reads the pages of a PDF with `count` threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePart {
    /// The index of the part, less than `count`.
    pub index: u32,
    /// The number of parts.
    pub count: u32,
}

impl Default for FilePart {
    fn default() -> Self {
        FilePart::WHOLE
    }
}

impl FilePart {
    /// All members.
    pub const WHOLE: FilePart = FilePart { index: 0, count: 1 };

    pub(crate) fn contains(self, number: u64) -> bool {
        number.checked_rem(self.count.into()) == Some(self.index.into())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            input_bytes_max: 128 << 20,
            text_bytes_max: 256 << 20,
            part_bytes_max: 8 << 20,
            expanded_bytes_max: 512 << 20,
            expansion_ratio_max: 200,
            depth_max: 5,
            members_max: 100_000,
            pages_max: 10_000,
            deadline: None,
            file_part: FilePart::WHOLE,
        }
    }
}

/// Members up to this size may have any ratio.
const UNCHECKED_RATIO_BYTES: u64 = 16 << 20;

impl Limits {
    pub(crate) fn check_deadline(&self) -> Result<(), ExtractError> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(ExtractError::Deadline),
            _ => Ok(()),
        }
    }

    /// Checks the deadline once every few thousand lines of a text. `number` is counted from 0.
    pub(crate) fn check_deadline_at_line(&self, number: usize) -> Result<(), ExtractError> {
        const LINES_PER_CHECK: usize = 4096;
        if number.is_multiple_of(LINES_PER_CHECK) {
            self.check_deadline()
        } else {
            Ok(())
        }
    }

    pub(crate) fn check_input(&self, bytes: usize) -> Result<(), ExtractError> {
        check_limit(Limit::InputSize, bytes as u64, self.input_bytes_max)
    }

    /// Checks the ratio of a member's decompressed to its compressed size.
    pub(crate) fn check_ratio(&self, expanded: u64, compressed: u64) -> Result<(), ExtractError> {
        let ratio_max = self.expansion_ratio_max;
        let expanded_max = compressed
            .saturating_mul(ratio_max)
            .max(UNCHECKED_RATIO_BYTES);
        if expanded > expanded_max {
            return Err(ExtractError::limit(Limit::ExpansionRatio, ratio_max));
        }
        Ok(())
    }

    pub(crate) fn check_depth(&self, depth: u32) -> Result<(), ExtractError> {
        check_limit(Limit::Depth, depth.into(), self.depth_max.into())
    }
}

/// The resources that a file has used so far, summed over all its members.
#[derive(Debug, Default)]
pub(crate) struct ResourceUsage {
    expanded: ExpansionCounter,
    members: u64,
}

impl ResourceUsage {
    /// Counts an archive member or attachment. Containers call it before they read a member.
    pub(crate) fn count_member(&mut self, limits: &Limits) -> Result<(), ExtractError> {
        limits.check_deadline()?;
        self.members += 1;
        check_limit(Limit::Members, self.members, limits.members_max)
    }

    /// Returns the limit for decompressing a member: the smallest of the applicable limits.
    pub(crate) fn expansion_budget(
        &self,
        compressed_bytes: u64,
        limits: &Limits,
    ) -> ExpansionBudget {
        let file_budget = ExpansionBudget {
            bytes_max: limits
                .expanded_bytes_max
                .saturating_sub(self.expanded.total.get()),
            error: ExtractError::limit(Limit::ExpandedSize, limits.expanded_bytes_max),
        };
        let member_budget = ExpansionBudget {
            bytes_max: limits.input_bytes_max,
            error: ExtractError::limit(Limit::InputSize, limits.input_bytes_max),
        };
        let ratio_budget = ExpansionBudget {
            bytes_max: compressed_bytes
                .saturating_mul(limits.expansion_ratio_max)
                .max(UNCHECKED_RATIO_BYTES),
            error: ExtractError::limit(Limit::ExpansionRatio, limits.expansion_ratio_max),
        };
        file_budget.min(member_budget).min(ratio_budget)
    }

    /// Adds the size of a decompressed member.
    pub(crate) fn add_expanded(
        &mut self,
        bytes: usize,
        limits: &Limits,
    ) -> Result<(), ExtractError> {
        self.expanded.add(bytes, limits)
    }

    /// Returns the counter for a reader of decompressed bytes. It is shared, because the members of
    /// the content are extracted meanwhile.
    pub(crate) fn expansion_counter(&self) -> ExpansionCounter {
        self.expanded.clone()
    }
}

/// Counts the decompressed bytes of a file over all its members.
#[derive(Debug, Default, Clone)]
pub(crate) struct ExpansionCounter {
    total: Rc<Cell<u64>>,
}

impl ExpansionCounter {
    pub(crate) fn add(&self, bytes: usize, limits: &Limits) -> Result<(), ExtractError> {
        let total = self.total.get().saturating_add(bytes as u64);
        self.total.set(total);
        check_limit(Limit::ExpandedSize, total, limits.expanded_bytes_max)
    }
}

/// The maximum number of decompressed bytes of a member, and the error if it is exceeded.
pub(crate) struct ExpansionBudget {
    pub(crate) bytes_max: u64,
    pub(crate) error: ExtractError,
}

impl ExpansionBudget {
    fn min(self, other: ExpansionBudget) -> ExpansionBudget {
        if other.bytes_max < self.bytes_max {
            other
        } else {
            self
        }
    }
}

fn check_limit(limit: Limit, value: u64, value_max: u64) -> Result<(), ExtractError> {
    if value > value_max {
        Err(ExtractError::limit(limit, value_max))
    } else {
        Ok(())
    }
}
