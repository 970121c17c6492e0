//! The stored specifications of search indexes.

use windrow_document::{Document, ValueRef};
use windrow_mql::Error;

use crate::definition::Definition;
use crate::search::{OPTION, SearchDefinition};

/// Parses a specification as [`Definition::from_search`] makes it.
pub(super) fn definition(specification: Document<'_>) -> Result<Definition, Error> {
    let broken = || Error::failed_to_parse("the specification of a search index is incomplete");
    let option = specification.get(OPTION).and_then(ValueRef::as_document);
    let option = option.ok_or_else(broken)?;
    let (Some(ValueRef::ObjectId(id)), Some(ValueRef::Int32(version))) =
        (option.get("id"), option.get("version"))
    else {
        return Err(broken());
    };
    let Some(ValueRef::DateTime(created_at)) = option.get("createdAt") else {
        return Err(broken());
    };
    let name = option.get("name").and_then(ValueRef::as_str);
    let definition = option.get("definition").and_then(ValueRef::as_document);
    let (name, definition) = name.zip(definition).ok_or_else(broken)?;
    let mut search = SearchDefinition::parse(name, id, version, created_at, definition)?;
    search.analysis = match option.get("analysis") {
        Some(ValueRef::Int32(analysis)) => analysis,
        Some(_) => return Err(broken()),
        None => 0,
    };
    Ok(Definition::from_search(search))
}
