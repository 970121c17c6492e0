//! `ping`: whether the server answers.

use crate::command::{Accepted, Command};

/// Any argument is taken, as MongoDB does: drivers and monitors add their own.
pub const PING: Command = Command {
    name: "ping",
    help: "answers; does nothing else",
    in_api_version_1: true,
    arguments: Accepted::Any,
    ..Command::EMPTY
};
