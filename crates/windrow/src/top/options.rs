//! The options of `windrow top`.

use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;

use crate::command_line::Failure;
use crate::output_format::OutputFormat;
use crate::server_target::{TargetOptions, connection_help};

pub const HELP: &str = concat!(
    "\
Watches what a running server does: operations per second and their latencies, connections, memory,
work in the background, the disk, the running operations with the longest first, and the collections
with the most work.

Usage: windrow top [SERVER] [OPTION…]

SERVER is HOST:PORT or a connection string without a password, such as mongodb://ann@db.example/?tls=true.
The default is the connection string in WINDROW_URI, or 127.0.0.1:27017.

Keys: q or Esc leaves, p pauses, s sorts the collections by another column, the arrow keys scroll the
operations.

Options:
  --data DIR       the server that has this data folder open; no login is needed
  --interval N     seconds between two reports [default: 1]
  --once           print one report and end; needs no terminal
  --json           with --once, print a JSON document
",
    connection_help!(),
    "  -h, --help       show this help

The user needs the role clusterMonitor.

Examples:
  windrow top
  windrow top --data ./data
  windrow top mongodb://ann@db.example/ --tls-ca-file ca.pem
  windrow top --once --json
"
);

/// The maximum interval of reports in seconds.
const INTERVAL_SECONDS_MAX: f64 = 3600.0;
/// The minimum interval of reports in seconds.
const INTERVAL_SECONDS_MIN: f64 = 0.1;

#[derive(Debug, PartialEq)]
pub struct Options {
    pub target: TargetOptions,
    pub interval: Duration,
    pub once: bool,
    pub format: OutputFormat,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            target: TargetOptions::default(),
            interval: Duration::from_secs(1),
            once: false,
            format: OutputFormat::Text,
        }
    }
}

pub fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => {
                options.target.data_folder = Some(PathBuf::from(arguments.value()?));
            }
            Long("interval") => options.interval = parse_interval(&arguments.value()?.string()?)?,
            Long("once") => options.once = true,
            Long("json") => options.format = OutputFormat::Json,
            Long(name) => {
                let name = name.to_owned();
                if !options.target.accept(&name, &mut arguments)? {
                    return Err(Long(&name).unexpected().into());
                }
            }
            Value(server) if options.target.server.is_none() => {
                options.target.server = Some(server.string()?);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if options.format == OutputFormat::Json && !options.once {
        let message = "--json prints one report, and needs --once".to_owned();
        return Err(Failure::Usage(message));
    }
    Ok(Some(options))
}

fn parse_interval(text: &str) -> Result<Duration, Failure> {
    let seconds = text.parse::<f64>().ok();
    let limits = INTERVAL_SECONDS_MIN..=INTERVAL_SECONDS_MAX;
    let seconds = seconds.filter(|seconds| limits.contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        let message = format!(
            "--interval {text:?} is not a number of seconds from {INTERVAL_SECONDS_MIN} to \
             {INTERVAL_SECONDS_MAX}"
        );
        Failure::Usage(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    #[test]
    fn arguments_are_parsed() {
        check_parsed(parse, &[], Ok(Options::default()));
        let mut options = Options {
            interval: Duration::from_millis(500),
            once: true,
            format: OutputFormat::Json,
            ..Options::default()
        };
        options.target.server = Some("h:1".into());
        let given = ["h:1", "--interval=0.5", "--once", "--json"];
        check_parsed(parse, &given, Ok(options));
        check_parsed(parse, &["--json"], Err("--once"));
        check_parsed(parse, &["--interval", "0"], Err("not a number of seconds"));
        check_parsed(
            parse,
            &["--interval", "NaN"],
            Err("not a number of seconds"),
        );
        check_parsed(parse, &["--password=x"], Err("every user of the machine"));
        check_parsed(parse, &["--foo"], Err("--foo"));
        check_parsed(parse, &["a", "b"], Err("b"));
    }
}
