//! Rollback files: the documents of writes that were acknowledged by a server and never became part
//! of the shared log. MongoDB's replica sets have the same files.
//!
//! `rollback/COLLECTION/removed.TIME.bson` has the documents as the writes left them, one BSON
//! document after the other, so that `bsondump` and `mongorestore` read it. A deletion leaves
//! nothing to save.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use bytes::Bytes;
use windrow_storage::{Position, Storage, StorageError};

use crate::catalog::rows::CollectionRow;
use crate::error::undecodable;
use crate::ids::CollectionId;
use crate::record::transaction::DataRecord;
use crate::record::{self, Operation};

/// Writes the documents of the log from `from` on into files below `folder`. `time` names them.
/// Returns the number of documents.
///
/// # Errors
/// Fails if the log cannot be read or a file cannot be written.
pub fn write_rollback_files(
    storage: &Storage,
    from: Position,
    folder: &Path,
    time: &str,
) -> Result<u64, StorageError> {
    let mut documents: BTreeMap<CollectionId, Vec<u8>> = BTreeMap::new();
    let mut count = 0;
    for record in storage.log.read_from(from) {
        let record = record?;
        let undecodable = || undecodable(record.position);
        let parts = match DataRecord::read(Bytes::from(record.payload.clone())) {
            Some(DataRecord::Commit(payload)) => vec![payload],
            Some(DataRecord::Transaction(transaction)) => transaction.parts,
            None => return Err(undecodable()),
        };
        for part in parts {
            let id = record::collection_of(&part).ok_or_else(undecodable)?;
            let decoded = record::decode(record.position, part);
            let (commit, _) = decoded.ok_or_else(undecodable)?;
            let saved = documents.entry(id).or_default();
            for operation in &commit.operations {
                count += save(operation, saved);
            }
        }
    }
    for (id, bytes) in documents.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        write_file(storage, *id, folder, time, bytes)?;
    }
    Ok(count)
}

/// Appends the documents of an operation. Returns their number.
fn save(operation: &Operation, saved: &mut Vec<u8>) -> u64 {
    match operation {
        Operation::Insert { documents, .. } => {
            saved.extend_from_slice(documents);
            record::documents(documents).count() as u64
        }
        Operation::Update { document, .. } => {
            saved.extend_from_slice(document);
            1
        }
        Operation::Delete { .. } => 0,
    }
}

fn write_file(
    storage: &Storage,
    id: CollectionId,
    folder: &Path,
    time: &str,
    bytes: &[u8],
) -> Result<(), StorageError> {
    let folder = folder.join("rollback");
    let name = collection_name(storage, id);
    // The name of the collection of an encrypted database is in the file.
    let named = [name.as_bytes(), b"\0", bytes].concat();
    let sealed = storage.seal(&named)?;
    let (folder, bytes, ending) = match &sealed {
        Some(sealed) => (
            folder.join(format!("collection-{}", id.0)),
            sealed.as_slice(),
            ".encrypted",
        ),
        None => (folder.join(name.replace('/', "%2F")), bytes, ""),
    };
    let path = folder.join(format!("removed.{time}.bson{ending}"));
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, bytes))
        .and_then(|()| fs::File::open(&path)?.sync_all());
    written.map_err(|error| failed(&path, error))
}

fn failed(path: &Path, error: io::Error) -> StorageError {
    StorageError::Io {
        place: path.display().to_string(),
        error: error.into(),
    }
}

/// Returns the name of the collection with its database, or its id if it does not exist.
fn collection_name(storage: &Storage, id: CollectionId) -> String {
    match CollectionRow::get(id, &storage.catalog) {
        Ok(Some(row)) => row.namespace.to_string(),
        // The documents matter more than the name.
        Ok(None) | Err(_) => format!("collection-{id}"),
    }
}
