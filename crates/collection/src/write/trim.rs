//! Limits of capped collections: the oldest documents are deleted to make room for new ones.
//!
//! They are deleted in the log like others, so snapshots, recovery and indexes need no special
//! case. A crash between an insert and its deletions leaves too many documents; the next insert
//! deletes them.

use windrow_fold::Direction;

use super::batch::Change;
use crate::cap::Cap;
use crate::collection::Collection;
use crate::error::Error;
use crate::transaction_locks::WaitControl;

impl Collection {
    /// Deletes the oldest documents until the rest is within the limits. If it is interrupted, the
    /// next insert continues; after `collMod` there may be very many to delete. It always deletes
    /// as many as were just inserted, so the excess does not grow.
    pub(crate) fn trim(
        &self,
        cap: &Cap,
        inserted: usize,
        wait_control: &dyn WaitControl,
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
            && (trimmed < inserted || wait_control.check().is_ok())
            && oldest.next()?
        {
            trimmed += 1;
            // Other writers delete concurrently, so the counts may already exclude documents that
            // the reader sees.
            batch.change(oldest.id(), |_| Ok::<Change, Error>(Change::Trim))?;
            count = count.saturating_sub(1);
            bytes = bytes.saturating_sub(oldest.document().len() as u64);
        }
        batch.commit()
    }
}
