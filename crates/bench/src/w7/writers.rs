//! Connections that insert at a fixed rate beside the queries.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Concern, Connection, insert_message};
use crate::corpus::Corpus;
use crate::error::BenchError;
use crate::load::{COLLECTION, DATABASE};
use crate::server::Server;

/// The documents that a writer inserts in a tick: 1,000 in a second.
const BATCH: u64 = 100;
const TICK: Duration = Duration::from_millis(100);

/// Calls `work` while `writers` connections insert the documents from `first` on. Returns the
/// result of `work` and the documents that were inserted per second.
pub fn beside<T>(
    server: &Server,
    corpus: &dyn Corpus,
    first: u64,
    writers: u64,
    work: impl FnOnce() -> Result<T, BenchError>,
) -> Result<(T, f64), BenchError> {
    let connections: Result<Vec<_>, _> = (0..writers).map(|_| server.connect()).collect();
    let (stop, next) = (AtomicBool::new(false), AtomicU64::new(first));
    let start = Instant::now();
    let result = thread::scope(|scope| {
        let (stop, next) = (&stop, &next);
        let threads: Vec<_> = connections?
            .into_iter()
            .map(|connection| scope.spawn(move || insert(connection, corpus, next, stop)))
            .collect();
        let result = work();
        stop.store(true, Ordering::Release);
        for thread in threads {
            let panicked = |_| BenchError::Server("a writer's thread ended early".into());
            thread.join().map_err(panicked)??;
        }
        result
    })?;
    let inserted = next.load(Ordering::Acquire) - first;
    Ok((result, inserted as f64 / start.elapsed().as_secs_f64()))
}

fn insert(
    mut connection: Connection,
    corpus: &dyn Corpus,
    next: &AtomicU64,
    stop: &AtomicBool,
) -> Result<(), BenchError> {
    let start = Instant::now();
    let mut documents = Vec::new();
    for tick in 1.. {
        let first = next.fetch_add(BATCH, Ordering::AcqRel);
        corpus.batch(first, first + BATCH, &mut documents);
        let message = insert_message(DATABASE, COLLECTION, &documents, Concern::Acknowledged);
        connection.succeed(&message)?;
        if stop.load(Ordering::Acquire) {
            break;
        }
        thread::sleep((TICK * tick).saturating_sub(start.elapsed()));
    }
    Ok(())
}
