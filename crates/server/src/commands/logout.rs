//! `logout`: ends an authentication. There is none, so it has no effect.

use crate::command::Command;

pub const LOGOUT: Command = Command {
    name: "logout",
    help: "ends the authentication of the connection",
    ..Command::EMPTY
};
