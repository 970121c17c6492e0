//! The catalog rows that describe collections, indexes and sections.
//!
//! ```text
//! "c" collection id u64 BE                        BSON: db, coll, uuid, options, records (map id)
//! "o" collection id | number, u64 BE each         a piece of options that do not fit into "c"
//! "f" collection id u64 BE                        BSON: position, count, bytes, next
//! "i" collection id u64 BE | map id u64 BE        BSON: spec, ready, since
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

use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};
use windrow_fold::{Position, RecordId, SectionDescriptor};
use windrow_storage::{Catalog, RowChange, RunId, StorageError};

use crate::catalog::namespace::Namespace;
use crate::ids::{CollectionId, MapId};

pub const COLLECTION: u8 = b'c';
pub const OPTIONS: u8 = b'o';
pub const FOLDED: u8 = b'f';
pub const INDEX: u8 = b'i';
pub const SPECIFICATION: u8 = b'j';
pub const SECTION: u8 = b's';
pub const BUILD: u8 = b'b';
pub const SHARE: u8 = b'g';
pub const CREATION: u8 = b't';
pub const NAMED: u8 = b'h';
/// The key of the row with the latest [`DdlEvent`](crate::catalog::ddl_event::DdlEvent).
pub const DDL_EVENT: &[u8] = b"e";
pub const HISTORY_KEPT: &[u8] = b"k";
const NEXT_ID: &[u8] = b"n";
const FOLD_POSITION: &[u8] = b"p";

/// Returns the key of a row: its kind, then its numbers.
pub fn key(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut key = vec![kind];
    numbers
        .iter()
        .for_each(|number| key.extend_from_slice(&number.to_be_bytes()));
    key
}

/// Returns the numbers in a row's key, or `None` if the key has another length.
pub fn numbers<const N: usize>(key: &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    let mut rest = key.get(1..)?;
    for number in &mut numbers {
        let (chunk, after) = rest.split_first_chunk::<8>()?;
        *number = u64::from_be_bytes(*chunk);
        rest = after;
    }
    rest.is_empty().then_some(numbers)
}

/// Returns the run that a row names, or `None` if it names none.
pub fn run_of(key: &[u8]) -> Option<RunId> {
    if key.first() != Some(&SECTION) {
        return None;
    }
    let [_, run, _] = numbers(key)?;
    Some(RunId(run))
}

/// Returns the run that the row of a share reserves, or `None` for other rows.
pub fn run_of_share(key: &[u8]) -> Option<RunId> {
    if key.first() != Some(&SHARE) {
        return None;
    }
    let [_, run] = numbers(key)?;
    Some(RunId(run))
}

/// Returns the numbers in a row's key while the engine opens. Fails if the key has another length,
/// because skipping the row would lose what it says.
pub fn numbers_of<const N: usize>(key: &[u8]) -> Result<[u64; N], StorageError> {
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

/// The row of a collection.
#[derive(Clone, Debug)]
pub struct CollectionRow {
    pub namespace: Namespace,
    pub uuid: [u8; 16],
    pub options: DocumentBuf,
    /// The map of documents by record id.
    pub records: MapId,
}

/// Longer options and specifications are stored in separate rows, in pieces of this many bytes.
const WHOLE_BYTES_MAX: usize = 2_000;
const PIECE_BYTES: usize = 4_000;

/// Iterates over the pieces of a document that is stored outside the row it belongs to.
fn pieces(document: &DocumentBuf) -> impl Iterator<Item = &[u8]> {
    let bytes = document.as_bytes();
    let apart = if bytes.len() > WHOLE_BYTES_MAX {
        bytes
    } else {
        &[]
    };
    apart.chunks(PIECE_BYTES)
}

/// Stores a document in the row, or in separate rows of this kind and number.
fn put_whole(
    value: &mut DocumentBuf,
    name: &str,
    document: &DocumentBuf,
    (kind, id): (u8, u64),
) -> Vec<RowChange> {
    let put = |(number, piece): (usize, &[u8])| {
        RowChange::put(key(kind, &[id, number as u64]), piece.to_vec())
    };
    let changes: Vec<RowChange> = pieces(document).enumerate().map(put).collect();
    if changes.is_empty() {
        value.push(name, document.clone());
    }
    changes
}

fn delete_pieces(document: &DocumentBuf, (kind, id): (u8, u64)) -> Vec<RowChange> {
    let numbers = pieces(document).enumerate();
    let delete = |(number, _)| RowChange::delete(key(kind, &[id, number as u64]));
    numbers.map(delete).collect()
}

fn read_whole(
    value: Document<'_>,
    name: &str,
    (kind, id): (u8, u64),
    catalog: &Catalog,
) -> Result<DocumentBuf, StorageError> {
    if let Some(document) = value.get(name).and_then(ValueRef::as_document) {
        return Ok(document.to_buf());
    }
    let mut bytes = Vec::new();
    for (_, piece) in catalog.scan(&key(kind, &[id])) {
        bytes.extend_from_slice(&piece);
    }
    Ok(read(&bytes)?.to_buf())
}

/// Merges row changes that replace others, so that each key occurs once.
fn in_place(mut put: Vec<RowChange>, of: Vec<RowChange>) -> Vec<RowChange> {
    let is_needless = |delete: &RowChange| put.iter().all(|put| put.key != delete.key);
    let needless: Vec<RowChange> = of.into_iter().filter(is_needless).collect();
    put.extend(needless);
    put
}

impl CollectionRow {
    /// Returns the changes that write the rows.
    pub fn put(&self, id: CollectionId) -> Vec<RowChange> {
        let mut value = self.named().document();
        value.push("records", self.records.0 as i64);
        let mut changes = put_whole(&mut value, "options", &self.options, (OPTIONS, id.0));
        changes.push(row(key(COLLECTION, &[id.0]), value));
        changes
    }

    /// Returns the row of the collection's current name.
    pub fn named(&self) -> NamedRow {
        NamedRow {
            namespace: self.namespace.clone(),
            uuid: self.uuid,
        }
    }

    /// Returns the changes that replace the rows of `old`, which belong to the same collection.
    /// Each key occurs once.
    pub fn replace(&self, old: &CollectionRow, id: CollectionId) -> Vec<RowChange> {
        in_place(self.put(id), old.delete(id))
    }

    /// Returns the changes that delete the rows.
    pub fn delete(&self, id: CollectionId) -> Vec<RowChange> {
        let mut changes = delete_pieces(&self.options, (OPTIONS, id.0));
        changes.push(RowChange::delete(key(COLLECTION, &[id.0])));
        changes
    }

    /// Decodes a row. Reads options that are stored outside the row from `catalog`.
    pub fn read(
        id: CollectionId,
        value: &[u8],
        catalog: &Catalog,
    ) -> Result<CollectionRow, StorageError> {
        let document = read(value)?;
        let NamedRow { namespace, uuid } = NamedRow::from_document(document)?;
        Ok(CollectionRow {
            namespace,
            uuid,
            options: read_whole(document, "options", (OPTIONS, id.0), catalog)?,
            records: MapId(number(document, "records")?),
        })
    }
}

/// The fold state of a collection: the folded position, and the numbers of documents and bytes at
/// that position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldedRow {
    pub position: Position,
    pub count: i64,
    pub bytes: i64,
    pub next_record: RecordId,
}

