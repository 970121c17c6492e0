//! Where searches are run.

use windrow_document::{ArrayBuf, Document, DocumentBuf, ValueRef};

use crate::pipeline::counting_pipeline;

/// Receives documents in order. Returns `false` to end the aggregation.
pub type DocumentSink<'t> = dyn FnMut(Document<'_>) -> bool + 't;

/// The documents of indexed files, in a database of this process or of a server.
pub trait DocumentSource {
    /// Why documents cannot be read.
    type Error;

    /// Calls `sink` with the documents of a pipeline on the collection of documents.
    ///
    /// # Errors
    /// Fails if the pipeline or the database does.
    fn aggregate(
        &mut self,
        pipeline: &ArrayBuf,
        sink: &mut DocumentSink<'_>,
    ) -> Result<(), Self::Error>;

    /// Returns the only document of a pipeline, or the first one.
    ///
    /// # Errors
    /// As [`aggregate`](Self::aggregate).
    fn first(&mut self, pipeline: &ArrayBuf) -> Result<Option<DocumentBuf>, Self::Error> {
        let mut first = None;
        self.aggregate(pipeline, &mut |document| {
            first = Some(document.to_buf());
            false
        })?;
        Ok(first)
    }

    /// Returns how many documents an operator finds.
    ///
    /// # Errors
    /// As [`aggregate`](Self::aggregate).
    fn count(&mut self, operator: &DocumentBuf) -> Result<i64, Self::Error> {
        let reply = self.first(&counting_pipeline(operator))?;
        let count = reply.as_ref().and_then(|reply| {
            let count = reply.as_document().get("count")?.as_document()?;
            count.get("total").and_then(ValueRef::as_whole)
        });
        Ok(count.unwrap_or(0))
    }
}
