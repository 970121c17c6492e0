//! Listens, starts a thread for each connection, and stops in order.

use std::collections::BTreeSet;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windrow_document::doc;
use windrow_wire::ErrorCode;

use crate::access::Directory;
use crate::access::directory::AccessControl;
use crate::admission::{Ends, STACK_BYTES, accept};
use crate::audit::Audit;
use crate::auditing;
use crate::config::{Config, UnixSocket};
use crate::connector::Connector;
use crate::expiry::run_ttl_monitor;
use crate::listener::Listener;
use crate::log::{Log, Severity};
use crate::network_address::NetworkAddress;
use crate::parameters::{SetAt, TRANSACTION_SECONDS};
use crate::search_index_renewal::run_search_index_renewal;
use crate::signals::handle_signals;
use crate::state::{Services, State};
use crate::stop::Stop;
use crate::tls::Tls;

/// A listening server. Connections are served from [`run`](Self::run) on.
pub struct Server {
    state: Arc<State>,
    listeners: Vec<Arc<Listener>>,
}

/// Maximum time that commands may continue after a stop was requested.
const STOP_WAIT_MAX: Duration = Duration::from_secs(10);

impl Server {
    /// Opens the sockets. Fails if an address cannot be used. The error contains the address.
    pub fn bind(config: Config, services: Services) -> io::Result<Server> {
        let tls = config.tls.clone().map(Tls::new).transpose();
        let tls = tls.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut listeners = Vec::new();
        for address in &config.listen {
            listeners.push(Arc::new(Listener::bind(*address)?));
        }
        if let Some(unix_socket) = &config.unix_socket {
            listeners.extend(bind_unix_sockets(unix_socket, &listeners, &services.log)?);
        }
        let config = with_access_control(config, &services, &listeners)?;
        let port = listeners
            .iter()
            .find_map(|listener| listener.address().port());
        let mut state = State::new(config, services, port.unwrap_or(0));
        state.tls = tls;
        state.audit = open_audit(&state)?;
        let state = Arc::new(state);
        for (name, value) in &state.config.parameters {
            let set = state.set_parameter(name, value.as_ref(), SetAt::Start);
            set.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.message))?;
        }
        auditing::record_startup(&state);
        Ok(Server { state, listeners })
    }

    /// The IP addresses of the listeners, with the assigned ports.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let addresses = self.listeners.iter().map(|listener| listener.address());
        let addresses = addresses.filter_map(|address| match address {
            NetworkAddress::Ip(address) => Some(address),
            NetworkAddress::Unix(_) => None,
        });
        addresses.collect()
    }

    /// The paths of the Unix domain sockets.
    pub fn unix_sockets(&self) -> Vec<PathBuf> {
        let addresses = self.listeners.iter().map(|listener| listener.address());
        let paths = addresses.filter_map(|address| match address {
            NetworkAddress::Ip(_) => None,
            NetworkAddress::Unix(path) => Some(path),
        });
        paths.collect()
    }

    /// Handles the signals of the process: SIGTERM and SIGINT stop the server, SIGHUP reads the
    /// certificates again and calls `reload`, SIGUSR1 rotates the logs.
    pub fn handle_signals(&self, reload: impl FnMut() + Send + 'static) -> io::Result<()> {
        handle_signals(&self.state, reload)
    }

    /// The handle that stops the server. It is valid after `run` too.
    pub fn stop(&self) -> Arc<Stop> {
        Arc::clone(&self.state.stop)
    }

    /// The state of the server, for its numbers of connections and operations.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Opens connections within the process. It is valid until the stop.
    pub fn connector(&self) -> Connector {
        Connector::new(self.state())
    }

    /// Serves until a stop is requested. Then accepts no more connections, interrupts running
    /// commands, waits for their replies, and returns. The engine is not closed yet. Fails if it
    /// stopped because the audit log could not be written.
    pub fn run(self) -> io::Result<()> {
        let port = self
            .addresses()
            .first()
            .map(|address| i32::from(address.port()));
        let mut threads = Vec::new();
        for listener in &self.listeners {
            let state = Arc::clone(&self.state);
            let listener = Arc::clone(listener);
            log_listening(&state.services.log, &listener.address());
            let thread = thread::Builder::new().name("listener".into());
            threads.push(thread.spawn(move || listen(&state, &listener))?);
        }
        let state = Arc::clone(&self.state);
        threads.push(
            thread::Builder::new()
                .name("housekeeping".into())
                .spawn(move || run_housekeeping(&state))?,
        );
        let state = Arc::clone(&self.state);
        let watch = thread::Builder::new().name("disconnects".into());
        threads.push(watch.spawn(move || watch_clients(&state))?);
        let state = Arc::clone(&self.state);
        let expiry = thread::Builder::new()
            .name("TTLMonitor".into())
            .stack_size(STACK_BYTES);
        threads.push(expiry.spawn(move || run_ttl_monitor(&state))?);
        let state = Arc::clone(&self.state);
        // Not joined: a build that is under way goes on until the engine is closed.
        let renewal = thread::Builder::new().name("SearchIndexRenewal".into());
        renewal.spawn(move || run_search_index_renewal(&state))?;
        let attr = doc! { "port": port };
        self.state.services.log.info(
            "NETWORK",
            23_016,
            "listener",
            "Waiting for connections",
            attr,
        );
        while !self.state.stop.wait(Duration::from_secs(3600)) {}
        auditing::record_shutdown(&self.state, None);
        self.listeners.iter().for_each(|listener| listener.wake());
        for thread in threads {
            // The panic of a thread is already logged.
            drop(thread.join());
        }
        end_connections(&self.state);
        let checked = self.state.check_audit();
        checked.map_err(|error| io::Error::other(error.message))
    }
}

