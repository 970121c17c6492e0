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
use crate::admission::{EndAddresses, STACK_BYTES, accept};
use crate::audit::Audit;
use crate::auditing;
use crate::config::{Config, UnixSocket};
use crate::connector::Connector;
use crate::data_set_host::DataSetHost;
use crate::expiry::run_ttl_monitor;
use crate::housekeeping::{run_client_housekeeping, run_data_housekeeping, watch_clients};
use crate::listener::Listener;
use crate::log::Log;
use crate::network_address::NetworkAddress;
use crate::parameters::SetAt;
use crate::router::{Router, RouterSettings};
use crate::search_index_renewal::run_search_index_renewal;
use crate::signals::handle_signals;
use crate::state::{Route, Services, State};
use crate::stop::Stop;
use crate::tls::Tls;
use crate::users_engine::UsersEngine;

/// A listening server. Connections are served from [`run`](Self::run) on.
pub struct Server {
    state: Arc<State>,
    router: Option<Arc<Router>>,
    listeners: Vec<Arc<Listener>>,
}

/// The work of a thread that ends with the server.
type Background = fn(&State);

/// Maximum time that commands may continue after a stop was requested.
const STOP_WAIT_MAX: Duration = Duration::from_secs(10);

impl Server {
    /// Opens the sockets. Fails if an address cannot be used. The error contains the address.
    pub fn bind(config: Config, services: Services) -> io::Result<Server> {
        Server::bind_router(config, services, None)
    }

    /// Binds the listeners, as [`bind`](Self::bind) does. With a router, the server has several
    /// data sets, which a [`DataSetHost`] opens; `services.engine` has no data then.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_router(
        config: Config,
        services: Services,
        router: Option<RouterSettings>,
    ) -> io::Result<Server> {
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
        let router = router.map(|settings| Arc::new(Router::new(settings)));
        state.router = router.clone().map(|router| -> Arc<dyn Route> { router });
        let state = Arc::new(state);
        for (name, value) in &state.config.parameters {
            let set = state.set_parameter(name, value.as_ref(), SetAt::Start);
            set.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.message))?;
        }
        auditing::record_startup(&state);
        Ok(Server {
            state,
            router,
            listeners,
        })
    }

    /// Returns the IP addresses of the listeners, with the assigned ports.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let addresses = self.listeners.iter().map(|listener| listener.address());
        let addresses = addresses.filter_map(|address| match address {
            NetworkAddress::Ip(address) => Some(address),
            NetworkAddress::Unix(_) => None,
        });
        addresses.collect()
    }

    /// Returns the paths of the Unix domain sockets.
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

    /// Returns the handle that stops the server. It is valid after `run` too.
    pub fn stop(&self) -> Arc<Stop> {
        Arc::clone(&self.state.stop)
    }

    /// Returns the state of the server, for its numbers of connections and operations.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Opens the data sets of the server, if it has several.
    pub fn data_set_host(&self) -> Option<DataSetHost> {
        let router = self.router.clone()?;
        let front = self.state();
        Some(DataSetHost { front, router })
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
        let background: [(_, Background); 4] = [
            ("clients", run_client_housekeeping),
            ("housekeeping", run_data_housekeeping),
            ("disconnects", watch_clients),
            ("TTLMonitor", run_ttl_monitor),
        ];
        for (name, run) in background {
            let state = Arc::clone(&self.state);
            let thread = thread::Builder::new().name(name.into());
            let thread = thread.stack_size(STACK_BYTES);
            threads.push(thread.spawn(move || run(&state))?);
        }
        if let Some(router) = self.router.clone() {
            let stop = self.stop();
            let thread = thread::Builder::new().name("servers".into());
            threads.push(thread.spawn(move || router.run_questions(&stop))?);
        }
        let state = Arc::clone(&self.state);
        // Not joined: a running build continues until the engine is closed.
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

/// Returns the configuration with the access control that its addresses need. Fails if other
/// machines could connect without a login, unless the configuration says so.
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
    let users = match &services.users {
        UsersEngine::Own => services.engine.clone(),
        UsersEngine::First(first) => {
            let engine = first.get();
            engine.map_err(|error| io::Error::other(error.message))?
        }
    };
    if !Directory::new(config.access_control, Vec::new()).is_required(&users) {
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
                log.warn("NETWORK", NO_UNIX_SOCKET, "initandlisten", message, attr);
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
            let ends = EndAddresses {
                client: client_address,
                server: address,
            };
            accept(state, socket, ends)
        });
        if let Err(error) = outcome {
            let attr = doc! { "error": (error.to_string()) };
            let log = &state.services.log;
            log.warn(
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

/// EndAddresses all connections:
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