impl FoldedRow {
    pub fn put(&self, collection: CollectionId) -> RowChange {
        let value = doc! {
            "position": self.position.0 as i64, "count": self.count, "bytes": self.bytes,
            "next": self.next_record.0 as i64,
        };
        row(key(FOLDED, &[collection.0]), value)
    }

    pub fn read(value: &[u8]) -> Result<FoldedRow, StorageError> {
        let document = read(value)?;
        Ok(FoldedRow {
            position: Position(number(document, "position")?),
            count: number(document, "count")? as i64,
            bytes: number(document, "bytes")? as i64,
            next_record: RecordId(number(document, "next")?),
        })
    }
}

/// The row of an index: its definition, and whether it can be read.
#[derive(Clone, Debug)]
pub struct IndexRow {
    pub specification: DocumentBuf,
    pub ready: bool,
    /// The log position from which on the index follows the log. Its build reads everything before.
    pub since: Position,
}

impl IndexRow {
    /// Returns the changes that write the rows.
    pub fn put(&self, collection: CollectionId, map: MapId) -> Vec<RowChange> {
        let mut value = DocumentBuf::new();
        let place = (SPECIFICATION, map.0);
        let mut changes = put_whole(&mut value, "spec", &self.specification, place);
        value.push("ready", self.ready);
        value.push("since", self.since.0 as i64);
        changes.push(row(key(INDEX, &[collection.0, map.0]), value));
        changes
    }

    /// Returns the changes that replace the rows of `old`, which belong to the same index. Each key
    /// occurs once.
    pub fn replace(&self, old: &IndexRow, collection: CollectionId, map: MapId) -> Vec<RowChange> {
        in_place(self.put(collection, map), old.delete(collection, map))
    }

    /// Returns the changes that delete the rows.
    pub fn delete(&self, collection: CollectionId, map: MapId) -> Vec<RowChange> {
        let mut changes = delete_pieces(&self.specification, (SPECIFICATION, map.0));
        changes.push(RowChange::delete(key(INDEX, &[collection.0, map.0])));
        changes
    }

    /// Decodes a row. Reads a specification that is stored outside the row from `catalog`.
    pub fn read(map: MapId, value: &[u8], catalog: &Catalog) -> Result<IndexRow, StorageError> {
        let document = read(value)?;
        let ready = document.get("ready");
        let ready = ready.ok_or_else(|| damaged("a row without 'ready'"))?;
        Ok(IndexRow {
            specification: read_whole(document, "spec", (SPECIFICATION, map.0), catalog)?,
            ready: ready.is_truthy(),
            since: Position(number(document, "since")?),
        })
    }
}

