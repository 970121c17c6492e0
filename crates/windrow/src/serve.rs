//! `windrow serve`: runs a server on a data folder.

mod added_sets;
mod audit_options;
mod config_file;
mod data_set_location;
mod data_sets;
mod engines;
mod given_option;
mod help;
mod metrics;
mod new_folder;
mod option_table;
mod option_values;
mod options;
mod pid_file;
mod placement_check;
mod problem_log;
mod reload;
mod shared_store;
mod shown_options;
mod store_options;
mod tls_options;
mod trace_options;
mod traces;
mod web;
mod web_options;

use std::ffi::OsStr;
use std::io;
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use windrow_collection::{Engine, Error, Position};
use windrow_document::doc;
use windrow_page::PageServer;
use windrow_server::{
    Config, Log, LogTarget, Server, Services, Severity, State, Stop, TlsMode, UsersEngine,
    log_resumed_builds, new_password,
};
use windrow_web::MetricsServer;

use crate::address_file::{AddressFile, Password, ServerAddress};
use crate::allocator::AllocatorSettings;
use crate::command_line::{Failure, Subcommand};
use crate::data_folder;
use crate::data_sets::check_undivided;
use crate::store::open_bucket;
use data_sets::DataSets;
use engines::{EngineSource, open_engine};
use help::HELP;
use metrics::start_metrics;
use new_folder::NewFolder;
pub use options::Options;
use options::parse;
use pid_file::PidFile;
use placement_check::PlacementCheck;
use problem_log::set_log;
use reload::Reloader;
use shared_store::{ABSTENTION, FollowTask, OpenedEngine, SharedDatabase, Takeover, abstention};
use shown_options::show_arguments;
use store_options::StoreOptions;
use traces::{TraceExporter, start_traces};
use web::start_web;

pub const SERVE: Subcommand = Subcommand {
    name: "serve",
    summary: Some("serve a data folder to MongoDB's drivers and tools"),
    run,
};

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    // Twenty rounds of ten large interrupted queries left 900 MB in the process; with two arenas
    // per core, 340 MB. Inserts over 8 and 64 connections are as fast. The program is restarted
    // before anything else, because a configuration file that is a pipe can be read only once.
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let allocator = AllocatorSettings {
        arenas: 2 * cores,
        mapped_bytes_min: None,
    };
    allocator.apply();
    let Some(options) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    serve(options)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a configuration file like `windrow serve --config FILE`.
pub fn read_configuration(file: &Path) -> Result<Options, Failure> {
    let parser = lexopt::Parser::from_args([OsStr::new("--config"), file.as_os_str()]);
    let options = parse(parser)?;
    options.ok_or_else(|| Failure::usage("it asks for help"))
}

/// The exit code of mongod if no socket could be opened.
const NET_ERROR: u8 = 48;

/// Serves until a stop is requested. A failure is printed, and also logged if the log is elsewhere.
fn serve(options: Options) -> Result<(), Failure> {
    let log = open_log(&options.log)?;
    let is_elsewhere = options.log != LogTarget::Stderr;
    serve_with_log(&log, options).inspect_err(|failure| {
        if !is_elsewhere {
            return;
        }
        let attr = doc! { "error": (failure.to_string()) };
        let (severity, message) = (Severity::Fatal, "The server ends because of an error");
        log.write(severity, "CONTROL", FAILED, "main", message, attr);
    })
}

/// The id of the log line about a server that ends because of an error. MongoDB has no such event.
const FAILED: i32 = 9_000_011;

fn serve_with_log(log: &Arc<Log>, options: Options) -> Result<(), Failure> {
    log_start(log, &options);
    warn_of_readers(log, &options.data_folder);
    forbid_core_dumps(log);
    raise_open_files(log, options.connections_max);
    let pid_file = options
        .pid_file
        .as_deref()
        .map(PidFile::write)
        .transpose()?;
    let new_folder = NewFolder::observe(&options.data_folder);
    let data = ServedData::open(&options, log)?;
    let bound = match bind_server(log, &options, &data) {
        Ok(bound) => bound,
        Err(failure) => {
            // The server stops in any case, so an error of closing is secondary.
            data.close();
            new_folder.discard();
            return Err(failure);
        }
    };
    let BoundServer {
        server,
        password,
        metrics,
        web,
        traces,
    } = bound;
    // Other commands cannot find the server without the address file, but clients are not affected.
    let address_file = own_address(&server, &options, password, data.is_encrypted())
        .and_then(|address| write_address_file(log, &options.data_folder, &address));
    let mut reloader = Reloader::new(log.clone(), server.state(), options.clone());
    let signals = server.handle_signals(move || reloader.reload());
    signals.map_err(Failure::runtime)?;
    let companions = Companions {
        _address_file: address_file,
        _metrics: metrics,
        _web: web,
        _traces: traces,
        _pid_file: pid_file,
    };
    match data {
        ServedData::Folder(opened) => {
            serve_engine(log, &options, server, opened, companions)?;
        }
        ServedData::Store(opened, placement) => {
            let monitor = placement.monitor(server.stop())?;
            let served = serve_engine(log, &options, server, opened, companions);
            monitor.end()?;
            served?;
        }
        ServedData::Sets(sets) => {
            let served = sets.serve(Arc::new(options), server, log);
            drop(companions);
            served?;
        }
    }
    let attr = doc! { "exitCode": 0 };
    log.info("CONTROL", 23_138, "main", "Shutting down", attr);
    Ok(())
}

