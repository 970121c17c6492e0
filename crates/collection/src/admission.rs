//! Letting writers wait where background work falls behind.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::collection::Collection;
use crate::core::{Call, Core};
use crate::error::Error;
use crate::options::Background;

/// So many chains of sections a map should have at most: about three tiers of eight.
const CHAINS_MAX: u64 = 28;
/// Tails are at most so many times as large as where they are folded before writers wait: what comes
/// while a fold runs has room.
const TAILS_MAX: u64 = 3;
/// Commits of which no entries are made yet are at most so many times as large as where that begins.
const UNSETTLED_MAX: u64 = 4;

/// How far `held` is above a limit, in limits.
fn excess(held: u64, limit: u64) -> f64 {
    held.saturating_sub(limit) as f64 / limit.max(1) as f64
}

/// The longest that a writer waits at once.
fn pause(behind: f64) -> Duration {
    Duration::from_micros(((behind * 40_000.0) as u64).clamp(500, 40_000))
}

impl Collection {
    /// Lets a writer wait where background work falls behind: a little where it is a little behind,
    /// more the farther, so that writers slow down instead of stopping. Three things are watched:
    /// records of which a reader would have to make entries first, tails that wait to be folded, and
    /// sections that wait to be merged.
    pub(crate) fn admit(&self) -> Result<(), Error> {
        let core = self.core()?;
        if core.options.background == Background::Caller {
            return Ok(());
        }
        let waited = [
            self.wait_for_entries(&core),
            wait_for_folds(&core),
            self.wait_for_merges(&core),
        ];
        if waited.contains(&true) {
            core.counters.delayed_writes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn wait_for_entries(&self, core: &Core) -> bool {
        let unsettled = self.bytes_unsettled();
        let limit = core.options.settle_bytes;
        if unsettled >= limit || self.state().active.is_untidy() {
            core.background.settle.call();
        }
        let behind = excess(unsettled, UNSETTLED_MAX * limit);
        if behind > 0.0 {
            delay(core, &core.background.settled, behind);
        }
        behind > 0.0
    }

    /// Past so many sections readers would have to look into too many.
    fn wait_for_merges(&self, core: &Core) -> bool {
        let behind = excess(self.chains_max() as u64, CHAINS_MAX);
        if behind > 0.0 {
            core.background.merge.call();
            delay(core, &core.background.merged, behind);
        }
        behind > 0.0
    }
}

/// Lets the writer wait until a kind of background work has made progress, but not for long.
fn delay(core: &Core, progress: &Call, behind: f64) {
    let _busy = core.counters.delaying.begin();
    progress.wait(pause(behind));
}

fn wait_for_folds(core: &Core) -> bool {
    let behind = excess(core.tail_bytes(), TAILS_MAX * core.fold_from_bytes());
    if behind > 0.0 {
        core.background.fold.call();
        delay(core, &core.background.folded, behind);
    }
    behind > 0.0
}
