//! `arrayFilters`: the array elements that `$[identifier]` selects.

use std::sync::Arc;

use windrow_document::{Collation, Document, ValueRef};

use super::element_filter::parse_on_element;
use crate::Error;
use crate::filter::Filter;

/// A filter, with the identifier that is the first component of all its paths.
#[derive(Debug)]
pub(super) struct ArrayFilter {
    identifier: Box<str>,
    filter: Filter,
}

impl ArrayFilter {
    pub fn identifier(&self) -> &str {
        &self.identifier
    }

    /// Returns `true` if an element matches, with the collation of the update.
    pub fn matches(
        &self,
        element: ValueRef<'_>,
        collation: Option<&Collation>,
    ) -> Result<bool, Error> {
        self.filter.matches_value_with_collation(element, collation)
    }
}

/// Parses all filters.
///
/// # Errors
///
/// - 9: a filter has no identifier or several, or two filters have the same one.
/// - 2: an identifier is not alphanumeric or does not start with a lower case letter.
/// - Errors of [`parse_on_element`].
pub(super) fn parse(filters: &[Document<'_>]) -> Result<Vec<Arc<ArrayFilter>>, Error> {
    let mut parsed: Vec<Arc<ArrayFilter>> = Vec::with_capacity(filters.len());
    for document in filters {
        let filter = parse_one(*document)?;
        if parsed
            .iter()
            .any(|known| known.identifier == filter.identifier)
        {
            return Err(Error::failed_to_parse(format!(
                "Found multiple array filters with the same top-level field name {}",
                filter.identifier
            )));
        }
        parsed.push(Arc::new(filter));
    }
    Ok(parsed)
}

fn parse_one(document: Document<'_>) -> Result<ArrayFilter, Error> {
    let filter = parse_on_element(document)?;
    let mut identifier = None;
    find_identifier(document, &mut identifier)?;
    let Some(identifier) = identifier else {
        return Err(Error::failed_to_parse(
            "Cannot use an expression without a top-level field name in arrayFilters",
        ));
    };
    let lower_case = identifier.starts_with(|first: char| first.is_ascii_lowercase());
    if !lower_case || !identifier.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Error::bad_value(format!(
            "The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{identifier}'"
        )));
    }
    Ok(ArrayFilter {
        identifier: identifier.into(),
        filter,
    })
}

/// Finds the first component of the paths in the filter. It must be the same for all paths.
fn find_identifier<'d>(document: Document<'d>, found: &mut Option<&'d str>) -> Result<(), Error> {
    for (name, value) in document {
        if let (true, ValueRef::Array(clauses)) = (name.starts_with('$'), value) {
            for clause in clauses.iter().filter_map(ValueRef::as_document) {
                find_identifier(clause, found)?;
            }
        } else if !name.starts_with('$') {
            let identifier = name.split_once('.').map_or(name, |(first, _)| first);
            if let Some(other) = found
                .replace(identifier)
                .filter(|other| *other != identifier)
            {
                return Err(Error::failed_to_parse(format!(
                    "Error parsing array filter: Expected a single top-level field name, found '{other}' and '{identifier}'"
                )));
            }
        }
    }
    Ok(())
}
