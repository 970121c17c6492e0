//! `logout`: ends an authentication. There is none, so it has no effect.

use crate::command::Command;

pub const LOGOUT: Command = Command {
    name: "logout",
    help: "logs the connection out; without authentication it has no effect",
    ..Command::EMPTY
};
