//! Opens and closes the data sets of a server while it runs.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use windrow_collection::Engine;
use windrow_wire::ErrorCode;

use crate::admission::STACK_BYTES;
use crate::expiry::run_ttl_monitor;
use crate::housekeeping::run_data_housekeeping;
use crate::placement::DataSetId;
use crate::router::{Handover, Router};
use crate::search_index_renewal::run_search_index_renewal;
use crate::state::{PlacedSet, State};
use crate::stop::Stop;

/// Opens the data sets of a server.
#[derive(Clone)]
pub struct DataSetHost {
    pub(crate) front: Arc<State>,
    pub(crate) router: Arc<Router>,
}

/// An open data set.
pub struct OpenDataSet {
    host: DataSetHost,
    set: DataSetId,
    state: Arc<State>,
    threads: Vec<JoinHandle<()>>,
}

/// The longest wait for commands and threads that use a data set which is closed.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(30);

impl DataSetHost {
    /// Serves a data set from its engine.
    ///
    /// # Errors
    /// Fails if the system has no threads left.
    pub fn open(&self, set: DataSetId, engine: Arc<Engine>) -> io::Result<OpenDataSet> {
        let placed = PlacedSet {
            id: set,
            placement: self.router.placement().clone(),
        };
        let state = Arc::new(State::new_data_set(&self.front, placed, engine));
        state.apply_parameters();
        let spawn = |name: &str, run: fn(&State)| {
            let state = Arc::clone(&state);
            let thread = thread::Builder::new().name(name.into());
            let thread = thread.stack_size(STACK_BYTES);
            thread.spawn(move || run(&state))
        };
        let threads = vec![
            spawn("TTLMonitor", run_ttl_monitor)?,
            spawn("housekeeping", run_data_housekeeping)?,
            spawn("SearchIndexRenewal", run_search_index_renewal)?,
        ];
        self.router.set_member(set, Some(Arc::clone(&state)));
        Ok(OpenDataSet {
            host: self.clone(),
            set,
            state,
            threads,
        })
    }

    /// Returns the data from which the servers decide on the primary of a data set.
    pub fn handover(&self, set: DataSetId) -> Handover {
        self.router.handover(set)
    }

    /// Returns the handle that stops the server.
    pub fn stop(&self) -> Arc<Stop> {
        Arc::clone(&self.front.stop)
    }
}

impl OpenDataSet {
    /// Returns the state of the data set.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Returns the handle that closes the data set.
    pub fn stop(&self) -> Arc<Stop> {
        Arc::clone(&self.state.stop)
    }

    /// Ends the commands that use the data set, closes its engine, and gives up its state.
    ///
    /// # Errors
    /// Fails as [`Engine::close`] does.
    pub fn close(self) -> Result<(), windrow_collection::Error> {
        self.host.router.set_member(self.set, None);
        self.state.stop.request();
        let deadline = Instant::now() + CLOSE_WAIT_MAX;
        let code = if self.host.front.stop.is_requested() {
            ErrorCode::InterruptedAtShutdown
        } else {
            ErrorCode::InterruptedDueToReplStateChange
        };
        let is_used = || {
            let running = self.threads.iter().filter(|thread| !thread.is_finished());
            Arc::strong_count(&self.state) > 1 + running.count()
        };
        while is_used() && Instant::now() < deadline {
            let is_own =
                |operation: &crate::operations::Operation| operation.data_set == Some(self.set);
            self.state.operations.kill_where(code, is_own);
            thread::sleep(Duration::from_millis(5));
        }
        // This ends an index build that runs in a thread.
        let closed = self.state.services.engine.close();
        for thread in self.threads {
            // The panic of a thread is already logged.
            drop(thread.join());
        }
        closed
    }
}
