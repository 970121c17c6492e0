//! The command line of `windrow index`.

use std::path::PathBuf;

use lexopt::prelude::*;
use windrow_extract::formats;
use windrow_ingest::WalkOptions;

use crate::command_line::Failure;
use crate::memory;

/// The output of `windrow index --help`.
pub fn format_help() -> String {
    let formats = list_formats();
    format!(
        "Makes the files of folders searchable. Each file, message or archive member becomes a document
in the collection `documents` of the database `files`, with a text index. A file that cannot be
read becomes a document in `failures` with the reason.

Further runs read only changed files and remove the documents of deleted files. An interrupted run
is continued by the next one. If a server has the data folder open, the command uses the server.

Usage: windrow index FOLDER… --data DIR [OPTION…]

Options:
  --data DIR       the data folder; it is created if it does not exist
  --workers N      how many files are read in parallel [default: the number of cores]
  --memory SIZE    memory for the database: bytes, 512MB, 2GiB [default: a quarter of the
                   machine's]; not used if a server has the folder open
  --hidden         include files and folders whose names begin with a dot
  --follow-links   follow symbolic links below the folders
  --retry          also read files that failed and have not changed
  -h, --help       show this help

Formats, with their usual extensions:
{formats}
Examples:
  windrow index ~/Documents ~/Mail --data ./data
  windrow index /usr/share/doc --data ./data --workers 2
  windrow search 'bread -white' --data ./data
"
    )
}

/// A line for each readable format.
fn list_formats() -> String {
    const NAME_COLUMNS: usize = 24;
    const LINE_COLUMNS: usize = 100;
    let mut lines = String::new();
    for format in formats() {
        let mut line = format!("  {:<NAME_COLUMNS$}", format.name());
        for extension in format.extensions() {
            if line.len() + extension.len() > LINE_COLUMNS {
                lines.push_str(line.trim_end());
                lines.push('\n');
                line = " ".repeat(2 + NAME_COLUMNS);
            }
            line.push_str(extension);
            line.push_str(", ");
        }
        lines.push_str(line.trim_end_matches([',', ' ']));
        lines.push('\n');
    }
    lines
}

/// The parsed command line.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub folders: Vec<PathBuf>,
    pub data_folder: PathBuf,
    pub workers: Option<usize>,
    pub memory_bytes: u64,
    pub walk: WalkOptions,
    pub retry: bool,
}

/// Returns `None` if help was requested.
pub fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut folders, mut data_folder, mut workers, mut memory_bytes) =
        (Vec::new(), None, None, None);
    let (mut walk, mut retry) = (WalkOptions::default(), false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => data_folder = Some(PathBuf::from(arguments.value()?)),
            Long("workers") => workers = Some(parse_workers(&arguments.value()?.string()?)?),
            Long("memory") => {
                memory_bytes = Some(memory::parse_option(&arguments.value()?.string()?)?)
            }
            Long("hidden") => walk.hidden = true,
            Long("follow-links") => walk.follow_links = true,
            Long("retry") => retry = true,
            Value(folder) => folders.push(PathBuf::from(folder)),
            other => return Err(other.unexpected().into()),
        }
    }
    if folders.is_empty() {
        return Err(Failure::missing_argument("FOLDER", "index"));
    }
    Ok(Some(Options {
        folders,
        data_folder: data_folder.ok_or_else(|| Failure::missing_argument("--data DIR", "index"))?,
        workers,
        memory_bytes: memory_bytes.unwrap_or_else(memory::default_memory_bytes),
        walk,
        retry,
    }))
}

fn parse_workers(text: &str) -> Result<usize, Failure> {
    const WORKERS_MAX: usize = 1024;
    let number = text.parse().ok();
    number
        .filter(|number| (1..=WORKERS_MAX).contains(number))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "--workers {text:?} is not a number of workers; write 1 to {WORKERS_MAX}"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    fn check(arguments: &[&str], expected: Result<Options, &str>) {
        check_parsed(parse, arguments, expected);
    }

    #[test]
    fn arguments_are_parsed() {
        let options = Options {
            folders: vec!["a".into(), "b".into()],
            data_folder: "d".into(),
            workers: Some(3),
            memory_bytes: 1 << 30,
            walk: WalkOptions {
                hidden: true,
                follow_links: true,
                ..WalkOptions::default()
            },
            retry: true,
        };
        let arguments = [
            "a",
            "--data",
            "d",
            "b",
            "--workers",
            "3",
            "--memory=1GiB",
            "--hidden",
            "--follow-links",
            "--retry",
        ];
        check(&arguments, Ok(options));
        check(&[], Err("FOLDER"));
        check(&["a"], Err("--data"));
        check(&["a", "--data", "d", "--workers", "0"], Err("--workers"));
        check(&["a", "--data", "d", "--memory", "much"], Err("much"));
        check(&["a", "--data", "d", "--fast"], Err("--fast"));
        assert_eq!(parse(lexopt::Parser::from_args(["-h"])), Ok(None));
    }

    #[test]
    fn help_lists_the_readable_formats() {
        let help = format_help();
        let long = help.lines().find(|line| line.len() > 100);
        assert_eq!(long, None);
        assert!(help.contains("  PDF                     pdf\n"), "{help}");
        assert!(!help.contains("PNG image"), "{help}");
    }
}
