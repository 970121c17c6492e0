//! Concurrent connections that start together.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::client::Connection;
use crate::error::BenchError;
use crate::measure::{Latencies, timed};
use crate::server::Server;

/// The result of concurrent operations.
pub struct Load {
    /// The duration in seconds.
    pub seconds: f64,
    /// The latencies of all operations.
    pub latencies: Latencies,
}

impl Load {
    /// Operations per second.
    pub fn rate(&self) -> f64 {
        self.latencies.count() as f64 / self.seconds
    }
}

/// Sends each list of messages over its own connection. All connections start together, and each
/// message must succeed.
pub fn send_concurrently(server: &Server, messages: Vec<Vec<Vec<u8>>>) -> Result<Load, BenchError> {
    let send_all = |index: usize, connection: &mut Connection| {
        let send_one =
            |message: &Vec<u8>| Ok(timed(|| connection.succeed(message).map(drop))?.0 * 1e6);
        messages[index]
            .iter()
            .map(send_one)
            .collect::<Result<Vec<_>, _>>()
    };
    let (seconds, latencies) = run_concurrently(server, messages.len(), &send_all)?;
    Ok(Load {
        seconds,
        latencies: Latencies::new(latencies.concat()),
    })
}

/// Runs `work` on `count` connections concurrently. Returns the seconds until the last one
/// finishes, and the results.
pub fn run_concurrently<T: Send>(
    server: &Server,
    count: usize,
    work: &(impl Fn(usize, &mut Connection) -> Result<T, BenchError> + Sync),
) -> Result<(f64, Vec<T>), BenchError> {
    // All connections are opened before the barrier: a failed one would leave the others waiting
    // there.
    let connections: Result<Vec<_>, _> = (0..count).map(|_| server.connect()).collect();
    let barrier = Barrier::new(count + 1);
    thread::scope(|scope| {
        let workers: Vec<_> = connections?
            .into_iter()
            .enumerate()
            .map(|(index, mut connection)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    work(index, &mut connection)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let panicked = || BenchError::Server("a connection's thread ended early".into());
        let results: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err(panicked())))
            .collect();
        let seconds = start.elapsed().as_secs_f64();
        Ok((seconds, results.into_iter().collect::<Result<_, _>>()?))
    })
}
