//! The target `catalog`: rows of the catalog.

use std::sync::Arc;

use windrow_collection::Checks;
use windrow_storage::{MemoryDisk, RowChange, Storage};

use super::test_engine::{open_engine, storage_options};
use crate::value_encoding::ValueDecoder;

/// The first bytes of row keys, and one that no row has.
const KINDS: &[u8] = b"cofisbnpx";

/// Opens a folder with arbitrary catalog rows. It must be refused or readable.
///
/// ```text
/// row   kind (1 byte) · number of ids (1 byte), ids (1 byte each)
///       · 0, length (1 byte), bytes; or another byte and an encoded document
/// ```
pub fn run(bytes: &[u8]) {
    let disk = MemoryDisk::new();
    let storage = Storage::open(Arc::new(disk.clone()), storage_options()).expect("a folder");
    let mut source = ValueDecoder::new(bytes);
    while !source.rest().is_empty() {
        let row = RowChange::put(key(&mut source), value(&mut source));
        if storage.catalog.change(vec![row], |_| {}).is_err() {
            return;
        }
    }
    drop(storage);
    let Ok(engine) = open_engine(&disk) else {
        return;
    };
    for database in engine.databases() {
        for collection in engine.collections(&database) {
            let _ = collection.validate(Checks::FULL);
        }
    }
    let _ = engine.fold();
}

fn key(source: &mut ValueDecoder<'_>) -> Vec<u8> {
    let kind = KINDS[usize::from(source.byte()) % KINDS.len()];
    let mut key = vec![kind];
    if !matches!(kind, b'n' | b'p') {
        for _ in 0..1 + source.byte() % 3 {
            key.extend_from_slice(&u64::from(source.byte()).to_be_bytes());
        }
    }
    key
}

fn value(source: &mut ValueDecoder<'_>) -> Vec<u8> {
    if source.byte() == 0 {
        return (0..source.byte()).map(|_| source.byte()).collect();
    }
    source.document().into_bytes()
}
