//! The location of a data set, and its share of the server's memory and cache.

use std::path::PathBuf;
use std::sync::Arc;

use windrow_server::{DataSetId, Log, Placement};

use super::engines::{EngineSource, open_engine};
use super::options::Options;
use super::placement_check::PlacementCheck;
use super::shared_store::{OpenedEngine, SharedDatabase, Takeover};
use super::store_options::StoreOptions;
use crate::command_line::Failure;
use crate::data_sets::data_set_url;
use crate::memory::MEMORY_BYTES_MIN;

/// The location of a data set, and its share of memory and cache.
pub struct DataSetLocation {
    pub name: String,
    folder: PathBuf,
    pub store: StoreOptions,
    memory_bytes: u64,
}

/// Returns the locations of all data sets, among which memory and cache are divided.
pub fn locations(
    options: &Options,
    store: &StoreOptions,
    placement: &Placement,
) -> Result<Vec<DataSetLocation>, Failure> {
    let count = placement.count() as u64;
    // The front state also has an engine.
    let memory_bytes = options.memory_bytes.saturating_sub(MEMORY_BYTES_MIN) / count;
    if memory_bytes < MEMORY_BYTES_MIN {
        let needed = (count + 1) * (MEMORY_BYTES_MIN >> 20);
        return Err(Failure::Usage(format!(
            "{count} data sets need a --memory of {needed}MiB at least"
        )));
    }
    let location = |id: DataSetId| {
        let name = placement.name(id).to_owned();
        // A database that was divided continues with its copy.
        DataSetLocation {
            folder: if placement.is_at_prefix(id) {
                options.data_folder.clone()
            } else {
                options.data_folder.join("sets").join(&name)
            },
            store: StoreOptions {
                url: data_set_url(&store.url, placement, id),
                cache_bytes: store.cache_bytes / count,
                data_sets: None,
                ..store.clone()
            },
            memory_bytes,
            name,
        }
    };
    Ok(placement.ids().map(location).collect())
}

impl DataSetLocation {
    /// Opens the engine of the data set.
    ///
    /// # Errors
    /// Fails as [`open_engine`] does.
    pub fn open(
        &self,
        options: &Options,
        placement: &PlacementCheck,
        takeover: Takeover,
        log: &Arc<Log>,
    ) -> Result<OpenedEngine, Failure> {
        let source = EngineSource {
            folder: &self.folder,
            memory_bytes: self.memory_bytes,
            shared: Some(SharedDatabase {
                store: &self.store,
                placement,
                takeover,
            }),
        };
        open_engine(options, source, log)
    }
}
