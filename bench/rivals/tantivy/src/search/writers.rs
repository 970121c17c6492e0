//! Writers beside the queries. A commit every second makes the documents visible, as often as
//! tantivy's index writer is commonly committed; Windrow's are visible after each insert.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tantivy::{IndexReader, IndexWriter, ReloadPolicy};

use crate::Failure;
use crate::build::{self, BuiltIndex, Settings};

/// The documents that a writer adds in a second.
const RATE: u64 = 1_000;
const TICK: Duration = Duration::from_millis(100);
const TICKS_OF_A_COMMIT: u64 = 10;

/// Calls `work` while the writers add documents, and prints their rate.
pub fn beside(
    built: &BuiltIndex,
    settings: &Settings,
    bodies: &[String],
    writers: u64,
    work: impl FnOnce(&IndexReader) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let reader = built.index.reader_builder();
    let reader = reader.reload_policy(ReloadPolicy::Manual).try_into()?;
    let mut writer = built
        .index
        .writer_with_num_threads(1, settings.memory_bytes)?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (done, reader) = (&done, &reader);
        let writing = scope.spawn(move || -> Result<f64, Failure> {
            let each = writers * RATE * TICK.as_millis() as u64 / 1_000;
            let start = Instant::now();
            let mut tick = 0;
            while tick == 0 || !done.load(Ordering::Acquire) {
                tick += 1;
                add(&mut writer, built, bodies, ((tick - 1) * each, each))?;
                if tick % TICKS_OF_A_COMMIT == 0 {
                    writer.commit()?;
                    reader.reload()?;
                }
                let next = TICK * tick as u32;
                thread::sleep(next.saturating_sub(start.elapsed()));
            }
            Ok((tick * each) as f64 / start.elapsed().as_secs_f64())
        });
        let result = work(reader);
        done.store(true, Ordering::Release);
        let rate = writing.join().map_err(|_| "the writer ended early")??;
        println!("writing.rate {rate:.3}");
        result
    })
}

fn add(
    writer: &mut IndexWriter,
    built: &BuiltIndex,
    bodies: &[String],
    (first, count): (u64, u64),
) -> Result<(), Failure> {
    let known = bodies.len() as u64;
    for number in first..first + count {
        let text = &bodies[(number % known) as usize];
        let fields = (built.id, built.body);
        writer.add_document(build::document(fields, known + number, text))?;
    }
    Ok(())
}
