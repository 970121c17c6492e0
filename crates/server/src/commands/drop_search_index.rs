//! `dropSearchIndex`: drops a search index by name or id.

use std::sync::Arc;

use windrow_access::Action;
use windrow_collection::Index;
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::search_indexes::{self, SearchIndexSelector, search_definition};
use crate::{namespace, views};

pub const DROP_SEARCH_INDEX: Command = Command {
    name: "dropSearchIndex",
    help: "drops a search index by name or id",
    needs: Needs::OnCollection(&[Action::dropSearchIndex]),
    write_concern: true,
    arguments: AcceptedArguments::Only(&["id", "name"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let named = SearchIndexSelector::parse(&Arguments::new(request))?;
    let missing = || format!("Collection '{namespace}' does not exist.");
    let collection = views::collection(context, &namespace, missing)?;
    let _ddl_guard = context.exclude(&collection)?;
    let found = named.find(&collection)?;
    search_indexes::drop_all(&collection, &found)?;
    let name = |index: &Arc<Index>| search_definition(index).map(|one| one.name.clone());
    // While an index is updated, there are two with the same name.
    if let Some(name) = found.first().and_then(name) {
        context.audit(
            "dropIndex",
            || doc! { "ns": (namespace.to_string()), "indexName": name },
        );
    }
    Ok(Reply::ok(DocumentBuf::new()))
}
