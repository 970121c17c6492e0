//! `windrow serve`: runs a server on a data folder.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lexopt::prelude::*;
use windrow_collection::{BuildPriority, Engine, EngineOptions, Error, StorageError};
use windrow_document::{DocumentBuf, Value, doc};
use windrow_server::log::Severity;
use windrow_server::parameters::value_of;
use windrow_server::{Config, Log, Server, Services, index_builds};
use windrow_storage::RealDisk;

use crate::address_file::AddressFile;
use crate::command_line::{Failure, Subcommand};
use crate::{byte_size, memory};

pub const SERVE: Subcommand = Subcommand {
    name: "serve",
    summary: Some("serve a data folder to MongoDB's drivers and tools"),
    run,
};

const HELP: &str = "Serves a data folder to MongoDB's drivers and tools, until SIGTERM or SIGINT.

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
struct Options {
    data_folder: PathBuf,
    listen: Vec<SocketAddr>,
    memory_bytes: u64,
    build_priority: BuildPriority,
    snapshot_age_max: Duration,
    parameters: Vec<(String, Value)>,
    replica_set: Option<String>,
    history_bytes: u64,
    logpath: Option<PathBuf>,
}

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(options) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    serve(options)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns `None` if help was requested.
fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
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
    let parsed = parts.and_then(|(name, value)| Some((name.to_owned(), value_of(value)?)));
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

/// The log for failures of the engine's background work. The engine reports them through a plain
/// function, which needs a global.
static LOG: OnceLock<Arc<Log>> = OnceLock::new();

fn serve(options: Options) -> Result<(), Failure> {
    let log = open_log(options.logpath.as_deref())?;
    log_start(&log, &options);
    let engine = open_engine(&options)?;
    index_builds::watch_left(&engine, &log);
    let config = Config {
        listen: options.listen.clone(),
        arguments: std::env::args().collect(),
        options: to_mongodb_options(&options),
        parameters: options.parameters.clone(),
        replica_set: options.replica_set.clone(),
        ..Config::default()
    };
    let services = Services {
        engine: engine.clone(),
        log: log.clone(),
        folder: Some(options.data_folder.clone()),
        status: Vec::new(),
    };
    let server = Server::bind(config, services).map_err(Failure::runtime)?;
    server.stop().on_signals().map_err(Failure::runtime)?;
    // Without the note, other commands cannot find the server. Its clients are not affected.
    let address = server.addresses().first().copied();
    let note = address.and_then(|address| write_address_file(&log, &options.data_folder, address));
    server.run().map_err(Failure::runtime)?;
    drop(note);
    engine.close().map_err(Failure::runtime)?;
    log.info(
        "CONTROL",
        23_138,
        "main",
        "Shutting down",
        doc! { "exitCode": 0 },
    );
    Ok(())
}

fn write_address_file(log: &Log, folder: &Path, address: SocketAddr) -> Option<AddressFile> {
    let note = AddressFile::write(folder, address);
    let report = |error: &io::Error| {
        let attr = doc! { "error": (error.to_string()) };
        let message = "Other commands cannot find this server: its note cannot be written";
        log.write(
            Severity::Warning,
            "CONTROL",
            ADDRESS_FILE_ERROR_ID,
            "main",
            message,
            attr,
        );
    };
    note.inspect_err(report).ok()
}

/// The id of the log line about a note that cannot be written. MongoDB has no such event.
const ADDRESS_FILE_ERROR_ID: i32 = 9_000_006;

fn open_log(path: Option<&Path>) -> Result<Arc<Log>, Failure> {
    let log = match path {
        None => Log::to_stderr(),
        Some(path) => Log::to_file(path)
            .map_err(|error| Failure::runtime(format!("the log {}: {error}", path.display())))?,
    };
    let log = Arc::new(log);
    log.take_panics();
    // The first log of the process stays.
    let _ = LOG.set(log.clone());
    Ok(log)
}

/// A process that was just killed can hold the lock of the data folder for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

fn open_engine(options: &Options) -> Result<Arc<Engine>, Failure> {
    let disk = RealDisk::new(&options.data_folder).map_err(Failure::runtime)?;
    let engine_options = EngineOptions {
        on_problem: log_problem,
        build_priority: options.build_priority,
        snapshot_age_max: options.snapshot_age_max,
        history_bytes: options.history_bytes,
        ..EngineOptions::with_memory(options.memory_bytes)
    };
    let disk = Arc::new(disk);
    let started = Instant::now();
    loop {
        match Engine::open(disk.clone(), engine_options.clone()) {
            Err(Error::Storage(StorageError::InUse { .. })) if started.elapsed() < LOCK_TIMEOUT => {
                thread::sleep(Duration::from_millis(20));
            }
            opened => return opened.map_err(Failure::runtime),
        }
    }
}