/// What accompanies the server while it serves clients: files by which others find it, and other
/// listeners. They are dropped as soon as no client is served.
struct Companions {
    _address_file: Option<AddressFile>,
    _metrics: Option<MetricsServer>,
    _web: Option<PageServer>,
    _traces: Option<TraceExporter>,
    _pid_file: Option<PidFile>,
}

/// Serves a single engine until a stop is requested.
fn serve_engine(
    log: &Arc<Log>,
    options: &Options,
    server: Server,
    opened: OpenedEngine,
    companions: Companions,
) -> Result<(), Failure> {
    let OpenedEngine { engine, follow } = opened;
    log_resumed_builds(&engine, log);
    let election_timeout = options.store.as_ref().map(|store| store.election_timeout);
    let watch = election_timeout.map(|timeout| {
        let (state, stop) = (server.state(), server.stop());
        watch_role(follow, engine.clone(), state, stop, timeout)
    });
    let stop = server.stop();
    let served = server.run();
    drop(companions);
    if let Some(error) = watch.and_then(|watch| watch.join().ok().flatten()) {
        drop(engine);
        return Err(follow_again(log, &error.to_string(), Duration::ZERO));
    }
    engine.close().map_err(Failure::runtime)?;
    if let Some(period) = stop.step_down() {
        drop(engine);
        return Err(follow_again(log, "it was asked to step down", period));
    }
    served.map_err(Failure::runtime)
}

/// The data of a server.
enum ServedData {
    /// The database in the data folder.
    Folder(OpenedEngine),
    /// A database without data sets in an object store.
    Store(OpenedEngine, PlacementCheck),
    /// Several data sets.
    Sets(DataSets),
}

impl ServedData {
    fn open(options: &Options, log: &Arc<Log>) -> Result<ServedData, Failure> {
        let Some(store) = &options.store else {
            let source = EngineSource {
                folder: &options.data_folder,
                memory_bytes: options.memory_bytes,
                shared: None,
            };
            return open_engine(options, source, log).map(ServedData::Folder);
        };
        match &store.data_sets {
            Some(sets) => DataSets::open(options, store, sets, log).map(ServedData::Sets),
            None => ServedData::open_store(options, store, log),
        }
    }

    fn open_store(
        options: &Options,
        store: &StoreOptions,
        log: &Arc<Log>,
    ) -> Result<ServedData, Failure> {
        let bucket = open_bucket(&store.url, &store.options).map_err(Failure::runtime)?;
        let version = check_undivided(bucket.as_ref()).map_err(Failure::runtime)?;
        let placement = PlacementCheck::new(bucket, version);
        let source = EngineSource {
            folder: &options.data_folder,
            memory_bytes: options.memory_bytes,
            shared: Some(SharedDatabase {
                store,
                placement: &placement,
                takeover: Takeover::IfNeeded {
                    abstention: abstention(),
                },
            }),
        };
        let opened = open_engine(options, source, log)?;
        Ok(ServedData::Store(opened, placement))
    }

    fn is_encrypted(&self) -> bool {
        match self {
            ServedData::Folder(opened) | ServedData::Store(opened, _) => {
                opened.engine.is_encrypted()
            }
            ServedData::Sets(sets) => sets.is_encrypted(),
        }
    }

    fn close(self) {
        match self {
            ServedData::Folder(opened) | ServedData::Store(opened, _) => {
                drop(opened.follow);
                // The start fails in any case.
                let _ = opened.engine.close();
            }
            ServedData::Sets(sets) => sets.close(),
        }
    }
}

/// A server whose sockets are open.
struct BoundServer {
    server: Server,
    /// The password by which other commands of the same user reach the server.
    password: String,
    metrics: Option<MetricsServer>,
    web: Option<PageServer>,
    traces: Option<TraceExporter>,
}

