//! The details that a search returns for each document besides its score.

use windrow_document::{Document, DocumentBuf};
use windrow_interrupt::Interrupt;
use windrow_mql::SearchDetails;

use super::highlight::Highlights;
use crate::Error;

/// Computes the details of documents.
pub struct DetailsWriter {
    /// Computes the highlights, if they are requested.
    pub highlights: Option<Highlights>,
    /// The number of explanations that are computed together, if `scoreDetails` is requested.
    pub explanations_together: Option<usize>,
}

impl DetailsWriter {
    /// Returns the details of a document. `score_details` are the document's, if they are
    /// requested.
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
