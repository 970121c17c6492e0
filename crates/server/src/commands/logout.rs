//! `logout`: ends an authentication, of which there is none.

use crate::command::{Accepted, Command};

pub const LOGOUT: Command = Command {
    name: "logout",
    help: "ends the authentication of the connection",
    arguments: Accepted::Any,
    ..Command::EMPTY
};
