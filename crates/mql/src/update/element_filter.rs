//! Filters that choose elements of arrays, in `$pull` and `arrayFilters`.

use windrow_document::{Document, ValueRef};

use crate::Error;
use crate::filter::Filter;

/// Parses a filter that is asked of elements. Error 224 for `$expr`, 2 for `$text`, 5626500 for
/// `$near`: they need the whole document or an index.
pub(super) fn parse_on_element(document: Document<'_>) -> Result<Filter, Error> {
    refuse_document_operators(document)?;
    Filter::parse(document)?.without_near()
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
