//! Logins: each opens a connection, with a handshake if connections use TLS, and closes it.

use crate::connections::{self, Load};
use crate::error::BenchError;
use crate::measure::{Latencies, timed};
use crate::options::Options;
use crate::report::{CaseResult, HASH_START, Row, Target};
use crate::server::Server;

const LOGINS: u64 = 1_000;

/// Measures the rate, the latency, and the processor time of the server for each login.
pub fn run(options: &Options, connections: usize) -> Result<CaseResult, BenchError> {
    if options.user.is_none() {
        let message = "the case login needs --user".to_owned();
        return Err(BenchError::Usage(message));
    }
    let server = Server::start(options)?;
    let each = options
        .operations
        .unwrap_or(LOGINS)
        .div_ceil(connections as u64);
    eprintln!("{each} logins over each of {connections} connections");
    let before = server.processor_seconds()?;
    let (seconds, latencies) = connections::run_concurrently(&server, connections, &|_, _| {
        let login = || server.connect().map(drop);
        (0..each)
            .map(|_| Ok(timed(login)?.0 * 1e6))
            .collect::<Result<Vec<_>, BenchError>>()
    })?;
    let used = server.processor_seconds()? - before;
    server.stop()?;
    let load = Load {
        seconds,
        latencies: Latencies::new(latencies.concat()),
    };
    Ok(CaseResult {
        rows: rows(&load, used, connections),
        hash: HASH_START,
    })
}

fn rows(load: &Load, processor_seconds: f64, connections: usize) -> Vec<Row> {
    let name = |what: &str| format!("login, {connections} conn.{what}");
    // The connections that measure have logged in as well.
    let logins = (load.latencies.count() + connections) as f64;
    let milliseconds = processor_seconds * 1e3 / logins;
    vec![
        Row::new(name(""), "1/s", load.rate(), None),
        Row::new(name(", p50"), "µs", load.latencies.at(0.5), None),
        Row::new(name(", p99"), "µs", load.latencies.at(0.99), None),
        Row::new(name(", server's processor"), "ms", milliseconds, None)
            .with_target(Target::AtMost(30.0)),
    ]
}
