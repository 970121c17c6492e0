//! What a compiler learns from an index at a snapshot.

use std::sync::Arc;

use windrow_index::search::SynonymMapping;
use windrow_interrupt::Interrupt;
use windrow_search::Postings;

use super::OpenSearch;
use super::compile::IndexFacts;
use super::source::IndexSource;
use super::synonyms::SynonymMap;
use crate::Error;
use crate::text::term_lists::TermLists;

/// What the compiler needs to know about the index of an open search.
pub struct OpenFacts<'s> {
    pub search: &'s OpenSearch,
    pub lists: &'s TermLists,
    pub interrupt: &'s dyn Interrupt,
}

impl IndexFacts for OpenFacts<'_> {
    fn paths(&self) -> Result<Vec<String>, Error> {
        self.search.paths(self.lists, self.interrupt)
    }

    fn records(&self) -> u64 {
        self.search.source.count()
    }

    fn records_with(&self, field: &str, term: &[u8]) -> Result<u64, Error> {
        self.interrupt.check()?;
        let OpenSearch { source, number, .. } = self.search;
        let source = IndexSource::new(&**source, *number, self.lists, self.interrupt);
        let list = windrow_search::Source::postings(&source, field, term)?;
        self.lists.check()?;
        Ok(list.map_or(0, |mut list| list.count_at_most()))
    }

    fn synonyms(&self, mapping: &SynonymMapping) -> Result<Arc<SynonymMap>, Error> {
        self.search.synonyms.read(mapping, self.interrupt)
    }
}
