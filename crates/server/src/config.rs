//! The configuration of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use windrow_document::{DocumentBuf, Value};

use crate::access::directory::AccessControl;
use crate::audit::AuditSettings;
use crate::profiling::ProfilingLevel;
use crate::tls::TlsSettings;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses to listen on. Port 0 selects a free port.
    pub listen: Vec<SocketAddr>,
    /// Maximum number of connections. More are closed with an error.
    pub connections_max: usize,
    /// Maximum number of reads and writes that run at a time. Others wait. `None` is no limit.
    pub operations_max: Option<usize>,
    /// The Unix domain sockets to listen on.
    pub unix_socket: Option<UnixSocket>,
    /// TLS. `None` for a server without.
    pub tls: Option<TlsSettings>,
    /// The maximum time of a TLS handshake.
    pub handshake_time_max: Duration,
    /// Connections that send no message for this time are closed. `None` is no limit.
    pub idle_time_max: Option<Duration>,
    /// Maximum number of open cursors. More are refused.
    pub cursors_max: usize,
    /// Commands that take longer are logged. In milliseconds.
    pub slow_ms: u64,
    /// The fraction of slow commands that are logged, from 0 to 1.
    pub slow_sample_rate: f64,
    /// The commands that are stored in `system.profile`, of databases for which `profile` was not
    /// run.
    pub profiling_level: ProfilingLevel,
    /// Server parameters that differ from their defaults.
    pub parameters: Vec<(String, Value)>,
    /// The condition under which clients have to log in.
    pub access_control: AccessControl,
    /// The audit log. `None` if there is none.
    pub audit: Option<AuditSettings>,
    /// The password of the user of Windrow's own commands. `None` if there is no such user.
    pub local_password: Option<String>,
    /// `true` if this user can log in by IP, from the loopback address. Its password is in the data
    /// folder, in clear. If the rest of the folder is encrypted, only Unix domain sockets are safe,
    /// because the system restricts which users can connect to them.
    pub local_user_by_ip: bool,
    /// The key with which the servers of a cluster log in at each other. `None` if they need not.
    pub peer_key: Option<String>,
    /// The name of the replica set of which the server is the only member. `None` for a standalone
    /// server.
    pub replica_set: Option<String>,
    /// The address that clients connect to, HOST:PORT. `None`: that of the first listener.
    pub advertised: Option<String>,
    /// The command line, for `getCmdLineOpts`.
    pub arguments: Vec<String>,
    /// The parsed command line in MongoDB's form (`{net: {port}, storage: {dbPath}}`).
    pub options: DocumentBuf,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 27017))],
            connections_max: 10_000,
            operations_max: None,
            unix_socket: None,
            tls: None,
            handshake_time_max: Duration::from_secs(10),
            idle_time_max: None,
            cursors_max: 100_000,
            slow_ms: 100,
            slow_sample_rate: 1.0,
            profiling_level: ProfilingLevel::Off,
            parameters: Vec::new(),
            access_control: AccessControl::default(),
            audit: None,
            local_password: None,
            local_user_by_ip: true,
            peer_key: None,
            replica_set: None,
            advertised: None,
            arguments: Vec::new(),
            options: DocumentBuf::new(),
        }
    }
}

/// Unix domain sockets: for each port one, `mongodb-PORT.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    /// The folder of the sockets.
    pub folder: PathBuf,
    /// The permissions of the sockets, as of a file.
    pub permissions: u32,
    /// `true` if the server cannot start without the sockets. Otherwise a warning is logged.
    pub is_required: bool,
}

/// As mongod's: in `/tmp`, for the user of the server.
impl Default for UnixSocket {
    fn default() -> UnixSocket {
        UnixSocket {
            folder: "/tmp".into(),
            permissions: 0o700,
            is_required: false,
        }
    }
}
