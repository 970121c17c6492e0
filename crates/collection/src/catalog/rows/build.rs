//! The rows of unfinished index builds: the ranges of records that are done, and the shares that
//! followers build.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use windrow_document::{Value, ValueRef, doc};
use windrow_storage::{Catalog, RowChange, RunId, StorageError};

use super::{BUILD, SHARE, damaged, key, numbers, numbers_of, read, row};
use crate::ids::MapId;

/// The records from `first` up to, but without, `end`. The bounds are those of
/// [`Reader::range`](crate::read::Reader::range), which may be truncated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRange {
    pub first: Vec<u8>,
    pub end: Vec<u8>,
}

/// Returns the row that says that sections of an index cover a range.
pub fn put_built_range(map: MapId, range: &RecordRange) -> RowChange {
    let mut key = key(BUILD, &[map.0]);
    key.extend_from_slice(&range.first);
    RowChange::put(key, range.end.clone())
}

/// Returns the ranges that sections of an unfinished build cover, in order.
pub fn built_ranges(map: MapId, catalog: &Catalog) -> Vec<RecordRange> {
    let prefix = key(BUILD, &[map.0]);
    let rows = catalog.scan(&prefix).into_iter();
    rows.map(|(mut key, end)| RecordRange {
        first: key.split_off(prefix.len()),
        end: end.to_vec(),
    })
    .collect()
}

/// Returns the keys of the rows of an unfinished build.
pub fn build_keys(map: MapId, catalog: &Catalog) -> Vec<Vec<u8>> {
    let rows = catalog.scan(&key(BUILD, &[map.0])).into_iter();
    let mut keys: Vec<Vec<u8>> = rows.map(|(key, _)| key).collect();
    keys.extend(share_keys(map, catalog));
    keys
}

/// The share of an index build that a follower builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareRow {
    /// The id of the follower's process.
    pub builder: [u8; 16],
    /// The indexes that are built together.
    pub maps: Vec<MapId>,
    /// The records that it reads.
    pub range: RecordRange,
}

impl ShareRow {
    /// Returns the key of the share that is written as `run`. `first` is the map of the first of
    /// its indexes.
    pub fn key(first: MapId, run: RunId) -> Vec<u8> {
        key(SHARE, &[first.0, run.0])
    }

    /// Returns the change that writes the row.
    pub fn put(&self, run: RunId) -> RowChange {
        let binary = |bytes: &[u8]| Value::Binary {
            subtype: 0,
            bytes: bytes.to_vec(),
        };
        let maps: Vec<i64> = self.maps.iter().map(|map| map.0 as i64).collect();
        let value = doc! {
            "builder": (binary(&self.builder)), "maps": maps, "from": (binary(&self.range.first)),
            "end": (binary(&self.range.end)),
        };
        let first = self.maps.first().copied().unwrap_or(MapId(0));
        row(ShareRow::key(first, run), value)
    }

    fn read(value: &[u8]) -> Result<ShareRow, StorageError> {
        let document = read(value)?;
        let binary = |name: &str| match document.get(name) {
            Some(ValueRef::Binary { bytes, .. }) => Ok(bytes),
            _ => Err(damaged(&format!("a row without '{name}'"))),
        };
        let builder = binary("builder")?.first_chunk::<16>().copied();
        let maps = document.get("maps").and_then(ValueRef::as_array);
        let maps = maps.ok_or_else(|| damaged("a row without 'maps'"))?;
        let map = |value: ValueRef<'_>| value.as_whole().map(|id| MapId(id as u64));
        let maps: Option<Vec<MapId>> = maps.iter().map(map).collect();
        Ok(ShareRow {
            builder: builder.ok_or_else(|| damaged("a row with a wrong 'builder'"))?,
            maps: maps.ok_or_else(|| damaged("a row with wrong 'maps'"))?,
            range: RecordRange {
                first: binary("from")?.to_vec(),
                end: binary("end")?.to_vec(),
            },
        })
    }
}

/// Returns the keys of the rows of the shares whose first index has this map.
pub fn share_keys(map: MapId, catalog: &Catalog) -> Vec<Vec<u8>> {
    let rows = catalog.scan(&key(SHARE, &[map.0])).into_iter();
    rows.map(|(key, _)| key).collect()
}

/// Returns `true` if followers build shares.
pub fn has_shares(catalog: &Catalog) -> bool {
    !catalog.scan(&[SHARE]).is_empty()
}

/// A share in the catalog.
#[derive(Debug)]
pub struct Share {
    /// The key of its row, which exists while the primary needs the share.
    pub key: Vec<u8>,
    /// The run that is reserved for it.
    pub run: RunId,
    pub row: ShareRow,
}

/// Returns the shares in the catalog.
pub fn shares(catalog: &Catalog) -> Result<Vec<Share>, StorageError> {
    let rows = catalog.scan(&[SHARE]).into_iter();
    rows.map(|(key, value)| {
        let [_, run] = numbers_of(&key)?;
        let (run, row) = (RunId(run), ShareRow::read(&value)?);
        Ok(Share { key, run, row })
    })
    .collect()
}

/// Returns the run that the row of a share reserves, or `None` for other rows.
pub(super) fn run_of_share(key: &[u8]) -> Option<RunId> {
    if key.first() != Some(&SHARE) {
        return None;
    }
    let [_, run] = numbers(key)?;
    Some(RunId(run))
}
