//! The catalog rows that describe collections, indexes and sections, and their encodings.
//!
//! ```text
//! "c" collection id u64 BE                        BSON: db, coll, uuid, options, records (map id)
//! "o" collection id | number, u64 BE each         a piece of options that do not fit into "c"
//! "f" collection id u64 BE                        BSON: position, count, bytes, next
//! "i" collection id u64 BE | map id u64 BE        BSON: spec, ready, since
//! "j" map id | number, u64 BE each                a piece of a specification that does not fit into
//!                                                 "i"
//! "s" map id | run | root offset, u64 BE each     a section's descriptor
//! "b" map id u64 BE | start of range              end of range: an unfinished build has read it.
//!                                                 Bounds are record ids u64 BE; in a clustered
//!                                                 collection truncated keys
//! "g" map id | run, u64 BE each                   BSON: builder, maps, from, end: a follower
//!                                                 builds this range of records as the run
//! "t" collection id u64 BE                        empty: a transaction creates the collection, and
//!                                                 may not have committed
//! "h" collection id | until, u64 BE each          BSON: db, coll, uuid (the name up to `until`)
//! "e"                                             BSON: the latest catalog event, see `ddl_event`
//! "k"                                             empty: the log is retained for change streams
//! "n"                                             BSON: next (the next unused id)
//! "p"                                             BSON: position (everything up to it is folded)
//! ```
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod build;
mod collection;
mod index;
mod pieces;
mod section;

pub use build::{
    RecordRange, Share, ShareRow, build_keys, built_ranges, has_shares, put_built_range,
    share_keys, shares,
};
pub use collection::{
    CollectionRow, FoldedRow, NamedRow, creations, delete_creation, put_creation,
};
pub use index::IndexRow;
pub use section::{
    MapSection, all_sections, delete_section, named_runs, put_section, run_of, sections_of,
};

use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_fold::Position;
use windrow_storage::{Catalog, RowChange, StorageError};

use crate::ids::{CollectionId, MapId, NextId};

const COLLECTION: u8 = b'c';
const OPTIONS: u8 = b'o';
const FOLDED: u8 = b'f';
const INDEX: u8 = b'i';
const SPECIFICATION: u8 = b'j';
const SECTION: u8 = b's';
const BUILD: u8 = b'b';
const SHARE: u8 = b'g';
const CREATION: u8 = b't';
const NAMED: u8 = b'h';
/// The key of the row with the latest [`DdlEvent`](crate::catalog::ddl_event::DdlEvent).
pub const DDL_EVENT: &[u8] = b"e";
const HISTORY_RETAINED: &[u8] = b"k";
const NEXT_ID: &[u8] = b"n";
const FOLD_POSITION: &[u8] = b"p";

/// The subject of a row, which follows from its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSubject {
    /// The definition of a collection: its name, its options or one of its indexes.
    Collection(CollectionId),
    /// The position up to which a collection is folded.
    Folded(CollectionId),
    /// A section of a map.
    Section(MapId),
    /// The share of an index build that a follower builds.
    Share,
    /// A name that a collection had before.
    FormerName,
    /// Whether the log is retained for change streams.
    History,
    /// Something else.
    Other,
}

impl RowSubject {
    /// Returns the subject of the row with this key.
    pub fn from_key(key: &[u8]) -> RowSubject {
        let Some((&kind, numbers)) = key.split_first() else {
            return RowSubject::Other;
        };
        let first = numbers.first_chunk::<8>().map(|it| u64::from_be_bytes(*it));
        match (kind, first) {
            (COLLECTION | OPTIONS | INDEX, Some(id)) => RowSubject::Collection(CollectionId(id)),
            (FOLDED, Some(id)) => RowSubject::Folded(CollectionId(id)),
            (SECTION, Some(map)) => RowSubject::Section(MapId(map)),
            (SHARE, _) => RowSubject::Share,
            (NAMED, _) => RowSubject::FormerName,
            _ if key == HISTORY_RETAINED => RowSubject::History,
            _ => RowSubject::Other,
        }
    }
}

/// Returns the next id of collections and maps.
pub fn next_id(catalog: &Catalog) -> Result<NextId, StorageError> {
    match catalog.get(NEXT_ID) {
        Some(value) => Ok(NextId(number(read(&value)?, "next")?)),
        None => Ok(NextId::FIRST),
    }
}

/// Returns the row with the next id of collections and maps.
pub fn put_next_id(next: NextId) -> RowChange {
    row(NEXT_ID.to_vec(), doc! { "next": next.0 as i64 })
}

/// Returns the position up to which everything is folded, 0 in a new database directory.
pub fn fold_position(catalog: &Catalog) -> Result<Position, StorageError> {
    match catalog.get(FOLD_POSITION) {
        Some(value) => Ok(Position(number(read(&value)?, "position")?)),
        None => Ok(Position::ZERO),
    }
}

/// Returns the row with the position up to which everything is folded.
pub fn put_fold_position(position: Position) -> RowChange {
    row(
        FOLD_POSITION.to_vec(),
        doc! { "position": position.0 as i64 },
    )
}

/// Returns the row with an event for change streams.
pub fn put_ddl_event(event: DocumentBuf) -> RowChange {
    row(DDL_EVENT.to_vec(), event)
}

/// Returns `true` if the log is retained for change streams.
pub fn is_history_retained(catalog: &Catalog) -> bool {
    catalog.get(HISTORY_RETAINED).is_some()
}

/// Returns the row that says that the log is retained for change streams.
pub fn put_history_retained() -> RowChange {
    RowChange::put(HISTORY_RETAINED, "")
}

/// Returns the key of a row: its kind, then its numbers. A key with fewer numbers is a prefix.
fn key(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut key = vec![kind];
    numbers
        .iter()
        .for_each(|number| key.extend_from_slice(&number.to_be_bytes()));
    key
}

/// Returns the numbers in a row's key, or `None` if the key has another length.
fn numbers<const N: usize>(key: &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    let mut rest = key.get(1..)?;
    for number in &mut numbers {
        let (chunk, after) = rest.split_first_chunk::<8>()?;
        *number = u64::from_be_bytes(*chunk);
        rest = after;
    }
    rest.is_empty().then_some(numbers)
}

/// Returns the numbers in a row's key. Fails if the key has another length, because skipping the
/// row would lose its content.
fn numbers_of<const N: usize>(key: &[u8]) -> Result<[u64; N], StorageError> {
    numbers(key).ok_or_else(|| {
        let key = key.escape_ascii();
        damaged(&format!(
            "the key \"{key}\" of a row does not have {N} numbers"
        ))
    })
}

fn row(key: Vec<u8>, value: DocumentBuf) -> RowChange {
    RowChange::put(key, value.into_bytes())
}

fn damaged(what: &str) -> StorageError {
    StorageError::Damaged {
        place: "the catalog".to_owned(),
        what: what.to_owned(),
    }
}

fn number(document: Document<'_>, name: &str) -> Result<u64, StorageError> {
    let found = document.get(name).and_then(ValueRef::as_whole);
    found
        .map(|number| number as u64)
        .ok_or_else(|| damaged(&format!("a row without '{name}'")))
}

fn read(value: &[u8]) -> Result<Document<'_>, StorageError> {
    Document::from_bytes(value).map_err(|error| damaged(&error.to_string()))
}

fn text(document: Document<'_>, name: &str) -> Result<String, StorageError> {
    let found = document.get(name).and_then(ValueRef::as_str);
    let found = found.map(str::to_owned);
    found.ok_or_else(|| damaged(&format!("a row without '{name}'")))
}