/// Opens the sockets of the server, its metrics and its web page. No client is served yet.
fn bind_server(
    log: &Arc<Log>,
    options: &Options,
    data: &ServedData,
) -> Result<BoundServer, Failure> {
    let traces = start_traces(log, &options.traces)?;
    let (engine, users, router) = match data {
        ServedData::Folder(opened) | ServedData::Store(opened, _) => {
            (opened.engine.clone(), UsersEngine::Own, None)
        }
        ServedData::Sets(sets) => {
            let users = UsersEngine::First(sets.first_engine());
            (sets.front_engine(), users, Some(sets.router(options)))
        }
    };
    let services = Services {
        engine,
        log: log.clone(),
        folder: Some(options.data_folder.clone()),
        traces: traces.as_ref().map(|exporter| exporter.traces.clone()),
        users,
    };
    let password = new_password().map_err(|error| Failure::runtime(error.message))?;
    let mut config = config(options, password.clone(), data.is_encrypted());
    config.peer_key = router.as_ref().and_then(|router| router.key.clone());
    let server = Server::bind_router(config, services, router).map_err(explain_bind)?;
    let metrics = start_metrics(log, options, server.state())?;
    let web = start_web(log, options, server.connector(), &password)?;
    warn_of_open_access(log, &server);
    Ok(BoundServer {
        server,
        password,
        metrics,
        web,
        traces,
    })
}

/// Warns if access control is disabled, as MongoDB does.
fn warn_of_open_access(log: &Log, server: &Server) {
    if !server.connector().requires_login() {
        log.startup_warning(
            22_120,
            "Access control is not enabled: every client that reaches the server reads and writes all data",
        );
    }
}

fn config(options: &Options, local_password: String, is_encrypted: bool) -> Config {
    Config {
        listen: options.listen.clone(),
        access_control: options.access_control,
        audit: options.audit.clone(),
        local_password: Some(local_password),
        local_user_by_ip: !is_encrypted,
        unix_socket: options.unix_socket.clone(),
        tls: options.tls.clone(),
        handshake_time_max: options.handshake_time_max,
        connections_max: options.connections_max,
        operations_max: options.operations_max,
        idle_time_max: options.idle_time_max,
        arguments: show_arguments(std::env::args()),
        options: options.shown.clone(),
        parameters: options.runtime.parameters.clone(),
        slow_ms: options.runtime.slow_ms,
        slow_sample_rate: options.runtime.slow_sample_rate,
        profiling_level: options.profiling_level,
        replica_set: options.replica_set.clone(),
        advertised: options.store.as_ref().map(|store| store.advertise.clone()),
        ..Config::default()
    }
}

/// Converts an error of binding. Invalid settings are errors of the command line. Other errors are
/// of the audit log or, with the error kind of the system, of sockets.
fn explain_bind(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::Other => Failure::runtime(error),
        io::ErrorKind::InvalidInput => Failure::Usage(error.to_string()),
        _ => Failure::WithCode(NET_ERROR, error.to_string()),
    }
}

/// Warns if other users can read the files of an existing data folder. This can be intended, so it
/// is not an error.
fn warn_of_readers(log: &Log, folder: &Path) {
    if let Some(mode) = data_folder::mode_for_others(folder) {
        let folder = folder.display();
        log.startup_warning(
            SHARED_FOLDER,
            &format!("Other users can reach the data folder {folder}, its mode is {mode:03o}: chmod 700 forbids it"),
        );
    }
}

/// The id of the log line about a data folder that others can reach. MongoDB has no such event.
const SHARED_FOLDER: i32 = 9_000_016;

/// Disables core dumps, which would contain keys, passwords and documents. If dumps are piped to a
/// program such as systemd-coredump, the size limit has no effect, so the process is marked as not
/// dumpable. This also prevents other processes of the user from reading its memory.
fn forbid_core_dumps(log: &Log) {
    if let Err(error) = set_no_core_dumps() {
        let attr = doc! { "error": (error.to_string()) };
        let message = "Core dumps cannot be forbidden";
        log.warn("CONTROL", CORE_DUMPS, "main", message, attr);
    }
}

