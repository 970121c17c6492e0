//! Capped collections: of limited size, the oldest documents make room for new ones.
//!
//! Documents that have to go are deleted in the log like any others, so that snapshots, recovery and
//! indexes need to know nothing of it. A crash between an insert and its deletions leaves more than is
//! allowed; the next insert puts it right.

use windrow_fold::Direction;

use super::batch::Change;
use crate::cap::Cap;
use crate::collection::Collection;
use crate::error::Error;
use crate::transaction_locks::Interrupt;

impl Collection {
    /// Deletes the oldest documents until the rest is within the limits. Where it is given up before, the
    /// next insert goes on: after `collMod` there may be very many. As many as have just come go in any case,
    /// so that they do not become ever more.
    pub(crate) fn trim(
        &self,
        cap: &Cap,
        come: usize,
        interrupt: &dyn Interrupt,
    ) -> Result<(), Error> {
        let (mut count, mut bytes) = (self.count(), self.bytes());
        if !cap.is_exceeded(count, bytes) {
            return Ok(());
        }
        let reader = self.reader()?;
        let mut oldest = reader.records(Direction::Forward);
        let mut batch = self.batch();
        let mut trimmed = 0;
        while cap.is_exceeded(count, bytes)
            && (trimmed < come || !interrupt.is_interrupted())
            && oldest.next()?
        {
            trimmed += 1;
            // Others delete meanwhile: what is counted here may be less than what the reader sees.
            batch.change(oldest.id(), |_| Ok::<Change, Error>(Change::Trim))?;
            count = count.saturating_sub(1);
            bytes = bytes.saturating_sub(oldest.document().len() as u64);
        }
        batch.commit()
    }
}
