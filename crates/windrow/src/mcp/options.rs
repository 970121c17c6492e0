//! The command line of `windrow mcp`.

use std::path::PathBuf;

use lexopt::prelude::*;

use crate::command_line::Failure;
use crate::config;

pub const HELP: &str =
    "Serves the Model Context Protocol on standard input and output: language models search and read
the files that `windrow index` made searchable. Nothing is changed. If a server has the data folder
open, the command uses the server.

Usage: windrow mcp [--data DIR]

Tools:
  search              documents that match a query of the language of `windrow search`
  read                the text of a document, or a part of it
  facets              how many documents have each author, extension, kind, language, folder or year

A resource file:///PATH is the text of an indexed file.

Options:
  --data DIR          the data folder [default: that of the configuration, see `windrow config --help`]
  -h, --help          show this help

Examples:
  windrow mcp --data ~/.local/share/windrow
  claude mcp add files -- windrow mcp --data ~/.local/share/windrow
";

/// Returns the data folder, or `None` if help was requested.
pub fn parse(mut arguments: lexopt::Parser) -> Result<Option<PathBuf>, Failure> {
    let mut data_folder = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => data_folder = Some(PathBuf::from(arguments.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    let data_folder = config::data_folder(data_folder, "mcp")?;
    Ok(Some(data_folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    #[test]
    fn options_are_parsed() {
        check_parsed(parse, &["--data", "d"], Ok("d".into()));
        check_parsed(parse, &[], Err("--data"));
        check_parsed(parse, &["--data", "d", "x"], Err("\"x\""));
        check_parsed(parse, &["--data", "d", "--write"], Err("--write"));
    }
}
