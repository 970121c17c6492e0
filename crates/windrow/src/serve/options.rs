//! The command line of `windrow serve`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;
use windrow_collection::BuildPriority;
use windrow_document::{DocumentBuf, Value, doc};
use windrow_server::parse_parameter_value;

use crate::command_line::Failure;
use crate::{byte_size, memory};

pub const HELP: &str =
    "Serves a data folder to MongoDB's drivers and tools, until SIGTERM or SIGINT.

Usage: windrow serve --data DIR [OPTION…]

Options:
  --data DIR          the data folder; it is created if it does not exist
  --listen ADDRESS    the address to listen on, HOST:PORT; can be repeated
                      [default: 127.0.0.1:27017]
  --memory SIZE       total memory for caches, tails and index builds: bytes, 512MB, 2GiB
                      [default: a quarter of the machine's]
  --build-priority P  how much index builds yield to reads and writes: low, normal, high
                      [default: normal]
  --snapshot-seconds-max N
                      how long a query can read at a snapshot before it fails; the versions that a
                      snapshot needs occupy space [default: 600]
  --replica-set NAME  appear as a replica set with a single member, for clients that require one
  --set-parameter NAME=VALUE
                      set a server parameter, as the command setParameter does; VALUE is true,
                      false or an integer; can be repeated. enableTestCommands=1 enables
                      configureFailPoint, for tests of applications
  --change-history-bytes-max SIZE
                      how much of the log is preserved for change streams once a stream was opened,
                      for example 1GB; streams that resume from an earlier point fail
                      [default: 256MiB]
  --logpath FILE      append the log to a file [default: standard error]
  -h, --help          show this help

There is no authentication. Every client that can connect can read and write all data.

Examples:
  windrow serve --data ./data
  windrow serve --data /var/lib/windrow --listen 127.0.0.1:27018 --memory 2GiB
  mongosh mongodb://127.0.0.1:27017
";

/// The default of `--change-history-bytes-max`.
const HISTORY_BYTES_DEFAULT: u64 = 256 << 20;

/// The parsed command line.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub data_folder: PathBuf,
    pub listen: Vec<SocketAddr>,
    pub memory_bytes: u64,
    pub build_priority: BuildPriority,
    pub snapshot_age_max: Duration,
    pub parameters: Vec<(String, Value)>,
    pub replica_set: Option<String>,
    pub history_bytes: u64,
    pub logpath: Option<PathBuf>,
}

impl Options {
    /// The command line as MongoDB's configuration document, for `getCmdLineOpts`.
    pub fn to_mongodb_options(&self) -> DocumentBuf {
        let hosts: Vec<String> = self.listen.iter().map(|it| it.ip().to_string()).collect();
        let port = self.listen.first().map_or(27017, SocketAddr::port);
        let mut options_document = doc! {
            "net": { "bindIp": (hosts.join(",")), "port": (i32::from(port)) },
            "storage": { "dbPath": (self.data_folder.display().to_string()) },
        };
        if let Some(name) = &self.replica_set {
            options_document.push("replication", doc! { "replSet": (name.as_str()) });
        }
        if !self.parameters.is_empty() {
            let mut parameters = DocumentBuf::new();
            // If a parameter is given several times, the last value is used.
            for (number, (name, value)) in self.parameters.iter().enumerate() {
                let later = self.parameters.iter().skip(number + 1);
                if !later.map(|(later, _)| later).any(|later| later == name) {
                    parameters.push(name, value.clone());
                }
            }
            options_document.push("setParameter", parameters);
        }
        if let Some(path) = &self.logpath {
            let log = doc! { "destination": "file", "path": (path.display().to_string()) };
            options_document.push("systemLog", log);
        }
        options_document
    }
}

/// Returns `None` if help was requested.
pub fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut data_folder, mut listen, mut memory_bytes, mut logpath) =
        (None, Vec::new(), None, None);
    let mut build_priority = BuildPriority::default();
    let mut snapshot_age_max = Duration::from_secs(600);
    let (mut replica_set, mut parameters) = (None, Vec::new());
    let mut history_bytes = HISTORY_BYTES_DEFAULT;
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => data_folder = Some(PathBuf::from(arguments.value()?)),
            Long("listen") => listen.extend(parse_addresses(&arguments.value()?.string()?)?),
            Long("memory") => {
                memory_bytes = Some(memory::parse_option(&arguments.value()?.string()?)?)
            }
            Long("build-priority") => {
                build_priority = parse_priority(&arguments.value()?.string()?)?;
            }
            Long("snapshot-seconds-max") => {
                snapshot_age_max = parse_seconds(&arguments.value()?.string()?)?;
            }
            Long("replica-set" | "replSet") => {
                replica_set = Some(parse_replica_set(arguments.value()?.string()?)?);
            }
            Long("set-parameter" | "setParameter") => {
                parameters.push(parse_parameter(&arguments.value()?.string()?)?);
            }
            Long("change-history-bytes-max") => {
                history_bytes = parse_history_bytes(&arguments.value()?.string()?)?;
            }
            Long("logpath") => logpath = Some(PathBuf::from(arguments.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    if listen.is_empty() {
        listen.push(SocketAddr::from(([127, 0, 0, 1], 27017)));
    }
    Ok(Some(Options {
        data_folder: data_folder.ok_or_else(|| Failure::missing_argument("--data DIR", "serve"))?,
        listen,
        memory_bytes: memory_bytes.unwrap_or_else(memory::default_memory_bytes),
        build_priority,
        snapshot_age_max,
        parameters,
        replica_set,
        history_bytes,
        logpath,
    }))
}

fn parse_addresses(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let found = text.to_socket_addrs().map(Vec::from_iter);
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| {
        Failure::Usage(format!(
            "--listen {text:?} is not an address; write HOST:PORT, for example 127.0.0.1:27017"
        ))
    })
}

