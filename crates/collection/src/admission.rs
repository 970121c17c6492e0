//! Backpressure: delays writers when background work falls behind.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use windrow_mql::interrupt::check;

use crate::collection::Collection;
use crate::core::{Core, Signal};
use crate::error::Error;
use crate::options::Background;

/// The number of chains of sections per map above which writers are delayed: about three tiers of
/// eight.
const CHAINS_MAX: u64 = 28;
/// Writers are delayed when tails take this many times the memory at which a fold starts. The
/// difference leaves room for writes during the fold.
const TAILS_MAX: u64 = 3;
/// Writers are delayed when this many times the backlog bytes wait for the creation of entries.
const BACKLOG_MAX: u64 = 4;

/// Returns by how many limits `held` exceeds a limit.
fn excess(held: u64, limit: u64) -> f64 {
    held.saturating_sub(limit) as f64 / limit.max(1) as f64
}

/// Returns the delay of a writer at this excess.
fn pause(behind: f64) -> Duration {
    Duration::from_micros(((behind * 40_000.0) as u64).clamp(500, PAUSE_MAX_MICROS))
}

const PAUSE_MAX_MICROS: u64 = 40_000;
/// At this excess a writer waits until it falls below, because the entries of large texts take many
/// times the memory of the texts.
const STOPPED_FROM: f64 = 1.0;
/// The maximal wait, as background work may have failed.
const STOPPED_MAX: Duration = Duration::from_secs(10);

impl Collection {
    /// Delays a writer if background work is behind. The delay grows with the backlog, so writers
    /// slow down gradually; they stop only if memory would run out. Three kinds of work count:
    /// creating entries, folding tails, and merging sections.
    ///
    /// # Errors
    ///
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

    /// Returns `true` if a map has so many sections that reads are slow.
    fn wait_for_merges(&self, core: &Core) -> bool {
        let behind = excess(self.chains_max() as u64, CHAINS_MAX);
        if behind > 0.0 {
            core.background.merge.raise();
            delay(core, &core.background.merged, behind);
        }
        behind > 0.0
    }
}

/// Waits until a kind of background work has made progress, up to a limit.
fn delay(core: &Core, progress: &Signal, behind: f64) {
    let _busy = core.counters.delaying.begin();
    progress.wait(pause(behind));
}

fn wait_for_folds(core: &Core) -> Result<bool, Error> {
    let behind = || excess(core.tail_bytes(), TAILS_MAX * core.fold_from_bytes());
    let background = &core.background;
    wait_while_behind(core, &behind, &background.fold, &background.folded)
}

/// Delays the writer if it is `behind`: for a pause, or at a large excess until it falls. Returns
/// whether it waited. `work` signals the background work, which signals `progress`.
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
        check().map_err(windrow_mql::Error::from)?;
        work.raise();
        delay(core, progress, STOPPED_FROM);
    }
    Ok(true)
}
