//! Ends a worker process that spends too much time on a file.

use std::cell::{Cell, RefMut};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Exits the process if a file takes too long. The owner kills a late worker, but workers must also
/// end if their owner was killed.
pub(crate) struct Watchdog {
    /// Remaining ticks for the current file. Zero between files.
    ticks_left: Arc<AtomicU64>,
    ticks_max: Cell<u64>,
}

impl Watchdog {
    const TICK: Duration = Duration::from_millis(250);

    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let ticks_left = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&ticks_left);
        let watch = move || {
            loop {
                std::thread::sleep(Self::TICK);
                let tick = |ticks: u64| ticks.checked_sub(1);
                let before = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, tick);
                if before == Ok(1) {
                    std::process::exit(1);
                }
            }
        };
        std::thread::Builder::new()
            .name("watchdog".into())
            .stack_size(64 << 10)
            .spawn(watch)?;
        Ok(Watchdog {
            ticks_left,
            ticks_max: Cell::new(0),
        })
    }

    /// Starts the time limit of a file.
    pub(crate) fn begin_file(&self, timeout: Duration) {
        let ticks = timeout.as_millis() / Self::TICK.as_millis() + 2;
        self.ticks_max.set(u64::try_from(ticks).unwrap_or(u64::MAX));
        self.resume();
    }

    /// Restarts the time limit of the current file.
    pub(crate) fn resume(&self) {
        self.ticks_left
            .store(self.ticks_max.get(), Ordering::Relaxed);
    }

    /// Stops watching until [`Watchdog::resume`].
    fn pause(&self) {
        self.ticks_left.store(0, Ordering::Relaxed);
    }
}

/// An output that pauses the watchdog while it blocks.
pub(crate) struct WatchedOutput<'w, W> {
    pub(crate) output: RefMut<'w, W>,
    pub(crate) watchdog: &'w Watchdog,
}

impl<W: Write> Write for WatchedOutput<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.watchdog.pause();
        let written = self.output.write(bytes);
        self.watchdog.resume();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.watchdog.pause();
        self.output.flush()
    }
}
