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
    let send_all = |place: usize, connection: &mut Connection| {
        let item = |message: &Vec<u8>| Ok(timed(|| connection.succeed(message).map(drop))?.0 * 1e6);
        messages[place]
            .iter()
            .map(item)
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
            .map(|(place, mut connection)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    work(place, &mut connection)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let ended = || BenchError::Server("a connection's thread ended early".into());
        let given: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err(ended())))
            .collect();
        let seconds = start.elapsed().as_secs_f64();
        Ok((seconds, given.into_iter().collect::<Result<_, _>>()?))
    })
}
