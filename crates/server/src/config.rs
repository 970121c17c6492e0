//! The configuration of a server.

use std::net::SocketAddr;

use windrow_document::{DocumentBuf, Value};

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses to listen on. Port 0 selects a free port.
    pub listen: Vec<SocketAddr>,
    /// Maximum number of connections. More are closed with an error.
    pub connections_max: usize,
    /// Maximum number of open cursors. More are refused.
    pub cursors_max: usize,
    /// Commands that take longer are logged. In milliseconds.
    pub slow_ms: u64,
    /// Server parameters that differ from their defaults.
    pub parameters: Vec<(String, Value)>,
    /// The name of the replica set of which the server is the only member. `None` for a standalone
    /// server.
    pub replica_set: Option<String>,
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
            cursors_max: 100_000,
            slow_ms: 100,
            parameters: Vec::new(),
            replica_set: None,
            arguments: Vec::new(),
            options: DocumentBuf::new(),
        }
    }
}
