//! `lockInfo`: the held and requested locks. In MongoDB an operation locks everything that it uses.
//! Here no lock is held for a whole operation, so the list is empty.

use windrow_access::Action;
use windrow_document::doc;
use windrow_wire::Reply;

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, Routing};

pub const LOCK_INFO: Command = Command {
    name: "lockInfo",
    help: "lists the locks of operations; the list is always empty",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::serverStatus]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&[]),
    run: |_, _| Ok(Reply::ok(doc! { "lockInfo": [] })),
    ..Command::EMPTY
};