fn parse_history_bytes(text: &str) -> Result<u64, Failure> {
    byte_size::parse(text)
        .map_err(|reason| Failure::Usage(format!("--change-history-bytes-max {reason}")))
}

fn parse_seconds(text: &str) -> Result<Duration, Failure> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| {
        Failure::Usage(format!(
            "--snapshot-seconds-max {text:?} is not a positive integer"
        ))
    })
}

fn parse_parameter(text: &str) -> Result<(String, Value), Failure> {
    let parts = text.split_once('=');
    let parsed =
        parts.and_then(|(name, value)| Some((name.to_owned(), parse_parameter_value(value)?)));
    parsed.ok_or_else(|| {
        Failure::Usage(format!(
            "--set-parameter {text:?} is not a parameter; write NAME=VALUE with true, false or an integer"
        ))
    })
}

/// Parses the name of a replica set. It must be usable in a connection string.
fn parse_replica_set(text: String) -> Result<String, Failure> {
    if text.is_empty() || text.contains(['/', '?', '&', ',', '=', ' ']) {
        return Err(Failure::Usage(format!(
            "--replica-set {text:?} is not a valid name: it must not be empty or contain / ? & , = or a space"
        )));
    }
    Ok(text)
}

fn parse_priority(text: &str) -> Result<BuildPriority, Failure> {
    match text {
        "low" => Ok(BuildPriority::Low),
        "normal" => Ok(BuildPriority::Normal),
        "high" => Ok(BuildPriority::High),
        _ => Err(Failure::Usage(format!(
            "--build-priority {text:?} is not a priority; write low, normal or high"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    #[test]
    fn arguments_are_parsed() {
        let check = |arguments: &[&str], expected: Result<Options, &str>| {
            check_parsed(parse, arguments, expected);
        };
        let options = Options {
            data_folder: "d".into(),
            listen: vec!["127.0.0.1:27017".parse().unwrap()],
            memory_bytes: 1 << 30,
            build_priority: BuildPriority::Normal,
            snapshot_age_max: Duration::from_secs(600),
            parameters: Vec::new(),
            replica_set: None,
            history_bytes: HISTORY_BYTES_DEFAULT,
            logpath: None,
        };
        check(&["--data", "d", "--memory=1GiB"], Ok(options));
        let options = Options {
            data_folder: "d".into(),
            listen: vec!["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()],
            memory_bytes: 20_000_000,
            build_priority: BuildPriority::Low,
            snapshot_age_max: Duration::from_secs(5),
            parameters: vec![
                ("quiet".into(), true.into()),
                ("logLevel".into(), 1i64.into()),
            ],
            replica_set: Some("rs0".into()),
            history_bytes: 1_000_000_000,
            logpath: Some("l".into()),
        };
        check(
            &[
                "--dbpath",
                "d",
                "--listen",
                "127.0.0.1:1",
                "--listen",
                "[::1]:2",
                "--memory",
                "20MB",
                "--build-priority",
                "low",
                "--snapshot-seconds-max=5",
                "--setParameter",
                "quiet=true",
                "--set-parameter=logLevel=1",
                "--replica-set",
                "rs0",
                "--change-history-bytes-max=1GB",
                "--logpath",
                "l",
            ],
            Ok(options),
        );
        check(&[], Err("--data"));
        check(&["--data", "d", "--listen", "nowhere"], Err("nowhere"));
        check(&["--data", "d", "--memory", "much"], Err("much"));
        check(&["--data", "d", "--memory", "1MB"], Err("16MiB"));
        check(&["--data", "d", "--build-priority", "0"], Err("high"));
        check(&["--data", "d", "--snapshot-seconds-max=-1"], Err("-1"));
        check(&["--data", "d", "--replica-set", "a/b"], Err("a/b"));
        check(&["--data", "d", "--set-parameter", "quiet"], Err("quiet"));
        check(&["--data", "d", "--set-parameter", "quiet=x"], Err("quiet"));
        check(&["--data", "d", "--port", "1"], Err("--port"));
        check(&["--data", "d", "more"], Err("more"));
        check(&["--data"], Err("--data"));
    }

    #[test]
    fn help_is_not_an_error() {
        assert_eq!(parse(lexopt::Parser::from_args(["--help"])), Ok(None));
    }
}
