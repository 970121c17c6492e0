//! What a query is compiled against.

use std::sync::Arc;

use crate::ids::Ids;
use crate::postings::Postings;
use crate::score::{FieldStatistics, RecordValue};
use crate::terms::Terms;

/// An index, as a query sees it.
pub trait Source {
    /// The postings of a term.
    type Postings: Postings;
    /// The terms of a field.
    type Terms: Terms;
    /// Record ids.
    type Ids: Ids;
    /// Why reading failed.
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

    /// Returns what another index found, by the number in [`Query::Filter`](crate::Query::Filter).
    ///
    /// # Errors
    /// Fails if reading fails.
    fn filter(&self, number: usize) -> Result<Self::Ids, Self::Error>;

    /// Returns the values of records with a number, which [`Query::Near`](crate::Query::Near) and
    /// [`ValueNumber`](crate::ValueNumber) have. They are in increasing order of record ids, and those
    /// of a record in increasing order.
    ///
    /// # Errors
    /// Fails if reading fails.
    fn values(&self, number: usize) -> Result<Arc<[RecordValue]>, Self::Error>;
}
