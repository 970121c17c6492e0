//! What the operator decides.

use std::net::SocketAddr;

use windrow_document::{DocumentBuf, Value};

/// How a server listens and what it allows.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Connections beyond this are told so and closed.
    pub connections_max: usize,
    /// Open cursors beyond this are refused.
    pub cursors_max: usize,
    /// Commands that take longer are logged, in milliseconds.
    pub slow_ms: u64,
    /// Server parameters that are to be otherwise than they are by themselves.
    pub parameters: Vec<(String, Value)>,
    /// The name of the replica set that the server says to be the only member of.
    pub replica_set: Option<String>,
    /// The command line, for `getCmdLineOpts`.
    pub arguments: Vec<String>,
    /// What became of the command line, in MongoDB's shape (`{net: {port}, storage: {dbPath}}`).
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
