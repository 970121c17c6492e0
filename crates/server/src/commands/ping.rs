//! `ping`: checks that the server answers.

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, Routing};

pub const PING: Command = Command {
    name: "ping",
    help: "checks the connection",
    routing: Routing::Here,
    needs: Needs::Nothing,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&[]),
    ..Command::EMPTY
};