fn open_audit(state: &State) -> io::Result<Option<Arc<Audit>>> {
    let open = |settings| {
        let log = Arc::clone(&state.services.log);
        Audit::open(settings, log, Arc::clone(&state.stop)).map(Arc::new)
    };
    state.config.audit.as_ref().map(open).transpose()
}

/// The configuration with the access control that its addresses need. Fails if other machines could
/// connect without a login, unless the configuration says so.
fn with_access_control(
    config: Config,
    services: &Services,
    listeners: &[Arc<Listener>],
) -> io::Result<Config> {
    let mut addresses = listeners.iter().map(|listener| listener.address());
    let reachable = addresses.find(|address| !address.ip().to_canonical().is_loopback());
    let Some(address) = reachable.filter(|_| config.access_control == AccessControl::WithUsers)
    else {
        return Ok(config);
    };
    if !Directory::new(config.access_control, None).is_required(&services.engine) {
        let message = format!(
            "{address} can be reached from other machines, and there are no users: require logins \
             with --auth, or let every client read and write all data with --no-auth"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // Logins stay necessary if the last user is dropped.
    Ok(Config {
        access_control: AccessControl::Always,
        ..config
    })
}

fn log_listening(log: &Log, address: &NetworkAddress) {
    let attr = match address {
        NetworkAddress::Ip(address) => {
            doc! { "address": (address.ip().to_string()), "port": (i32::from(address.port())) }
        }
        NetworkAddress::Unix(path) => doc! { "address": (path.display().to_string()) },
    };
    log.info("NETWORK", 23_015, "listener", "Listening on", attr);
}

/// Listens on a Unix domain socket for each port.
fn bind_unix_sockets(
    unix_socket: &UnixSocket,
    listeners: &[Arc<Listener>],
    log: &Log,
) -> io::Result<Vec<Arc<Listener>>> {
    let ports = listeners
        .iter()
        .filter_map(|listener| listener.address().port());
    let ports: BTreeSet<u16> = ports.collect();
    let mut bound = Vec::new();
    for port in ports {
        let path = unix_socket.folder.join(format!("mongodb-{port}.sock"));
        match Listener::bind_unix(&path, unix_socket.permissions) {
            Ok(listener) => bound.push(Arc::new(listener)),
            Err(error) if unix_socket.is_required => return Err(error),
            Err(error) => {
                let attr = doc! { "error": (error.to_string()) };
                let message = "There is no Unix domain socket";
                let severity = Severity::Warning;
                log.write(
                    severity,
                    "NETWORK",
                    NO_UNIX_SOCKET,
                    "initandlisten",
                    message,
                    attr,
                );
            }
        }
    }
    Ok(bound)
}

/// The id of the log line about a Unix domain socket that cannot be created. MongoDB has no such
/// event.
const NO_UNIX_SOCKET: i32 = 9_000_009;

fn listen(state: &Arc<State>, listener: &Listener) {
    loop {
        let accepted = listener.accept();
        if state.stop.is_requested() {
            return;
        }
        let outcome = accepted.and_then(|(socket, client_address)| {
            let address = socket.local_address();
            let address = address.unwrap_or_else(|| client_address.clone());
            let ends = Ends {
                client: client_address,
                server: address,
            };
            accept(state, socket, ends)
        });
        if let Err(error) = outcome {
            let attr = doc! { "error": (error.to_string()) };
            let log = &state.services.log;
            log.write(
                Severity::Warning,
                "NETWORK",
                23_017,
                "listener",
                "Error accepting a connection",
                attr,
            );
            // Files or threads are exhausted. An immediate retry would only fill the log.
            state.stop.wait(Duration::from_millis(100));
        }
    }
}

/// The interval at which plans, index filters and counts of dropped collections are freed.
const PLANS_INTERVAL: Duration = Duration::from_secs(60);

/// The interval at which the expiry of the server's certificate is checked.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The interval at which the sockets of running operations are checked: an operation ends within
/// 100 ms after its client has disconnected.
const DISCONNECT_INTERVAL: Duration = Duration::from_millis(40);

/// Ends the operations of clients that have disconnected.
fn watch_clients(state: &State) {
    while !state.stop.wait(DISCONNECT_INTERVAL) {
        state.operations.kill_disconnected(&state.connections);
    }
}

/// The interval at which clients that have not logged in are looked at.
const SILENCE_INTERVAL: Duration = Duration::from_secs(5);

/// A client that has to log in, and has not, is disconnected if so many looks in a row find no complete
/// message: after 60 seconds. Drivers ask a server more often, without a login.
const SILENT_LOOKS_MAX: u32 = 12;

/// The id of the log line about a client that does not log in. MongoDB has no such event.
const SILENT_CLIENT: i32 = 9_000_021;

/// Closes the connections of clients that do not log in and send nothing, or a message that they do
/// not end. Others could not connect any more if there were many.
fn close_silent_clients(state: &State) {
    if !state.directory.is_required(&state.services.engine) {
        return;
    }
    let (_, idle) = state.operations.running_and_idle(&state.connections);
    let silent = idle.iter().filter(|client| {
        client.address.is_ip()
            && !client.login.is_logged_in()
            && client.count_silent_looks() >= SILENT_LOOKS_MAX
    });
    for client in silent {
        let attr = doc! { "remote": (client.address.to_string()) };
        let message = "Closing connection: its client did not log in";
        let log = &state.services.log;
        log.info("NETWORK", SILENT_CLIENT, &client.name(), message, attr);
        state.connections.close(client.id);
    }
}

/// Ends transactions that last too long, and expired sessions and cursors. Frees the plans and
/// the counts of dropped collections.
fn run_housekeeping(state: &State) {
    let (mut plans_freed, mut expiry_checked) = (Instant::now(), Instant::now());
    let mut silence_checked = Instant::now();
    state.warn_before_expiry();
    while !state.stop.wait(Duration::from_secs(1)) {
        let now = Instant::now();
        if now.duration_since(silence_checked) >= SILENCE_INTERVAL {
            silence_checked = now;
            close_silent_clients(state);
        }
        if now.duration_since(plans_freed) >= PLANS_INTERVAL {
            plans_freed = now;
            let uuids = state.services.engine.uuids();
            state.planner_settings.retain(|uuid| uuids.contains(uuid));
            state.usage.forget_dropped(&state.services.engine);
        }
        if now.duration_since(expiry_checked) >= EXPIRY_INTERVAL {
            expiry_checked = now;
            state.warn_before_expiry();
        }
        let limit = state.parameters.number(TRANSACTION_SECONDS).max(1);
        for session in state
            .session_transactions
            .expire(Duration::from_secs(limit.unsigned_abs()))
        {
            let code = ErrorCode::TransactionExceededLifetimeLimitSeconds;
            state.operations.kill_session(session, code);
        }
        for session in state.sessions.expire(now) {
            state.session_transactions.forget(session);
            state.services.engine.forget_session(&session.key());
            state.cursors.kill_session(session);
            state
                .operations
                .kill_session(session, ErrorCode::Interrupted);
        }
        let timeout = state.parameters.number("cursorTimeoutMillis");
        let timeout = Duration::from_millis(u64::try_from(timeout).unwrap_or(u64::MAX));
        let expired = state.cursors.expire(now, timeout);
        if expired > 0 {
            let attr = doc! { "count": (expired as i32) };
            state
                .services
                .log
                .info("QUERY", 20_529, "housekeeping", "Cursors timed out", attr);
        }
    }
}

/// Ends all connections:
///
/// 1. Interrupts running commands.
/// 2. Shuts down reading, so that each thread sends its reply and ends.
/// 3. Closes the remaining connections after the maximum time.
fn end_connections(state: &State) {
    state
        .operations
        .kill_where(ErrorCode::InterruptedAtShutdown, |_| true);
    state.connections.close_all(Shutdown::Read);
    let deadline = Instant::now() + STOP_WAIT_MAX;
    while state.connections.count() > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    state.connections.close_all(Shutdown::Both);
    let attr = doc! { "connectionsLeft": (state.connections.count() as i32) };
    state.services.log.info(
        "NETWORK",
        23_377,
        "main",
        "Shutdown: connections are closed",
        attr,
    );
}
