//! The comparison of one index with the documents.

use windrow_document::{Document, Value, ValueRef};
use windrow_fold::{Cursor, EntryDigest, RecordId};
use windrow_index::{Definition, Scratch, is_mark};
use windrow_interrupt::PacedInterrupt;
use windrow_invariant::Bug;

use super::duplicate_keys::DuplicateKeys;
use super::{Checks, ExpectedEntries, IndexReport, WrongEntries, WrongEntry, damage};
use crate::error::Error;
use crate::read::{Reader, ReaderIndex};

/// The maximal number of reported entries of each kind.
const SHOWN_MAX: usize = 100;

/// An entry of a document.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DocumentEntry {
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// Visits the distinct entries of a document.
pub fn each_entry(
    index: &ReaderIndex,
    document: Document<'_>,
    scratch: &mut Scratch,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<(), Error> {
    let mut entries = Vec::new();
    let mut add = |key: &[u8], payload: &[u8]| {
        entries.push(DocumentEntry {
            key: key.to_vec(),
            payload: payload.to_vec(),
        });
    };
    let definition = index.definition();
    definition.entries(document, scratch, &mut add)?;
    // Of equal keys the smallest payload counts.
    entries.sort();
    entries.dedup_by(|one, other| one.key == other.key);
    entries
        .iter()
        .for_each(|entry| visit(&entry.key, &entry.payload));
    Ok(())
}

/// Returns an index by number. Skipping an unknown one would report it as valid.
fn index_of(reader: &Reader, number: usize) -> Result<&ReaderIndex, Bug> {
    let indexes = reader.indexes();
    indexes.get(number).ok_or_else(|| {
        let indexes = indexes.len();
        Bug::new(format!(
            "a validation of {indexes} indexes has no index {number}"
        ))
    })
}

/// Compares the index with this number. Blocks that cannot be read become errors of the report.
pub fn index(
    reader: &Reader,
    number: usize,
    expected: &ExpectedEntries,
    checks: Checks,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<IndexReport, Error> {
    let mut report = IndexReport::default();
    let index = index_of(reader, number)?;
    report.name = index.name().to_owned();
    if let Err(error) = compare(reader, number, expected, checks, &mut report, interrupt) {
        report.errors.push(damage(error)?);
    }
    Ok(report)
}

fn compare(
    reader: &Reader,
    number: usize,
    expected: &ExpectedEntries,
    checks: Checks,
    report: &mut IndexReport,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<(), Error> {
    let unique = unique(index_of(reader, number)?);
    if checks.full {
        reader.check_sections(number, interrupt)?;
    } else if unique.is_none() && reader.digest(number)? == Some(expected.digest) {
        report.keys = expected.keys;
        return Ok(());
    }
    let keys = &mut report.keys;
    let found = read_entries(reader, number, unique.is_some(), keys, interrupt)?;
    report.duplicates = unique.and_then(|definition| found.duplicates.error(definition));
    if found.digest != expected.digest {
        let Differences { missing, extra } = Differences::find(reader, number, interrupt)?;
        (report.missing, report.extra) = (missing, extra);
        let error = describe(report, found.digest, expected.digest);
        report.errors.push(error);
    }
    Ok(())
}

/// Returns the definition if the index is unique, so that each key may have one record.
fn unique(index: &ReaderIndex) -> Option<&Definition> {
    let definition = index.definition();
    (definition.unique && !definition.clustered).then_some(definition)
}

fn describe(report: &IndexReport, found: EntryDigest, expected: EntryDigest) -> String {
    let first = match (report.missing.first.first(), report.extra.first.first()) {
        (Some(entry), _) => format!("record {} lacks key {}", entry.record.0, hex(&entry.key)),
        (None, Some(entry)) => {
            let key = hex(&entry.key);
            format!("key {key} of record {} is no document's", entry.record.0)
        }
        (None, None) => "the payloads of the keys differ".to_owned(),
    };
    format!(
        "index '{}' has {} entries where the documents have {}; {first}",
        report.name, found.entries, expected.entries
    )
}

/// The entries of an index, in order. The documents of a clustered collection were read by `_id`
/// already, so the map by record id is compared instead.
enum IndexEntries {
    Entries(Cursor),
    Clustered(Cursor),
}

impl IndexEntries {
    fn new(reader: &Reader, number: usize) -> Result<IndexEntries, Error> {
        Ok(if index_of(reader, number)?.definition().clustered {
            IndexEntries::Clustered(reader.id_keys())
        } else {
            IndexEntries::Entries(reader.all_entries(number)?.for_scan())
        })
    }

    fn next(&mut self) -> Result<bool, Error> {
        let (IndexEntries::Entries(cursor) | IndexEntries::Clustered(cursor)) = self;
        Ok(cursor.next()?)
    }

    /// Returns the current entry.
    fn entry(&self) -> FoundEntry<'_> {
        match self {
            IndexEntries::Entries(cursor) => FoundEntry {
                key: cursor.key(),
                id: cursor.id(),
                payload: cursor.payload(),
            },
            IndexEntries::Clustered(cursor) => {
                // A malformed record id belongs to no document. It is reported as extra, with
                // record id 0.
                let id = cursor.key().first_chunk().copied();
                let id = RecordId(id.map_or(0, u64::from_be_bytes));
                FoundEntry {
                    key: cursor.payload(),
                    id,
                    payload: b"",
                }
            }
        }
    }
}

/// An entry of an index.
struct FoundEntry<'e> {
    key: &'e [u8],
    id: RecordId,
    payload: &'e [u8],
}

/// The content of an index.
struct FoundEntries {
    digest: EntryDigest,
    /// The records that share a key, if the index is unique.
    duplicates: DuplicateKeys,
}

/// Reads all entries of an index. Counts those that are not marks in `keys`, also those before an
/// unreadable block.
fn read_entries(
    reader: &Reader,
    number: usize,
    is_unique: bool,
    keys: &mut u64,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<FoundEntries, Error> {
    let mut found = FoundEntries {
        digest: EntryDigest::default(),
        duplicates: DuplicateKeys::default(),
    };
    let mut entries = IndexEntries::new(reader, number)?;
    while entries.next()? {
        interrupt.step()?;
        let FoundEntry { key, id, payload } = entries.entry();
        *keys += u64::from(!is_mark(key));
        if is_unique {
            found.duplicates.add(key, id, payload);
        }
        found.digest.add(key, id, payload);
    }
    Ok(found)
}

/// The differences between an index and the documents.
struct Differences {
    /// The entries that the index lacks.
    missing: WrongEntries,
    /// The entries that no document has.
    extra: WrongEntries,
}

impl Differences {
    fn find(
        reader: &Reader,
        number: usize,
        interrupt: &mut PacedInterrupt<'_>,
    ) -> Result<Differences, Error> {
        let (mut missing, mut extra) = (WrongEntries::default(), WrongEntries::default());
        let index = index_of(reader, number)?;
        let mut scratch = Scratch::default();
        let mut records = reader.range(None, None)?;
        while records.next()? {
            interrupt.step()?;
            let (document, id) = (Document::from_validated(records.document()), records.id());
            for DocumentEntry { key, payload } in entries_of(index, document, &mut scratch)? {
                if !has(reader, number, &key, id, &payload)? {
                    missing.record(&key, &payload, id, document.get("_id"));
                }
            }
        }
        let mut found = IndexEntries::new(reader, number)?;
        while found.next()? {
            interrupt.step()?;
            let FoundEntry { key, id, payload } = found.entry();
            let bytes = reader.get(id)?;
            let document = bytes.as_ref().map(|it| Document::from_validated(it));
            let entries = match document {
                Some(document) => entries_of(index, document, &mut scratch)?,
                None => Vec::new(),
            };
            if !entries
                .iter()
                .any(|it| it.key == key && it.payload == payload)
            {
                extra.record(key, payload, id, document.and_then(|it| it.get("_id")));
            }
        }
        Ok(Differences { missing, extra })
    }
}

/// Returns the entries of a document in the form of [`IndexEntries`].
fn entries_of(
    index: &ReaderIndex,
    document: Document<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<DocumentEntry>, Error> {
    let mut entries = Vec::new();
    let is_clustered = index.definition().clustered;
    each_entry(index, document, scratch, &mut |key, payload| {
        let payload = if is_clustered { b"" } else { payload };
        entries.push(DocumentEntry {
            key: key.to_vec(),
            payload: payload.to_vec(),
        });
    })?;
    Ok(entries)
}

fn has(
    reader: &Reader,
    number: usize,
    key: &[u8],
    id: RecordId,
    payload: &[u8],
) -> Result<bool, Error> {
    if reader.is_clustered() && number == 0 {
        return Ok(reader.id_key_of(id)?.is_some_and(|found| found == key));
    }
    let mut cursor = reader.all_entries(number)?;
    cursor.seek(key, id)?;
    Ok(cursor.next()? && (cursor.key(), cursor.id(), cursor.payload()) == (key, id, payload))
}

impl WrongEntries {
    fn record(&mut self, key: &[u8], payload: &[u8], record: RecordId, id: Option<ValueRef<'_>>) {
        self.count += 1;
        if self.first.len() < SHOWN_MAX {
            self.first.push(WrongEntry {
                key: key.to_vec(),
                payload: payload.to_vec(),
                record,
                id: id.map(ValueRef::to_value) as Option<Value>,
            });
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
