//! Letting writers wait where background work falls behind.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use windrow_mql::interrupt::check;

use crate::collection::Collection;
use crate::core::{Core, Signal};
use crate::error::Error;
use crate::options::Background;

/// So many chains of sections a map should have at most: about three tiers of eight.
const CHAINS_MAX: u64 = 28;
/// Tails are at most so many times as large as where they are folded before writers wait: what comes
/// while a fold runs has room.
const TAILS_MAX: u64 = 3;
/// Commits of which no entries are made yet are at most so many times as large as where that begins.
const BACKLOG_MAX: u64 = 4;

/// How far `held` is above a limit, in limits.
fn excess(held: u64, limit: u64) -> f64 {
    held.saturating_sub(limit) as f64 / limit.max(1) as f64
}

/// Returns how long a writer waits that is so far above a limit.
fn pause(behind: f64) -> Duration {
    Duration::from_micros(((behind * 40_000.0) as u64).clamp(500, PAUSE_MAX_MICROS))
}

const PAUSE_MAX_MICROS: u64 = 40_000;
/// A writer that is this far above a limit waits until it is not: the entries of large texts take many times
/// their memory.
const STOPPED_FROM: f64 = 1.0;
/// It does not wait longer than this: background work may have failed.
const STOPPED_MAX: Duration = Duration::from_secs(10);

impl Collection {
    /// Delays a writer if background work is behind, the longer the farther it is behind, so that writers
    /// slow down. They stop only if memory would not suffice. Three kinds of work are watched: making the
    /// entries of commits, folding tails, and merging sections.
    ///
    /// # Errors
    /// Fails if the operation is interrupted while it waits.
    pub(crate) fn admit(&self) -> Result<(), Error> {
        let core = self.core()?;
        if core.options.background == Background::Caller {
            return Ok(());
        }
        let waited = [
            self.wait_for_entries(&core)?,
            wait_for_folds(&core)?,
            self.wait_for_merges(&core),
        ];
        if waited.contains(&true) {
            core.counters.delayed_writes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn wait_for_entries(&self, core: &Core) -> Result<bool, Error> {
        let limit = core.options.entry_backlog_bytes;
        let behind = |backlog| excess(backlog, BACKLOG_MAX * limit);
        let backlog = self.entry_backlog();
        if backlog >= limit || self.state().active.has_joinable_parts() {
            core.background.create_entries.raise();
        }
        if behind(backlog) <= 0.0 {
            return Ok(false);
        }
        let behind = || behind(self.entry_backlog());
        let background = &core.background;
        wait_while_behind(
            core,
            &behind,
            &background.create_entries,
            &background.entries_created,
        )
    }

    /// Past so many sections readers would have to look into too many.
    fn wait_for_merges(&self, core: &Core) -> bool {
        let behind = excess(self.chains_max() as u64, CHAINS_MAX);
        if behind > 0.0 {
            core.background.merge.raise();
            delay(core, &core.background.merged, behind);
        }
        behind > 0.0
    }
}

/// Lets the writer wait until a kind of background work has made progress, but not for long.
fn delay(core: &Core, progress: &Signal, behind: f64) {
    let _busy = core.counters.delaying.begin();
    progress.wait(pause(behind));
}

fn wait_for_folds(core: &Core) -> Result<bool, Error> {
    let behind = || excess(core.tail_bytes(), TAILS_MAX * core.fold_from_bytes());
    let background = &core.background;
    wait_while_behind(core, &behind, &background.fold, &background.folded)
}

/// Lets the writer wait if it is `behind`: for a pause, or until it is not far behind any more. Returns
/// whether it waited. `work` calls the background work, which calls `progress`.
fn wait_while_behind(
    core: &Core,
    behind: &dyn Fn() -> f64,
    work: &Signal,
    progress: &Signal,
) -> Result<bool, Error> {
    let first = behind();
    if first <= 0.0 {
        return Ok(false);
    }
    work.raise();
    delay(core, progress, first);
    let since = Instant::now();
    while behind() >= STOPPED_FROM && since.elapsed() < STOPPED_MAX && !core.is_closing() {
        check()?;
        work.raise();
        delay(core, progress, STOPPED_FROM);
    }
    Ok(true)
}
