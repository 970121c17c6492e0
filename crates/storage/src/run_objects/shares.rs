//! Shares of index builds. The primary gives a share to a follower, with the id of the run that the
//! follower writes. The follower announces the state of its work in `shares/{id of the run}`. The
//! layout is in docs/format.md.
//!
//! A run that was given away can be uploaded after the primary has stopped to wait for it. The
//! primary therefore deletes it again later, and the next takeover deletes all runs of earlier
//! epochs that the catalog does not name.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;

use super::{RunObjects, epoch_of, name, run_from_name};
use crate::bucket::{RetryPolicy, retry};
use crate::checksum::checksum;
use crate::error::StorageError;
use crate::fields::u64_at;
use crate::run_id::RunId;

const REPORTS: &str = "shares";

fn report_name(run: RunId) -> String {
    format!("{REPORTS}/{:020}", run.0)
}

/// The shares of index builds that this server builds, or has given to others.
#[derive(Default)]
pub(super) struct Shares {
    /// The runs that this server writes for the primary.
    built: Mutex<HashSet<RunId>>,
    /// Shares that this primary does not wait for any more.
    ended: Mutex<Vec<EndedShare>>,
}

impl Shares {
    pub fn builds(&self, run: RunId) -> bool {
        self.built.lock().contains(&run)
    }
}

/// A share that the primary does not wait for any more.
struct EndedShare {
    run: RunId,
    /// False if the catalog names the run, or did.
    is_garbage: bool,
    since: Instant,
    /// The next deletion, counted from `since`.
    due: Duration,
}

/// Repeats failed requests for the run of a share until the share is ended.
pub(super) struct WhileBuilt<'o> {
    pub objects: &'o RunObjects,
    /// `None`: the run belongs to no share.
    pub share: Option<RunId>,
}

impl RetryPolicy for WhileBuilt<'_> {
    fn should_retry(&self, attempt: u32, error: &StorageError) -> bool {
        let shares = &self.objects.shares;
        self.share.is_none_or(|run| shares.builds(run))
            && self.objects.retry_policy.should_retry(attempt, error)
    }
}

impl RunObjects {
    /// Allows the upload of a run that the primary has given to this server.
    pub fn begin_share(&self, run: RunId) {
        self.shares.built.lock().insert(run);
    }

    /// Forbids the upload of such a run.
    pub fn leave_share(&self, run: RunId) {
        self.shares.built.lock().remove(&run);
    }

    /// Forbids the upload of all such runs. Requests in progress are not repeated.
    pub fn leave_shares(&self) {
        self.shares.built.lock().clear();
    }

    /// Announces the state of a share that this server builds.
    pub fn report(&self, run: RunId, report: &[u8]) -> Result<(), StorageError> {
        let mut bytes = BytesMut::with_capacity(report.len() + 8);
        bytes.put_slice(report);
        bytes.put_u64_le(checksum(run.0, report));
        let bytes = bytes.freeze();
        let retry_policy = WhileBuilt {
            objects: self,
            share: Some(run),
        };
        retry(&retry_policy, || {
            self.bucket.put(&report_name(run), bytes.clone())
        })
    }

    /// Returns what the builder of a share has announced last. `None` if it has announced nothing.
    pub fn report_of(&self, run: RunId) -> Result<Option<Bytes>, StorageError> {
        let name = report_name(run);
        let Some(mut bytes) = self.bucket.get(&name)? else {
            return Ok(None);
        };
        let damaged = || {
            let what = "it is not the report of a share";
            StorageError::damaged(self.bucket.place(&name), what)
        };
        let sum = bytes.split_off(bytes.len().checked_sub(8).ok_or_else(damaged)?);
        if u64_at(&sum, 0) != Some(checksum(run.0, &bytes)) {
            return Err(damaged());
        }
        Ok(Some(bytes))
    }

    /// Records that this primary does not wait for a share any more. `is_garbage`: the catalog does
    /// not name its run.
    pub fn end_share(&self, run: RunId, is_garbage: bool) {
        self.shares.ended.lock().push(EndedShare {
            run,
            is_garbage,
            since: Instant::now(),
            due: Duration::ZERO,
        });
    }

    /// Deletes what ended shares have left. A builder can be late, so this is repeated: after
    /// `retention`, after growing times, and after `lifetime`, when a silent server counts as gone.
    pub fn delete_ended_shares(
        &self,
        retention: Duration,
        lifetime: Duration,
    ) -> Result<(), StorageError> {
        let mut due = Vec::new();
        self.shares.ended.lock().retain_mut(|it| {
            let age = it.since.elapsed();
            if age < it.due.max(retention) {
                return true;
            }
            due.push((it.run, it.is_garbage));
            let is_last = age >= lifetime;
            it.due = lifetime.min(age.max(Duration::from_secs(1)).saturating_mul(2));
            !is_last
        });
        for (run, is_garbage) in due {
            if is_garbage {
                retry(self.retry_policy.as_ref(), || {
                    self.bucket.delete(&name(run))
                })?;
            }
            self.delete_report(run)?;
        }
        Ok(())
    }

    /// Deletes the reports of shares of earlier epochs.
    pub(super) fn delete_earlier_reports(&self, epoch: u64) -> Result<(), StorageError> {
        let names = retry(self.retry_policy.as_ref(), || self.bucket.list(REPORTS, ""))?;
        let found = names.iter().filter_map(|name| run_from_name(name));
        let mut earlier = found.filter(|run| epoch_of(*run) < epoch);
        earlier.try_for_each(|run| self.delete_report(run))
    }

    fn delete_report(&self, run: RunId) -> Result<(), StorageError> {
        let name = report_name(run);
        retry(self.retry_policy.as_ref(), || self.bucket.delete(&name))
    }
}
