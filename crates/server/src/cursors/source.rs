//! The sources of cursors, which return documents in batches.

use std::time::Instant;

use windrow_document::DocumentBuf;
use windrow_wire::{Batch, CommandError};

use crate::operations::Operation;

/// The source of a cursor's documents.
pub trait BatchSource: Send {
    /// Returns the next documents: at most `limit`, and none after their size has reached
    /// `bytes_max`, except that one document always fits. Fails if `operation` must stop.
    fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError>;

    /// Returns the position of a change stream.
    fn resume_token(&self) -> Option<DocumentBuf> {
        None
    }

    /// Waits at the end of the data, if more can come. Returns `true` if more has come.
    fn wait(&mut self, _: &Operation, _until: Instant) -> Result<bool, CommandError> {
        Ok(false)
    }
}

/// A batch, and whether the source has more.
#[derive(Debug, Default)]
pub struct SourceBatch {
    pub documents: Batch,
    /// `true` at the end of the source, so that the cursor is closed. A source that stops at the
    /// limit does not check if there is more, as in MongoDB.
    pub finished: bool,
    /// The position of a change stream.
    pub resume_token: Option<DocumentBuf>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use windrow_document::doc;

    /// Counts the numbers of a range.
    pub struct Numbers(pub std::ops::Range<i32>);

    impl BatchSource for Numbers {
        fn next_batch(
            &mut self,
            operation: &Operation,
            limit: usize,
            _bytes_max: usize,
        ) -> Result<SourceBatch, CommandError> {
            operation.check()?;
            let mut documents = Batch::new();
            self.0
                .by_ref()
                .take(limit)
                .for_each(|n| documents.push(doc! { "n": n }.as_document()));
            Ok(SourceBatch {
                documents,
                finished: self.0.is_empty(),
                ..SourceBatch::default()
            })
        }
    }
}
