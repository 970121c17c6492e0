//! `getnonce`: a random number for MONGODB-CR, which MongoDB removed in 4.0. Clients that are
//! older, such as Debian's prometheus-mongodb-exporter, still ask for one on each connection.
//! Nothing uses it.

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const GET_NONCE: Command = Command {
    name: "getnonce",
    help: "returns a random number, for clients from before MongoDB 4.0",
    routing: Routing::Here,
    needs: Needs::Nothing,
    arguments: AcceptedArguments::Only(&[]),
    run,
    ..Command::EMPTY
};

fn run(_: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    let nonce = format!("{:016x}", crate::random::bits());
    Ok(Reply::ok(doc! { "nonce": nonce }))
}
