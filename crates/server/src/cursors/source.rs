//! What a cursor is behind: something that gives documents, a batch at a time.

use std::time::Instant;

use windrow_document::DocumentBuf;
use windrow_wire::{Batch, CommandError};

use crate::operations::Operation;

/// Where the documents of a cursor come from.
pub trait BatchSource: Send {
    /// The next documents: at most `limit` of them, and no more after their size has reached
    /// `bytes_max` (one document always fits). Fails where `operation` may not go on.
    fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError>;

    /// Where a change stream stands.
    fn resume_token(&self) -> Option<DocumentBuf> {
        None
    }

    /// Waits for more at the end of the data, where that can come; whether it has.
    fn wait(&mut self, _: &Operation, _until: Instant) -> Result<bool, CommandError> {
        Ok(false)
    }
}

/// What a source gave, and whether it has more.
#[derive(Debug, Default)]
pub struct SourceBatch {
    pub documents: Batch,
    /// True where the source has come to its end: the cursor is closed with this batch. A source
    /// that stopped at the limit does not look whether there is more, as MongoDB's do not.
    pub finished: bool,
    /// Where a change stream stands.
    pub resume_token: Option<DocumentBuf>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use windrow_document::doc;

    /// Counts from 0 to below a number.
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
