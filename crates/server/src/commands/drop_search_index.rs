//! `dropSearchIndex`: drops a search index by name or id.

use windrow_access::Action;
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::search_indexes::{self, SearchIndexSelector};
use crate::{namespace, views};

pub const DROP_SEARCH_INDEX: Command = Command {
    name: "dropSearchIndex",
    help: "drops a search index by name or id",
    needs: Needs::OnCollection(&[Action::dropSearchIndex]),
    write_concern: true,
    arguments: Accepted::Only(&["id", "name"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let named = SearchIndexSelector::parse(&Arguments::new(request))?;
    let missing = || format!("Collection '{namespace}' does not exist.");
    let collection = views::collection(context, &namespace, missing)?;
    let _exclusion = context.exclude(&collection)?;
    search_indexes::drop_all(&collection, &named.find(&collection)?)?;
    Ok(Reply::ok(DocumentBuf::new()))
}
