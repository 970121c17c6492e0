//! `logout`: ends an authentication, of which there is none.

use crate::command::Command;

pub const LOGOUT: Command = Command {
    name: "logout",
    help: "ends the authentication of the connection",
    ..Command::EMPTY
};
