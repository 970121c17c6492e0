//! `updateSearchIndex`: changes the definition of a search index. The index is built again next to
//! the old one, which answers searches until the new one is ready.

use windrow_access::Action;
use windrow_collection::Namespace;
use windrow_document::{Document, DocumentBuf};
use windrow_index::search::SearchDefinition;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::clock::now_millis;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::search_indexes::{self, SearchIndexSelector};
use crate::{index_builds, namespace, views};

pub const UPDATE_SEARCH_INDEX: Command = Command {
    name: "updateSearchIndex",
    help: "rebuilds a search index with a new definition",
    needs: Needs::OnCollection(&[Action::updateSearchIndex]),
    write_concern: true,
    arguments: AcceptedArguments::Only(&["definition", "id", "name"]),
    run,
    ..Command::EMPTY
};

/// A parsed `updateSearchIndex`.
struct UpdateSearchIndexRequest<'a> {
    namespace: Namespace,
    index: SearchIndexSelector<'a>,
    definition: Document<'a>,
}

impl<'a> UpdateSearchIndexRequest<'a> {
    fn parse(request: &'a Request) -> Result<UpdateSearchIndexRequest<'a>, CommandError> {
        let arguments = Arguments::new(request);
        Ok(UpdateSearchIndexRequest {
            namespace: namespace::from_request(request)?,
            index: SearchIndexSelector::parse(&arguments)?,
            definition: search_indexes::definition(&arguments)?,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let UpdateSearchIndexRequest {
        namespace,
        index,
        definition,
    } = UpdateSearchIndexRequest::parse(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let missing = || format!("Collection '{namespace}' does not exist.");
    let collection = views::collection(context, &namespace, missing)?;
    let known = loop {
        let known = index.find(&collection)?;
        // Another build of the index must end first, because its definition is older.
        let unready: Vec<_> = known.iter().filter(|it| !it.is_ready()).cloned().collect();
        if unready.is_empty() {
            break known;
        }
        index_builds::wait_ready(&collection, &unready, context.operation)?;
    };
    let newest = known
        .last()
        .and_then(|index| search_indexes::search_definition(index));
    let Some(newest) = newest else {
        return Ok(Reply::ok(DocumentBuf::new()));
    };
    let (name, version) = (&newest.name, newest.version.saturating_add(1));
    let updated = SearchDefinition::parse(name, newest.id, version, now_millis(), definition);
    let updated = updated.or_command_error()?;
    if updated.source.as_bytes() != newest.source.as_bytes() || newest.is_outdated() {
        search_indexes::build(context, &collection, vec![updated])?;
        collection
            .drop_replaced_search_indexes()
            .or_command_error()?;
    }
    Ok(Reply::ok(DocumentBuf::new()))
}
