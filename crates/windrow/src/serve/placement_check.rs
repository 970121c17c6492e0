//! Checks that the data sets in the object store are still those that a server was started with.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use windrow_collection::StorageError;
use windrow_server::Stop;
use windrow_storage::{Bucket, RetryPolicy, retry};

use crate::command_line::Failure;
use crate::data_sets::PlacementVersion;

/// The interval at which a server looks for a change of the data sets.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time after which no server works with the data sets from before a change: several intervals
/// and the time of a request.
pub const CHANGE_WAIT: Duration = Duration::from_secs(4);

/// The data sets that a server was started with.
#[derive(Clone)]
pub struct PlacementCheck {
    bucket: Arc<dyn Bucket>,
    version: PlacementVersion,
}

impl PlacementCheck {
    /// `bucket` has the objects that list the data sets.
    pub fn new(bucket: Arc<dyn Bucket>, version: PlacementVersion) -> PlacementCheck {
        PlacementCheck { bucket, version }
    }

    /// Fails if the data sets have changed.
    ///
    /// # Errors
    /// Fails also if the object store fails for longer than `retry_policy` allows.
    pub fn check(&self, retry_policy: &dyn RetryPolicy) -> Result<(), StorageError> {
        retry(retry_policy, || {
            self.version.check_newest(self.bucket.as_ref())
        })
    }

    /// Stops the server when the data sets change: it would look for databases in other sets than
    /// servers with the new ones.
    ///
    /// # Errors
    /// Fails if the system has no threads left.
    pub fn monitor(self, stop: Arc<Stop>) -> Result<PlacementMonitor, Failure> {
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new().name("data sets".to_owned());
        let thread = thread.spawn(move || {
            while !stop.wait(INTERVAL) {
                let checked = self.version.check_newest(self.bucket.as_ref());
                if let Err(error @ StorageError::Unsuitable { .. }) = checked {
                    stop.request();
                    return Some(error);
                }
            }
            None
        });
        Ok(PlacementMonitor {
            thread: thread.map_err(Failure::runtime)?,
            stop: stopping,
        })
    }
}

/// A thread that looks for a change of the data sets.
pub struct PlacementMonitor {
    thread: JoinHandle<Option<StorageError>>,
    stop: Arc<Stop>,
}

impl PlacementMonitor {
    /// Ends the thread. To be called after the server has ended.
    ///
    /// # Errors
    /// Fails if the data sets have changed.
    pub fn end(self) -> Result<(), Failure> {
        self.stop.request();
        match self.thread.join() {
            Ok(Some(change)) => Err(Failure::runtime(change)),
            // The panic of a thread is already logged.
            Ok(None) | Err(_) => Ok(()),
        }
    }
}
