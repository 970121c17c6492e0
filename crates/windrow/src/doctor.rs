//! `windrow doctor`: checks the system, the configuration and the data folder for problems.
//!
//! It repairs nothing. If a check cannot be performed, it is reported as skipped, and the others
//! are performed.

mod check;
mod data;
mod programs;
mod server;
mod system;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::command_line::{Failure, Subcommand};
use crate::config::{self, Config};
use crate::output_format::OutputFormat;
use check::{Check, Level};
use data::FoundData;

pub const DOCTOR: Subcommand = Subcommand {
    name: "doctor",
    summary: Some("check the system, the configuration and the data folder"),
    run,
};

const HELP: &str = "\
Checks what would make Windrow fail or be slow: the configuration, the data folder, the disk, limits
of memory, open files and watched folders, the clock, and the converters of further formats with
their sandbox. With the configuration of a server, its options, addresses, certificate, keys and log
are checked, too. It repairs nothing. Run it as the user that runs the server.

Usage: windrow doctor [--data DIR] [--config FILE] [--server-config FILE] [--json]

The exit code is 0 if nothing is wrong, and 1 if something is. Warnings do not count.

Options:
  --data DIR       the data folder [default: that of the configuration]
  --config FILE    the configuration, see `windrow config --help` [default:
                   $XDG_CONFIG_HOME/windrow/index.toml, if it exists]
  --server-config FILE
                   the configuration of a server, as `windrow serve --config FILE` reads it
  --encryption-key-file FILE
                   the key of an encrypted data folder [default: that of the server's configuration,
                   or the file that WINDROW_ENCRYPTION_KEY_FILE names]
  --json           print a JSON document
  -h, --help       show this help

Examples:
  windrow doctor
  windrow doctor --data ./data --json
  windrow doctor --server-config /etc/windrow/windrow.conf
";

#[derive(Debug, Default, PartialEq)]
struct Options {
    data_folder: Option<PathBuf>,
    config: Option<PathBuf>,
    server_config: Option<PathBuf>,
    encryption_key_file: Option<PathBuf>,
    format: OutputFormat,
}

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(options) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let checks = examine(&options);
    let text = match options.format {
        OutputFormat::Json => format!("{}\n", check::to_document(&checks)),
        OutputFormat::Text => check::format(&checks),
    };
    // A write error means that the pipe was closed.
    let _ = io::stdout().write_all(text.as_bytes());
    let is_wrong = checks.iter().any(|check| check.level == Level::Problem);
    Ok(ExitCode::from(u8::from(is_wrong)))
}

fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => {
                options.data_folder = Some(PathBuf::from(arguments.value()?));
            }
            Long("config") => options.config = Some(PathBuf::from(arguments.value()?)),
            Long("server-config") => {
                options.server_config = Some(PathBuf::from(arguments.value()?));
            }
            Long("encryption-key-file" | "encryptionKeyFile") => {
                options.encryption_key_file = Some(PathBuf::from(arguments.value()?));
            }
            Long("json") => options.format = OutputFormat::Json,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Some(options))
}

/// Performs all checks, in the order of the output.
fn examine(options: &Options) -> Vec<Check> {
    let mut checks = vec![system::check_version()];
    let configured = check_configuration(options.config.as_deref(), &mut checks);
    let config = configured.unwrap_or_default();
    let server = options.server_config.as_deref();
    let server = server.and_then(|file| server::check_configuration(file, &mut checks));
    let named = options.data_folder.clone();
    let data_folder = named
        .or_else(|| server.as_ref().map(|server| server.data_folder.clone()))
        .or_else(|| config.data.clone());
    let key = options.encryption_key_file.clone();
    let key = key.or_else(|| server.as_ref()?.encryption_key_file.clone());
    let found = match &data_folder {
        Some(folder) => {
            let has_store = server.as_ref().is_some_and(|server| server.store.is_some());
            data::check_folder(folder, key.as_deref(), has_store, &mut checks)
        }
        None => {
            checks.push(Check::skipped("data folder", "none is named or configured"));
            FoundData::default()
        }
    };
    checks.push(system::check_clock(found.newest_run_ms));
    let memory = server.as_ref().map(|server| server.memory_bytes);
    let memory = memory.or_else(|| config.memory.map(|size| size.0));
    checks.push(system::check_memory(memory));
    let connections = server.as_ref().map(|server| server.connections_max);
    checks.push(system::check_open_files(connections));
    if let Some(server) = &server {
        server::check(server, found.is_served, &mut checks);
    }
    checks.push(system::check_watches(&config));
    programs::check(&config.programs, &mut checks);
    checks
}

/// Checks the configuration. Returns `None` if there is none or if it is invalid.
fn check_configuration(named: Option<&Path>, checks: &mut Vec<Check>) -> Option<Config> {
    const NAME: &str = "configuration";
    let usual = config::default_file().filter(|file| file.exists());
    let Some(file) = named.map(Path::to_path_buf).or(usual) else {
        checks.push(Check::skipped(NAME, "there is none"));
        return None;
    };
    match Config::read(&file) {
        Ok(config) => {
            let message = format!("{}, {} folders", file.display(), config.folders.len());
            checks.push(Check::ok(NAME, message));
            for folder in &config.folders {
                checks.extend(data::check_source(&folder.path));
            }
            Some(config)
        }
        Err(failure) => {
            checks.push(Check::problem(
                NAME,
                failure,
                "`windrow config --help` has an example",
            ));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    #[test]
    fn arguments_are_parsed() {
        let options = Options {
            data_folder: Some("d".into()),
            config: Some("c".into()),
            server_config: Some("s".into()),
            encryption_key_file: Some("k".into()),
            format: OutputFormat::Json,
        };
        let given = [
            "--data=d",
            "--config",
            "c",
            "--server-config=s",
            "--encryption-key-file=k",
            "--json",
        ];
        check_parsed(parse, &given, Ok(options));
        check_parsed(parse, &[], Ok(Options::default()));
        check_parsed(parse, &["d"], Err("d"));
    }

    #[test]
    fn each_check_has_a_result() {
        let checks = examine(&Options::default());
        let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
        for name in [
            "version",
            "clock",
            "memory",
            "open files",
            "watched folders",
            "sandbox",
        ] {
            assert!(names.contains(&name), "{names:?}");
        }
    }
}
