//! Waits until the engine's background work is finished: tails are folded and sections merged.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::client::Connection;
use crate::error::BenchError;
use crate::options::Options;

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// If no merge finishes within this time, none is running.
const STILL: Duration = Duration::from_millis(1_500);

/// Waits until the tails are empty and no merges run, at most `--settle` seconds. Tails are folded
/// after a minute at the latest.
pub fn settle(connection: &mut Connection, options: &Options) -> Result<(), BenchError> {
    let begin = Instant::now();
    let limit = Duration::from_secs(options.settle_seconds);
    eprintln!("waiting until all is folded and merged, at most {limit:?}");
    let (mut last, mut since) = (None, Instant::now());
    while begin.elapsed() < limit {
        let status = connection.run("admin", |writer| writer.int32("serverStatus", 1))?;
        let now = ["folds", "merges", "memory.tails"]
            .map(|name| status.number(&format!("windrow.{name}")));
        if last != Some(now) {
            (last, since) = (Some(now), Instant::now());
        }
        if now[2] == Some(0.0) && since.elapsed() >= STILL {
            break;
        }
        sleep(LOOK_EVERY);
    }
    Ok(())
}