fn section_key(map: MapId, section: &SectionDescriptor) -> Vec<u8> {
    key(SECTION, &[map.0, section.run.0, section.root_offset])
}

pub fn put_section(map: MapId, section: &SectionDescriptor) -> RowChange {
    RowChange::put(section_key(map, section), section.encode())
}

pub fn delete_section(map: MapId, section: &SectionDescriptor) -> RowChange {
    RowChange::delete(section_key(map, section))
}

pub fn read_section(value: &[u8]) -> Result<SectionDescriptor, StorageError> {
    SectionDescriptor::decode(value).ok_or_else(|| damaged("a section's row"))
}

/// The share of an index build that a follower builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareRow {
    /// The id of the follower's process.
    pub builder: [u8; 16],
    /// The indexes that are built together.
    pub maps: Vec<MapId>,
    /// The first record, and the one behind the last. See [`BUILD`].
    pub from: Vec<u8>,
    pub end: Vec<u8>,
}

impl ShareRow {
    /// Returns the key of the share that is written as `run`. `map` is the first index.
    pub fn key(map: MapId, run: RunId) -> Vec<u8> {
        key(SHARE, &[map.0, run.0])
    }

    /// Returns the change that writes the row.
    pub fn put(&self, run: RunId) -> RowChange {
        let binary = |bytes: &[u8]| Value::Binary {
            subtype: 0,
            bytes: bytes.to_vec(),
        };
        let maps: Vec<i64> = self.maps.iter().map(|map| map.0 as i64).collect();
        let value = doc! {
            "builder": (binary(&self.builder)), "maps": maps, "from": (binary(&self.from)),
            "end": (binary(&self.end)),
        };
        let first = self.maps.first().copied().unwrap_or(MapId(0));
        row(ShareRow::key(first, run), value)
    }

    pub fn read(value: &[u8]) -> Result<ShareRow, StorageError> {
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
            from: binary("from")?.to_vec(),
            end: binary("end")?.to_vec(),
        })
    }
}

/// Returns the row that marks a collection as being created by a transaction.
pub fn put_creation(collection: CollectionId) -> RowChange {
    RowChange::put(key(CREATION, &[collection.0]), Vec::new())
}

pub fn delete_creation(collection: CollectionId) -> RowChange {
    RowChange::delete(key(CREATION, &[collection.0]))
}

pub fn put_next_id(next: u64) -> RowChange {
    row(NEXT_ID.to_vec(), doc! { "next": next as i64 })
}

pub fn put_fold_position(position: Position) -> RowChange {
    row(
        FOLD_POSITION.to_vec(),
        doc! { "position": position.0 as i64 },
    )
}

/// The current or a former name of a collection, and its UUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRow {
    pub namespace: Namespace,
    pub uuid: [u8; 16],
}

impl NamedRow {
    /// Returns the row that records that the collection had this name up to a position.
    pub fn put(&self, collection: CollectionId, until: Position) -> RowChange {
        row(key(NAMED, &[collection.0, until.0]), self.document())
    }

    pub fn document(&self) -> DocumentBuf {
        let uuid = Value::Binary {
            subtype: 4,
            bytes: self.uuid.to_vec(),
        };
        doc! {
            "db": self.namespace.database.as_str(), "coll": self.namespace.collection.as_str(),
            "uuid": uuid,
        }
    }

    pub fn read(value: &[u8]) -> Result<NamedRow, StorageError> {
        NamedRow::from_document(read(value)?)
    }

    pub fn from_document(document: Document<'_>) -> Result<NamedRow, StorageError> {
        let text = |name: &str| {
            let found = document.get(name).and_then(ValueRef::as_str);
            let found = found.map(str::to_owned);
            found.ok_or_else(|| damaged(&format!("a row without '{name}'")))
        };
        Ok(NamedRow {
            namespace: Namespace {
                database: text("db")?,
                collection: text("coll")?,
            },
            uuid: uuid(document, "uuid")?,
        })
    }
}

fn uuid(document: Document<'_>, name: &str) -> Result<[u8; 16], StorageError> {
    let found = match document.get(name) {
        Some(ValueRef::Binary { bytes, .. }) => bytes.first_chunk::<16>().copied(),
        _ => None,
    };
    found.ok_or_else(|| damaged(&format!("a row without '{name}'")))
}

/// Returns the row with an event for change streams.
pub fn put_ddl_event(event: DocumentBuf) -> RowChange {
    row(DDL_EVENT.to_vec(), event)
}

/// Returns the next unused id, 1 in a new database directory.
pub fn next_id(catalog: &Catalog) -> Result<u64, StorageError> {
    catalog
        .get(NEXT_ID)
        .map_or(Ok(1), |value| number(read(&value)?, "next"))
}

/// Returns the position up to which everything is folded, 0 in a new database directory.
pub fn fold_position(catalog: &Catalog) -> Result<Position, StorageError> {
    match catalog.get(FOLD_POSITION) {
        Some(value) => Ok(Position(number(read(&value)?, "position")?)),
        None => Ok(Position::ZERO),
    }
}
