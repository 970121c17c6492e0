//! What a search tells of the documents that are returned, besides their scores.

use windrow_document::{Document, DocumentBuf};
use windrow_mql::SearchDetails;

use super::highlight::Highlights;
use crate::Error;
use crate::row::Interrupt;

/// Creates the details of documents.
pub struct DetailsWriter {
    pub highlights: Option<Highlights>,
    /// `scoreDetails` is asked for, and so many explanations are created together.
    pub explanations_together: Option<usize>,
}

impl DetailsWriter {
    /// The details of a document. `score_details` are those of the document if they are asked for.
    pub fn details(
        &mut self,
        document: Document<'_>,
        score_details: Option<DocumentBuf>,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Box<SearchDetails>>, Error> {
        let highlights = match &mut self.highlights {
            None => None,
            Some(highlights) => Some(highlights.highlights(document, interrupt)?),
        };
        let has_details = highlights.is_some() || score_details.is_some();
        Ok(has_details.then(|| {
            Box::new(SearchDetails {
                highlights,
                score_details,
            })
        }))
    }
}
