//! Filters that select elements of arrays, in `$pull` and `arrayFilters`.

use windrow_document::{Document, ValueRef};

use crate::Error;
use crate::filter::Filter;

/// Parses a filter on the fields of an element. Fails with 224 if it contains `$expr`, with 2 if it
/// contains `$text` or `$jsonSchema`, and with 5626500 if it contains `$near`: MongoDB allows them
/// for whole documents only.
pub(super) fn parse_on_element(document: Document<'_>) -> Result<Filter, Error> {
    refuse_document_operators(document)?;
    Filter::parse(document)?.without_near()?.without_schema()
}

/// Parses a document of operators on the element itself. Fails as [`parse_on_element`].
pub(super) fn parse_operators_on_element(document: Document<'_>) -> Result<Filter, Error> {
    let filter = Filter::parse_operators(document)?;
    filter.without_near()?.without_schema()
}

fn refuse_document_operators(document: Document<'_>) -> Result<(), Error> {
    for (name, value) in document {
        match (name, value) {
            ("$expr", _) => {
                let message = "$expr is not allowed in this context";
                return Err(Error::new(224, message));
            }
            ("$text", _) => {
                return Err(Error::bad_value("$text is not allowed in this context"));
            }
            ("$and" | "$or" | "$nor", ValueRef::Array(clauses)) => clauses
                .iter()
                .filter_map(ValueRef::as_document)
                .try_for_each(refuse_document_operators)?,
            _ => {}
        }
    }
    Ok(())
}
