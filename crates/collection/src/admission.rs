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
const TAILS_FACTOR_MAX: u64 = 3;
/// Writers are delayed when entries are missing for this many times
/// [`EngineOptions::entry_backlog_bytes`](crate::EngineOptions::entry_backlog_bytes).
const BACKLOG_FACTOR_MAX: u64 = 4;
/// The pause of a writer that has just exceeded a limit, in microseconds.
const PAUSE_MIN_MICROS: u64 = 500;
/// The pause of a writer at an [`excess`] of 1 or more, in microseconds.
const PAUSE_MAX_MICROS: u64 = 40_000;
/// At this [`excess`] a writer waits until it falls below, because the entries of large texts take
/// many times the memory of the texts.
const BLOCKING_EXCESS: f64 = 1.0;
/// The longest wait at a large excess, because background work may have failed.
const BLOCKED_TIME_MAX: Duration = Duration::from_secs(10);

/// Returns by how much an amount exceeds a limit, as a multiple of the limit, or 0 if it does not.
fn excess(amount: u64, limit: u64) -> f64 {
    amount.saturating_sub(limit) as f64 / limit.max(1) as f64
}

/// Returns the pause of a writer at this excess.
fn pause(excess: f64) -> Duration {
    let micros = (excess * PAUSE_MAX_MICROS as f64) as u64;
    Duration::from_micros(micros.clamp(PAUSE_MIN_MICROS, PAUSE_MAX_MICROS))
}

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
        let backlog_excess = |backlog| excess(backlog, BACKLOG_FACTOR_MAX * limit);
        let backlog = self.entry_backlog();
        if backlog >= limit || self.state().active.has_joinable_parts() {
            core.background.create_entries.raise();
        }
        if backlog_excess(backlog) <= 0.0 {
            return Ok(false);
        }
        let current_excess = || backlog_excess(self.entry_backlog());
        let background = &core.background;
        wait_while_behind(
            core,
            &current_excess,
            &background.create_entries,
            &background.entries_created,
        )
    }

    /// Returns `true` if a map has so many sections that reads are slow.
    fn wait_for_merges(&self, core: &Core) -> bool {
        let excess = excess(self.chains_max() as u64, CHAINS_MAX);
        if excess > 0.0 {
            core.background.merge.raise();
            delay(core, &core.background.merged, excess);
        }
        excess > 0.0
    }
}

/// Waits until a kind of background work has made progress, but at most the [`pause`] of the
/// excess.
fn delay(core: &Core, progress: &Signal, excess: f64) {
    let _busy = core.counters.delay_time.begin();
    progress.wait(pause(excess));
}

fn wait_for_folds(core: &Core) -> Result<bool, Error> {
    let current_excess = || excess(core.tail_bytes(), TAILS_FACTOR_MAX * core.fold_from_bytes());
    let background = &core.background;
    wait_while_behind(core, &current_excess, &background.fold, &background.folded)
}

/// Delays a writer if background work exceeds its limit: for a pause, or at a large excess until it
/// falls. `work` signals the background work, which signals `progress`. Returns `true` if the
/// writer was delayed.
fn wait_while_behind(
    core: &Core,
    current_excess: &dyn Fn() -> f64,
    work: &Signal,
    progress: &Signal,
) -> Result<bool, Error> {
    let first = current_excess();
    if first <= 0.0 {
        return Ok(false);
    }
    work.raise();
    delay(core, progress, first);
    let since = Instant::now();
    while current_excess() >= BLOCKING_EXCESS
        && since.elapsed() < BLOCKED_TIME_MAX
        && !core.is_closing()
    {
        check().map_err(windrow_mql::Error::from)?;
        work.raise();
        delay(core, progress, BLOCKING_EXCESS);
    }
    Ok(true)
}
