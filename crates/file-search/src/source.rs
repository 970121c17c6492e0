//! The interface that runs the aggregations of searches.

use windrow_document::{ArrayBuf, Document, DocumentBuf, ValueRef};

use crate::pipeline::counting_pipeline;

/// Receives documents in order. Returns `false` to stop the aggregation.
pub type DocumentSink<'t> = dyn FnMut(Document<'_>) -> bool + 't;

/// The documents of indexed files, in a database in this process or on a server.
pub trait DocumentSource {
    /// The error if documents cannot be read.
    type Error;

    /// Runs a pipeline on the collection of documents. Calls `sink` with each result.
    ///
    /// # Errors
    /// Fails if the pipeline is invalid or the database fails.
    fn aggregate(
        &mut self,
        pipeline: &ArrayBuf,
        sink: &mut DocumentSink<'_>,
    ) -> Result<(), Self::Error>;

    /// Returns the first document of a pipeline.
    ///
    /// # Errors
    /// Fails as [`aggregate`](Self::aggregate) does.
    fn first(&mut self, pipeline: &ArrayBuf) -> Result<Option<DocumentBuf>, Self::Error> {
        let mut first = None;
        self.aggregate(pipeline, &mut |document| {
            first = Some(document.to_buf());
            false
        })?;
        Ok(first)
    }

    /// Returns the number of documents that match an operator.
    ///
    /// # Errors
    /// Fails as [`aggregate`](Self::aggregate) does.
    fn count(&mut self, operator: &DocumentBuf) -> Result<i64, Self::Error> {
        let reply = self.first(&counting_pipeline(operator))?;
        let count = reply.as_ref().and_then(|reply| {
            let count = reply.as_document().get("count")?.as_document()?;
            count.get("total").and_then(ValueRef::as_whole)
        });
        Ok(count.unwrap_or(0))
    }
}
