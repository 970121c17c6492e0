//! The rows of sections.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::HashSet;

use windrow_fold::SectionDescriptor;
use windrow_storage::{Catalog, RowChange, RunId, StorageError};

use super::build::run_of_share;
use super::{SECTION, SHARE, damaged, key, numbers, numbers_of};
use crate::ids::MapId;

/// A section of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapSection {
    pub map: MapId,
    pub descriptor: SectionDescriptor,
}

/// Returns the change that adds a section to a map.
pub fn put_section(map: MapId, section: &SectionDescriptor) -> RowChange {
    RowChange::put(section_key(map, section), section.encode())
}

/// Returns the change that removes a section from a map.
pub fn delete_section(map: MapId, section: &SectionDescriptor) -> RowChange {
    RowChange::delete(section_key(map, section))
}

fn section_key(map: MapId, section: &SectionDescriptor) -> Vec<u8> {
    key(SECTION, &[map.0, section.run.0, section.root_offset])
}

/// Returns the sections of a map.
pub fn sections_of(map: MapId, catalog: &Catalog) -> Result<Vec<SectionDescriptor>, StorageError> {
    let rows = catalog.scan(&key(SECTION, &[map.0]));
    rows.iter().map(|(_, value)| read_section(value)).collect()
}

/// Returns the sections of all maps.
pub fn all_sections(catalog: &Catalog) -> Result<Vec<MapSection>, StorageError> {
    let rows = catalog.scan(&[SECTION]);
    rows.iter()
        .map(|(key, value)| {
            let [map, _, _] = numbers_of(key)?;
            Ok(MapSection {
                map: MapId(map),
                descriptor: read_section(value)?,
            })
        })
        .collect()
}

fn read_section(value: &[u8]) -> Result<SectionDescriptor, StorageError> {
    SectionDescriptor::decode(value).ok_or_else(|| damaged("a section's row"))
}

/// Returns the run of the section whose row has this key, or `None` for other rows.
pub fn run_of(key: &[u8]) -> Option<RunId> {
    if key.first() != Some(&SECTION) {
        return None;
    }
    let [_, run, _] = numbers(key)?;
    Some(RunId(run))
}

/// Returns the runs that the catalog names: those of sections, and those reserved for shares.
pub fn named_runs(catalog: &Catalog) -> HashSet<RunId> {
    let (sections, shares) = (catalog.scan(&[SECTION]), catalog.scan(&[SHARE]));
    let of_sections = sections.iter().filter_map(|(key, _)| run_of(key));
    let of_shares = shares.iter().filter_map(|(key, _)| run_of_share(key));
    of_sections.chain(of_shares).collect()
}
