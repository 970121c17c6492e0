//! An index of fields in memory.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use super::{MemoryPosting, MemoryPostings, MemoryTerms};
use crate::ids::{IdSet, SetIds};
use crate::score::{FieldStatistics, RecordValue};
use crate::source::Source;

/// An index of fields, for tests and examples.
#[derive(Clone, Debug, Default)]
pub struct MemoryIndex {
    fields: BTreeMap<String, Field>,
    /// All records.
    records: IdSet,
    filters: Vec<IdSet>,
    values: Vec<Arc<[RecordValue]>>,
}

#[derive(Clone, Debug, Default)]
struct Field {
    terms: BTreeMap<Vec<u8>, Vec<MemoryPosting>>,
    statistics: FieldStatistics,
    records: IdSet,
}

impl MemoryIndex {
    /// Adds a field of a record with its tokens. Record ids must increase.
    pub fn add(&mut self, id: u64, field: &str, tokens: &[&str]) {
        self.records.insert(id);
        let field = self.fields.entry(field.to_owned()).or_default();
        field.records.insert(id);
        field.statistics.records += 1;
        field.statistics.length += tokens.len() as u64;
        for (token, position) in tokens.iter().zip(0..) {
            let postings = field.terms.entry(token.as_bytes().to_vec()).or_default();
            if postings.last().is_none_or(|last| last.id != id) {
                postings.push(MemoryPosting {
                    id,
                    length: tokens.len() as u32,
                    ..MemoryPosting::default()
                });
            }
            if let Some(posting) = postings.last_mut() {
                posting.frequency += 1;
                posting.positions.push(position);
            }
        }
    }

    /// Adds the ids of a filter, and returns the number of the filter.
    pub fn add_filter(&mut self, ids: IdSet) -> usize {
        self.filters.push(ids);
        self.filters.len() - 1
    }

    /// Adds a list of values of records, sorted by id and then by value. Returns the number of the
    /// list.
    pub fn add_values(&mut self, values: &[RecordValue]) -> usize {
        self.values.push(values.into());
        self.values.len() - 1
    }
}

impl Source for MemoryIndex {
    type Postings = MemoryPostings;
    type Terms = MemoryTerms;
    type Ids = SetIds;
    type Error = Infallible;

    fn statistics(&self, field: &str) -> Result<FieldStatistics, Infallible> {
        let field = self.fields.get(field);
        Ok(field.map_or(FieldStatistics::default(), |field| field.statistics))
    }

    fn postings(&self, field: &str, term: &[u8]) -> Result<Option<MemoryPostings>, Infallible> {
        let field = self.fields.get(field);
        let postings = field.and_then(|field| field.terms.get(term));
        Ok(postings.map(|postings| MemoryPostings::new(postings.iter().cloned())))
    }

    fn terms(&self, field: &str) -> Result<MemoryTerms, Infallible> {
        let terms = self.fields.get(field).map(|field| &field.terms);
        let terms = terms.into_iter().flatten();
        let terms = terms.map(|(term, postings)| {
            let ids = postings.iter().map(|posting| posting.id);
            (term, ids.collect())
        });
        Ok(MemoryTerms::with_records(terms))
    }

    fn exists(&self, field: &str) -> Result<SetIds, Infallible> {
        let field = self.fields.get(field);
        let records = field.map_or(IdSet::default(), |field| field.records.clone());
        Ok(records.into_ids())
    }

    fn all(&self) -> Result<SetIds, Infallible> {
        Ok(self.records.clone().into_ids())
    }

    fn filter(&self, number: usize) -> Result<SetIds, Infallible> {
        let filter = self.filters.get(number).cloned();
        Ok(filter.unwrap_or_default().into_ids())
    }

    fn values(&self, number: usize) -> Result<Arc<[RecordValue]>, Infallible> {
        let values = self.values.get(number).cloned();
        Ok(values.unwrap_or_else(|| Arc::new([])))
    }
}
