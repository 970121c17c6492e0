//! Decides whether the next record or block is compressed. After a failure, some are stored raw
//! without an attempt, because data that follows data that did not compress rarely compresses.

/// A backoff of compression attempts. Each failure in a row doubles the number of skipped attempts,
/// up to [`SKIPPED_MAX`]. A success resets it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompressionTrial {
    /// The number of attempts that the last failure skips; 0 after a success.
    skipped: u32,
    /// The number of attempts that are still to be skipped.
    remaining: u32,
}

/// The largest number of skipped attempts between two attempts.
pub const SKIPPED_MAX: u32 = 32;

impl CompressionTrial {
    /// Returns `true` if the next item is to be compressed. The caller then passes the result to
    /// [`record_result`](Self::record_result).
    pub fn is_due(&mut self) -> bool {
        let is_due = self.remaining == 0;
        self.remaining = self.remaining.saturating_sub(1);
        is_due
    }

    /// Records whether an attempt saved enough bytes to store the compressed form.
    pub fn record_result(&mut self, paid: bool) {
        self.skipped = if paid {
            0
        } else {
            (2 * self.skipped).clamp(1, SKIPPED_MAX)
        };
        self.remaining = self.skipped;
    }
}