/// The id of the log line about failed background work. MongoDB has no such event.
const ENGINE_PROBLEM_ID: i32 = 9_000_003;

fn log_problem(what: &str, error: &Error) {
    static RECENT: Mutex<RecentProblems> = Mutex::new(RecentProblems(Vec::new()));
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let error = error.to_string();
    if !recent.add(what, &error, Instant::now()) {
        return;
    }
    let attr = doc! { "error": (error.clone()) };
    match LOG.get() {
        Some(log) => log.write(
            Severity::Error,
            "STORAGE",
            ENGINE_PROBLEM_ID,
            "engine",
            what,
            attr,
        ),
        None => eprintln!("{what}: {error}"),
    }
}

/// The problems of the last [`PROBLEM_INTERVAL`] that were logged. Background work is repeated until it
/// succeeds, for example a fold while the disk is full, so a problem is logged once per interval.
struct RecentProblems(Vec<RecentProblem>);

struct RecentProblem {
    what: String,
    error: String,
    logged: Instant,
}

const PROBLEM_INTERVAL: Duration = Duration::from_secs(10);

/// The maximum number of different problems that are logged per interval.
const RECENT_PROBLEMS_MAX: usize = 20;

impl RecentProblems {
    /// Records a problem. Returns `true` if it is to be logged.
    fn add(&mut self, what: &str, error: &str, now: Instant) -> bool {
        let RecentProblems(recent) = self;
        recent.retain(|problem| now.duration_since(problem.logged) < PROBLEM_INTERVAL);
        let is_known = recent
            .iter()
            .any(|problem| problem.what == what && problem.error == error);
        if is_known || recent.len() >= RECENT_PROBLEMS_MAX {
            return false;
        }
        recent.push(RecentProblem {
            what: what.to_owned(),
            error: error.to_owned(),
            logged: now,
        });
        true
    }
}

fn log_start(log: &Log, options: &Options) {
    let attr = doc! {
        "pid": (i64::from(std::process::id())), "version": (env!("CARGO_PKG_VERSION")),
        "dbPath": (options.data_folder.display().to_string()), "memoryBytes": (options.memory_bytes as i64),
    };
    log.info(
        "CONTROL",
        4_615_611,
        "initandlisten",
        "Windrow starting",
        attr,
    );
    if options.listen.iter().any(|it| !it.ip().is_loopback()) {
        log.startup_warning(
            22_120,
            "Access control is not enabled: every client that reaches the server reads and writes all data",
        );
    }
}

/// The command line as MongoDB's configuration document, for `getCmdLineOpts`.
fn to_mongodb_options(options: &Options) -> DocumentBuf {
    let hosts: Vec<String> = options
        .listen
        .iter()
        .map(|it| it.ip().to_string())
        .collect();
    let port = options.listen.first().map_or(27017, SocketAddr::port);
    let mut options_document = doc! {
        "net": { "bindIp": (hosts.join(",")), "port": (i32::from(port)) },
        "storage": { "dbPath": (options.data_folder.display().to_string()) },
    };
    if let Some(name) = &options.replica_set {
        options_document.push("replication", doc! { "replSet": (name.as_str()) });
    }
    if !options.parameters.is_empty() {
        let mut parameters = DocumentBuf::new();
        // If a parameter is given several times, the last value is used.
        for (number, (name, value)) in options.parameters.iter().enumerate() {
            let later = options.parameters.iter().skip(number + 1);
            if !later.map(|(later, _)| later).any(|later| later == name) {
                parameters.push(name, value.clone());
            }
        }
        options_document.push("setParameter", parameters);
    }
    if let Some(path) = &options.logpath {
        let log = doc! { "destination": "file", "path": (path.display().to_string()) };
        options_document.push("systemLog", log);
    }
    options_document
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

    /// A fold that failed for a second reason within ten seconds was not logged again.
    #[test]
    fn each_problem_is_logged_once_per_interval() {
        let mut recent = RecentProblems(Vec::new());
        let start = Instant::now();
        let mut add = |seconds, error: &str| {
            recent.add("a fold failed", error, start + Duration::from_secs(seconds))
        };
        assert!(add(0, "the disk is full"));
        assert!(!add(1, "the disk is full"));
        assert!(add(2, "a block is damaged"));
        assert!(!add(3, "the disk is full"));
        assert!(!add(4, "a block is damaged"));
        assert!(add(11, "the disk is full"));
        assert!(!add(11, "a block is damaged"));
        let logged = (0..100).filter(|number| add(30, &number.to_string()));
        assert_eq!(logged.count(), RECENT_PROBLEMS_MAX);
    }

    #[test]
    fn help_is_not_an_error() {
        assert_eq!(parse(lexopt::Parser::from_args(["--help"])), Ok(None));
    }
}
