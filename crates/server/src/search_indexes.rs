//! Search indexes in commands
//! (<https://www.mongodb.com/docs/manual/reference/command/createSearchIndexes/>).

use std::sync::Arc;

use windrow_collection::{Collection, Index};
use windrow_document::Document;
use windrow_index::Definition;
use windrow_index::search::SearchDefinition;
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;
use crate::audit::IndexTrail;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::index_builds::{self, Build};

/// The argument with the definition.
const DEFINITION: &str = "definition";

/// The index of a command: either its name or its id.
pub enum SearchIndexSelector<'a> {
    Id(&'a str),
    Name(&'a str),
}

impl<'a> SearchIndexSelector<'a> {
    pub fn parse(arguments: &Arguments<'a>) -> Result<SearchIndexSelector<'a>, CommandError> {
        let message = match (arguments.string("id")?, arguments.string("name")?) {
            (Some(id), None) => return Ok(SearchIndexSelector::Id(id)),
            (None, Some(name)) => return Ok(SearchIndexSelector::Name(name)),
            (Some(_), Some(_)) => "Cannot specify both 'name' and 'id'",
            (None, None) => "Must specify either 'name' or 'id'",
        };
        Err(CommandError::new(ErrorCode::InvalidOptions, message))
    }

    fn is(&self, search: &SearchDefinition) -> bool {
        match self {
            SearchIndexSelector::Id(id) => search.id.to_string() == *id,
            SearchIndexSelector::Name(name) => search.name == *name,
        }
    }

    /// Returns the index and, while it is updated, also its new definition, oldest first. Fails
    /// with IndexNotFound if there is none.
    pub fn find(&self, collection: &Collection) -> Result<Vec<Arc<Index>>, CommandError> {
        let mut found = collection.search_indexes();
        found.retain(|index| !index.is_dropped());
        found.retain(|index| search_definition(index).is_some_and(|search| self.is(search)));
        found.sort_by_key(|index| definition_version(index));
        if found.is_empty() {
            let (kind, value) = match self {
                SearchIndexSelector::Id(id) => ("id", id),
                SearchIndexSelector::Name(name) => ("name", name),
            };
            let message = format!("search index not found with {kind} [{value}]");
            return Err(CommandError::new(ErrorCode::IndexNotFound, message));
        }
        Ok(found)
    }
}

/// Returns the definition of a search index.
pub fn search_definition(index: &Index) -> Option<&SearchDefinition> {
    index.definition.search.as_deref()
}

/// Returns the version of the definition.
fn definition_version(index: &Index) -> i32 {
    search_definition(index).map_or(0, |search| search.version)
}

/// Returns the definition in the arguments of a command or of an index.
pub fn definition<'a>(arguments: &Arguments<'a>) -> Result<Document<'a>, CommandError> {
    let definition = arguments.document(DEFINITION)?;
    definition.ok_or_else(|| arguments.missing(DEFINITION))
}

/// Builds search indexes. Returns when all are ready.
pub fn build(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    indexes: Vec<SearchDefinition>,
) -> Result<(), CommandError> {
    let services = &context.state.services;
    let definitions = indexes.into_iter().map(Definition::from_search).collect();
    let build = Build {
        engine: services.engine.clone(),
        collection: collection.clone(),
        definitions,
        log: services.log.clone(),
        context: context.client.name(),
    };
    let trail = context.trail();
    let trail = trail.map(|trail| IndexTrail::new(trail, collection, &build.definitions));
    if let Some(trail) = &trail {
        trail.record_start();
    }
    let built = index_builds::run(build, context.operation).map(drop);
    if let Some(trail) = &trail {
        trail.record_end(built.is_ok());
    }
    built
}

/// Drops the indexes that [`SearchIndexSelector::find`] has returned.
pub fn drop_all(collection: &Collection, indexes: &[Arc<Index>]) -> Result<(), CommandError> {
    for index in indexes {
        collection
            .drop_index(&index.definition.name)
            .or_command_error()?;
    }
    Ok(())
}