fn set_no_core_dumps() -> rustix::io::Result<()> {
    let limit = Rlimit {
        current: Some(0),
        maximum: getrlimit(Resource::Core).maximum,
    };
    setrlimit(Resource::Core, limit)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

/// The id of the log line about core dumps. MongoDB has no such event.
const CORE_DUMPS: i32 = 9_000_014;

/// Raises the limit of open files to the maximum of the process. Each connection needs a file, and
/// shells start programs with a limit of 1,024. Warns if the maximum does not suffice.
fn raise_open_files(log: &Log, connections_max: usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    let needed = connections_max as u64 + DATA_FILES;
    if let Some(limit) = limit.filter(|&limit| limit < needed) {
        let text = format!(
            "At most {limit} files can be open, and {connections_max} connections need {needed}: \
             raise the limit (ulimit -Hn, LimitNOFILE of systemd), or set net.maxIncomingConnections"
        );
        log.startup_warning(OPEN_FILES, &text);
    }
}

/// The approximate number of open files of a server without connections.
pub const DATA_FILES: u64 = 1024;

/// The id of MongoDB's startup warning about the limit of open files.
const OPEN_FILES: i32 = 22_178;

/// Returns the address at which commands on this machine reach the server. If they cannot
/// authenticate there, it has no password, see [`Config::local_user_by_ip`].
fn own_address(
    server: &Server,
    options: &Options,
    password: String,
    is_encrypted: bool,
) -> Option<ServerAddress> {
    let mode = options.tls.as_ref().map(|tls| tls.mode);
    let unix_socket = server.unix_sockets().first().cloned();
    let can_log_in = unix_socket.is_some() || !is_encrypted;
    Some(ServerAddress {
        address: server.addresses().first().copied()?,
        unix_socket,
        requires_tls: mode == Some(TlsMode::Require),
        password: can_log_in.then_some(Password(password)),
    })
}

fn write_address_file(log: &Log, folder: &Path, address: &ServerAddress) -> Option<AddressFile> {
    let address_file = AddressFile::write(folder, address);
    let report = |error: &io::Error| {
        let attr = doc! { "error": (error.to_string()) };
        let message = "Other commands cannot find this server: its address file cannot be written";
        log.warn("CONTROL", ADDRESS_FILE_ERROR_ID, "main", message, attr);
    };
    address_file.inspect_err(report).ok()
}

/// The id of the log line about an address file that cannot be written. MongoDB has no such event.
const ADDRESS_FILE_ERROR_ID: i32 = 9_000_006;

fn open_log(target: &LogTarget) -> Result<Arc<Log>, Failure> {
    let log = Log::open(target).map_err(|error| {
        Failure::runtime(match target {
            LogTarget::File { path, .. } => format!("the log {}: {error}", path.display()),
            _ => format!("the log of the system: {error}"),
        })
    })?;
    let log = Arc::new(log);
    log.take_panics();
    set_log(log.clone());
    Ok(log)
}

/// Follows another server. Then checks whether this server can still extend the log in the object
/// store, or was replaced as the primary. Stops the server if the process must restart. The thread
/// returns the reason, or `None` if the server stops for another reason.
fn watch_role(
    follow: Option<FollowTask>,
    engine: Arc<Engine>,
    state: Arc<State>,
    stop: Arc<Stop>,
    election_timeout: Duration,
) -> thread::JoinHandle<Option<Error>> {
    thread::spawn(move || {
        let followed = follow.map_or(Ok(()), |follow| follow.run(&stop, &|| 0));
        let mut ended = followed.err();
        while ended.is_none() && !stop.wait(WATCH_INTERVAL) {
            let silence = engine.upload_silence();
            state.set_suspended(silence.is_some_and(|it| it >= election_timeout));
            ended = engine.wait_durable(Position::MAX, Duration::ZERO).err();
        }
        if ended.is_some() {
            stop.request();
        }
        ended
    })
}

/// Restarts the process in place, with the same id. It follows the new primary, and does not take
/// over within `period`. Returns only if the restart fails.
fn follow_again(log: &Log, reason: &str, period: Duration) -> Failure {
    let attr = doc! { "reason": reason };
    let message = "This server is not the primary any more; it starts again and follows";
    log.warn("REPL", STEPPED_DOWN, "main", message, attr);
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Failure::runtime(error),
    };
    let failure = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(ABSTENTION, period.as_secs().to_string())
        .exec();
    Failure::runtime(format!(
        "{reason}; the server could not start again: {failure}"
    ))
}

/// The id of the log line about a primary that was replaced. MongoDB has no such event.
const STEPPED_DOWN: i32 = 9_000_035;

/// The interval at which a primary checks whether it was replaced.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

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
    let attr = doc! { "options": (options.shown.clone()) };
    log.info(
        "CONTROL",
        21_951,
        "initandlisten",
        "Options set by command line",
        attr,
    );
}

#[cfg(test)]
mod tests {
    use rustix::process::dumpable_behavior;

    use super::*;

    #[test]
    fn the_process_is_not_dumped() {
        set_no_core_dumps().unwrap();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
