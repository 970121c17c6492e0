//! Proof that every index says what its collection says.
//!
//! Both sides are read at one snapshot and summed up as a set: a hash of every entry, added. Where
//! the sums differ the entries are compared one by one, to name the first difference.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use windrow_document::Document;
use windrow_fold::Direction;
use windrow_index::{Multikey, Scratch};

use crate::collection::Collection;
use crate::error::Error;
use crate::generation::append_id_key;
use crate::read::{Reader, RecordId};

/// What was found.
#[derive(Clone, Debug)]
pub struct Validation {
    pub documents: u64,
    /// What is wrong with documents.
    pub errors: Vec<String>,
    pub indexes: Vec<IndexReport>,
}

impl Validation {
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty() && self.indexes.iter().all(|index| index.errors.is_empty())
    }
}

#[derive(Clone, Debug)]
pub struct IndexReport {
    pub name: String,
    pub keys: u64,
    pub errors: Vec<String>,
}

/// Number and set hash of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    entries: u64,
    hash: u64,
}

impl Sum {
    fn add(&mut self, key: &[u8], id: RecordId, payload: &[u8]) {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        self.entries += 1;
        self.hash = self.hash.wrapping_add(hasher.hash_one((key, id, payload)));
    }
}

impl Collection {
    /// Reads all documents and all entries and compares them. `full` checks the documents' BSON too.
    pub fn validate(&self, full: bool) -> Result<Validation, Error> {
        let reader = self.lasting_reader()?;
        let mut expected = vec![Sum::default(); reader.indexes().len()];
        let mut validation = Validation {
            documents: 0,
            errors: Vec::new(),
            indexes: Vec::new(),
        };
        let (mut scratch, mut key) = (Scratch::default(), Vec::new());
        let mut cursor = reader.records(Direction::Forward);
        while cursor.next()? {
            validation.documents += 1;
            let id = cursor.id();
            if full && let Err(error) = Document::from_bytes(cursor.document()) {
                validation.errors.push(format!("record {}: {error}", id.0));
                continue;
            }
            let document = Document::from_validated(cursor.document());
            if let Some(of_ids) = reader.indexes().first().filter(|_| reader.is_clustered()) {
                append_id_key(of_ids.definition(), document, &mut key);
                if key != cursor.place() {
                    let what = "stands elsewhere than its _id says";
                    validation.errors.push(format!("record {} {what}", id.0));
                }
            }
            for (index, sum) in reader.indexes().iter().zip(&mut expected) {
                let is_clustered = index.definition().clustered;
                each_entry(index, document, &mut scratch, &mut |key, payload| {
                    sum.add(key, id, if is_clustered { b"" } else { payload });
                })?;
            }
        }
        for (number, sum) in expected.into_iter().enumerate() {
            validation.indexes.push(check_index(&reader, number, sum)?);
        }
        if reader.is_clustered() {
            // It is the collection itself.
            let of_ids = validation.indexes.remove(0);
            validation.errors.extend(of_ids.errors);
        }
        Ok(validation)
    }
}

/// The distinct entries of a document.
fn each_entry(
    index: &crate::read::ReaderIndex,
    document: Document<'_>,
    scratch: &mut Scratch,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<(), Error> {
    let definition = index.definition();
    let mut multikey = Multikey::of(definition.fields.len());
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    definition.entries(document, scratch, &mut multikey, &mut |key, payload| {
        entries.push((key.to_vec(), payload.to_vec()));
    })?;
    // Of equal keys the smallest payload counts.
    entries.sort();
    entries.dedup_by(|a, b| a.0 == b.0);
    entries
        .iter()
        .for_each(|(key, payload)| visit(key, payload));
    Ok(())
}

fn check_index(reader: &Reader, number: usize, expected: Sum) -> Result<IndexReport, Error> {
    let index = reader.indexes().get(number);
    let found = match index.is_some_and(|index| index.definition().clustered) {
        false => sum_of_entries(reader, number)?,
        true => sum_of_records(reader)?,
    };
    let name = reader
        .indexes()
        .get(number)
        .map(|index| index.name().to_owned());
    let mut report = IndexReport {
        name: name.unwrap_or_default(),
        keys: found.entries,
        errors: Vec::new(),
    };
    if found != expected {
        let first = first_difference(reader, number)?;
        report.errors.push(format!(
            "index '{}' has {} entries where the documents have {}; {first}",
            report.name, found.entries, expected.entries
        ));
    }
    Ok(report)
}

fn sum_of_entries(reader: &Reader, number: usize) -> Result<Sum, Error> {
    let mut sum = Sum::default();
    let mut cursor = reader.entries(number, Direction::Forward)?;
    while cursor.next()? {
        sum.add(cursor.key(), cursor.id(), cursor.payload());
    }
    Ok(sum)
}

/// Of a clustered collection the documents have been read by their `_id`s: what is left to be compared is
/// the map by record id.
fn sum_of_records(reader: &Reader) -> Result<Sum, Error> {
    let mut sum = Sum::default();
    let mut cursor = reader.id_keys();
    while cursor.next()? {
        let id = cursor.key().first_chunk().copied();
        let id = RecordId(id.map_or(0, u64::from_be_bytes));
        sum.add(cursor.payload(), id, b"");
    }
    Ok(sum)
}

/// Looks for an entry that a document has and the index lacks, then the other way round.
fn first_difference(reader: &Reader, number: usize) -> Result<String, Error> {
    let Some(index) = reader.indexes().get(number) else {
        return Ok(String::new());
    };
    let (mut scratch, mut lacking) = (Scratch::default(), None);
    let mut records = reader.records(Direction::Forward);
    while lacking.is_none() && records.next()? {
        let id = records.id();
        let mut entries = Vec::new();
        let document = Document::from_validated(records.document());
        each_entry(index, document, &mut scratch, &mut |key, _| {
            entries.push(key.to_vec())
        })?;
        for key in entries {
            if lacking.is_none() && !has(reader, number, &key, id)? {
                lacking = Some(format!("record {} lacks key {}", id.0, hex(&key)));
            }
        }
    }
    if let Some(lacking) = lacking {
        return Ok(lacking);
    }
    let mut cursor = reader.entries(number, Direction::Forward)?;
    while cursor.next()? {
        let id = cursor.id();
        let mut belongs = false;
        if let Some(bytes) = reader.get(id)? {
            let document = Document::from_validated(&bytes);
            each_entry(index, document, &mut scratch, &mut |key, payload| {
                let same = index.definition().clustered || payload == cursor.payload();
                belongs |= same && key == cursor.key();
            })?;
        }
        if !belongs {
            return Ok(format!(
                "key {} of record {} is no document's",
                hex(cursor.key()),
                id.0
            ));
        }
    }
    Ok("the entries differ in their order".to_owned())
}

fn has(reader: &Reader, number: usize, key: &[u8], id: RecordId) -> Result<bool, Error> {
    let mut cursor = reader.entries(number, Direction::Forward)?;
    cursor.seek(key, id)?;
    Ok(cursor.next()? && cursor.key() == key && cursor.id() == id)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
