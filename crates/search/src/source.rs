//! The index that a query is compiled against.

use std::sync::Arc;

use crate::ids::Ids;
use crate::postings::Postings;
use crate::score::{FieldStatistics, RecordValue};
use crate::terms::Terms;

/// An index: statistics, postings, terms and record ids for a query.
pub trait Source {
    /// The postings of a term.
    type Postings: Postings;
    /// The terms of a field.
    type Terms: Terms;
    /// Lists of record ids without scores.
    type Ids: Ids;
    /// The error of a failed read.
    type Error;

    /// Returns the statistics of a field. They are 0 if no record has the field.
    ///
    /// # Errors
    /// Fails if reading fails.
    fn statistics(&self, field: &str) -> Result<FieldStatistics, Self::Error>;

    /// Returns the postings of a term. Returns `None` if no record has it.
    ///
    /// # Errors
    /// Fails if reading fails.
    fn postings(&self, field: &str, term: &[u8]) -> Result<Option<Self::Postings>, Self::Error>;

    /// Returns a cursor over the terms of a field.
    ///
    /// # Errors
    /// Fails if reading fails.
    fn terms(&self, field: &str) -> Result<Self::Terms, Self::Error>;

    /// Returns the records that have a field.
    ///
    /// # Errors
    /// Fails if reading fails.
    fn exists(&self, field: &str) -> Result<Self::Ids, Self::Error>;

    /// Returns all records.
    ///
    /// # Errors
    /// Fails if reading fails.
    fn all(&self) -> Result<Self::Ids, Self::Error>;

    /// Returns the records that another index has found, by the number in
    /// [`Query::Filter`](crate::Query::Filter).
    ///
    /// # Errors
    /// Fails if reading fails.
    fn filter(&self, number: usize) -> Result<Self::Ids, Self::Error>;

    /// Returns a list of values of records, by the number in [`Query::Near`](crate::Query::Near) or
    /// [`ValueNumber`](crate::ValueNumber). The list is sorted by record id, then by value.
    ///
    /// # Errors
    /// Fails if reading fails.
    fn values(&self, number: usize) -> Result<Arc<[RecordValue]>, Self::Error>;
}
