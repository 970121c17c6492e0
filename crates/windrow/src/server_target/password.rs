//! Reads passwords from the environment or the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::address_file::Password;
use crate::command_line::Failure;

/// The environment variable with a password.
const PASSWORD_VARIABLE: &str = "WINDROW_PASSWORD";

/// Returns the password of a user from the environment, or asks for it.
pub fn read_password(user: &str) -> Result<Password, Failure> {
    if let Ok(password) = std::env::var(PASSWORD_VARIABLE) {
        return Ok(Password(password));
    }
    let input = io::stdin();
    if !input.is_terminal() {
        let message = format!("the password of {user} is missing; set {PASSWORD_VARIABLE}");
        return Err(Failure::Usage(message));
    }
    // Standard output may be a pipe.
    eprint!("Password of {user}: ");
    io::stderr().flush().map_err(Failure::runtime)?;
    let before = tcgetattr(&input).map_err(Failure::runtime)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Now, &silent).map_err(Failure::runtime)?;
    let mut line = String::new();
    let read = input.lock().read_line(&mut line);
    tcsetattr(&input, OptionalActions::Now, &before).map_err(Failure::runtime)?;
    eprintln!();
    read.map_err(Failure::runtime)?;
    Ok(Password(line.trim_end_matches(['\r', '\n']).to_owned()))
}
