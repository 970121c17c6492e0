//! Agrees with the other servers on the data sets, and adds those that are new.
//!
//! A database stays in the data set that it was created in, so the databases of the existing sets
//! are stored by name. No database may be created in these sets during the change:
//!
//! 1. The server checks as a follower that no new set has the name of an existing database.
//! 2. It stores all sets as a version that says that some are being added. Servers with the old
//!    sets stop as soon as they see it, at most [`CHANGE_WAIT`] later.
//! 3. It takes over the log of each existing set. If a server with the old sets takes it over
//!    afterwards, that server finds the new version before its first write, and fails.
//! 4. It stores the databases of all these sets in a last version, with which servers begin.
//!
//! If the server ends before the last step, the next server continues. Several servers can do this
//! at the same time: they find the same databases, because none of them writes before the last
//! version.

use std::sync::Arc;
use std::thread;

use windrow_document::doc;
use windrow_server::{Log, Placement, StoredPlacement};
use windrow_storage::Bucket;

use super::data_set_location::{DataSetLocation, locations};
use super::options::Options;
use super::placement_check::{CHANGE_WAIT, PlacementCheck};
use super::shared_store::{OpenedEngine, Takeover};
use super::store_options::StoreOptions;
use crate::command_line::Failure;
use crate::data_sets::{
    PlacementComparison, PlacementVersion, compare, find, store as store_placement, unsuitable,
};

/// The data sets of all servers, and their version.
pub struct AgreedPlacement {
    pub placement: Placement,
    pub version: PlacementVersion,
}

/// Stores the data sets that the server was given, if they are new, and returns those of all
/// servers.
///
/// # Errors
/// Fails if other data sets are stored, if a new one has a database of another one, and if the
/// object store or the data folder cannot be used.
pub fn agree_on_placement(
    options: &Options,
    store: &StoreOptions,
    given: &Placement,
    bucket: &Arc<dyn Bucket>,
    log: &Arc<Log>,
) -> Result<AgreedPlacement, Failure> {
    let addition = |placement: Placement, existing, version| {
        Ok::<_, Failure>(Addition {
            options,
            log,
            locations: locations(options, store, &placement)?,
            bucket: bucket.clone(),
            placement,
            existing,
            version,
        })
    };
    loop {
        let compared = compare(bucket.as_ref(), given).map_err(Failure::runtime)?;
        match compared {
            PlacementComparison::New { stored, version } => {
                if let StoredPlacement::Adding {
                    placement,
                    existing,
                } = &stored
                {
                    addition(placement.clone(), *existing, version)?.check_databases()?;
                }
                // Another server may create the version at the same time.
                store_placement(bucket.as_ref(), version, &stored).map_err(Failure::runtime)?;
            }
            PlacementComparison::Adding {
                placement,
                existing,
                version,
            } => addition(placement, existing, version)?.finish()?,
            PlacementComparison::Complete { placement, version } => {
                return Ok(AgreedPlacement { placement, version });
            }
        }
    }
}

/// The addition of data sets.
struct Addition<'a> {
    options: &'a Options,
    log: &'a Arc<Log>,
    bucket: Arc<dyn Bucket>,
    locations: Vec<DataSetLocation>,
    placement: Placement,
    /// As in [`StoredPlacement::Adding`].
    existing: usize,
    version: PlacementVersion,
}

impl Addition<'_> {
    /// Fails if a new set has the whole name of a database of another one. Other servers work
    /// meanwhile, so this is only to find mistakes before these stop.
    fn check_databases(&self) -> Result<(), Failure> {
        let found = self.existing_databases(Takeover::Never)?;
        self.with_databases(&found).map(drop)
    }

    /// Stores the databases of the existing sets. If the new sets cannot be added, they are taken
    /// back. Does nothing if another server has finished first.
    fn finish(self) -> Result<(), Failure> {
        self.log("Data sets are added; servers without them stop");
        thread::sleep(CHANGE_WAIT);
        let found = match self.existing_databases(Takeover::Always) {
            Ok(found) => found,
            Err(failure) => {
                let newest = find(self.bucket.as_ref()).map_err(Failure::runtime)?;
                let is_finished = newest.version != self.version;
                return if is_finished { Ok(()) } else { Err(failure) };
            }
        };
        match self.with_databases(&found) {
            Ok(placement) => {
                self.store(&StoredPlacement::Complete(placement))?;
                self.log("Data sets were added");
                Ok(())
            }
            Err(conflict) => {
                self.take_back(&found)?;
                Err(conflict)
            }
        }
    }

    /// Returns the placement with the databases that exist.
    fn with_databases(&self, found: &[Vec<String>]) -> Result<Placement, Failure> {
        let placement = self.placement.clone().keeping(found);
        placement.map_err(|conflict| Failure::runtime(unsuitable(self.bucket.as_ref(), conflict)))
    }

    /// Returns the databases of each existing set, in the order of the sets.
    fn existing_databases(&self, takeover: Takeover) -> Result<Vec<Vec<String>>, Failure> {
        // A database that is divided is the first set.
        let sets = self.locations.iter().take(self.existing.max(1));
        sets.map(|location| self.databases(location, takeover))
            .collect()
    }

    /// Returns the databases of a set. After a takeover no other server writes to it.
    fn databases(
        &self,
        location: &DataSetLocation,
        takeover: Takeover,
    ) -> Result<Vec<String>, Failure> {
        let check = PlacementCheck::new(self.bucket.clone(), self.version);
        let OpenedEngine { engine, follow } =
            location.open(self.options, &check, takeover, self.log)?;
        let databases = engine.databases();
        drop(follow);
        engine.close().map_err(Failure::runtime)?;
        Ok(databases)
    }

    /// Stores the sets from before again.
    fn take_back(&self, found: &[Vec<String>]) -> Result<(), Failure> {
        if self.existing == 0 {
            return self.store(&StoredPlacement::Undivided);
        }
        let before = self.placement.reduced(self.existing).keeping(found);
        let before = before.map_err(|it| Failure::runtime(unsuitable(self.bucket.as_ref(), it)))?;
        self.store(&StoredPlacement::Complete(before))
    }

    /// Stores the next version, unless another server has.
    fn store(&self, stored: &StoredPlacement) -> Result<(), Failure> {
        let created = store_placement(self.bucket.as_ref(), self.version, stored);
        created.map(drop).map_err(Failure::runtime)
    }

    fn log(&self, message: &str) {
        let sets: Vec<&str> = self
            .placement
            .ids()
            .map(|id| self.placement.name(id))
            .collect();
        let attr = doc! { "dataSets": (sets.join(", ")) };
        self.log.info("REPL", ADDED, "store", message, attr);
    }
}

/// The id of the log lines about new data sets. MongoDB has no such event.
const ADDED: i32 = 9_000_052;
