//! What a search tells of the documents that are returned, besides their scores.

use windrow_document::Document;
use windrow_mql::SearchDetails;

use super::highlight::Highlights;
use crate::Error;
use crate::row::Interrupt;

/// Creates the details of documents.
pub struct DetailsWriter {
    pub highlights: Option<Highlights>,
}

impl DetailsWriter {
    /// The details of a document.
    pub fn details(
        &mut self,
        document: Document<'_>,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Box<SearchDetails>>, Error> {
        let highlights = match &mut self.highlights {
            None => return Ok(None),
            Some(highlights) => highlights.highlights(document, interrupt)?,
        };
        Ok(Some(Box::new(SearchDetails {
            highlights: Some(highlights),
            score_details: None,
        })))
    }
}
