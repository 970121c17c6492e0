//! The catalog's rows.

use std::sync::Arc;

use windrow_collection::Checks;
use windrow_storage::{MemoryDisk, RowChange, Storage};

use super::engines::{open, storage_options};
use crate::grammar::Source;

/// What rows are called by their first byte, and one that none is.
const KINDS: &[u8] = b"cofisbnpx";

/// Rows of any content in a folder of their own, which is then opened: refused, or read.
///
/// ```text
/// row   kind, 1 · number, 1 · further numbers, 1 and so many bytes · 0: a length and bytes, else a value
/// ```
pub fn run(bytes: &[u8]) {
    let disk = MemoryDisk::new();
    let storage = Storage::open(Arc::new(disk.clone()), storage_options()).expect("a folder");
    let mut source = Source::new(bytes);
    while !source.rest().is_empty() {
        let row = RowChange::put(key(&mut source), value(&mut source));
        if storage.catalog.change(vec![row], |_| {}).is_err() {
            return;
        }
    }
    drop(storage);
    let Ok(engine) = open(&disk) else {
        return;
    };
    for database in engine.databases() {
        for collection in engine.collections(&database) {
            let _ = collection.validate(Checks::FULL);
        }
    }
    let _ = engine.fold();
}

fn key(source: &mut Source<'_>) -> Vec<u8> {
    let kind = KINDS[usize::from(source.byte()) % KINDS.len()];
    let mut key = vec![kind];
    if !matches!(kind, b'n' | b'p') {
        for _ in 0..1 + source.byte() % 3 {
            key.extend_from_slice(&u64::from(source.byte()).to_be_bytes());
        }
    }
    key
}

fn value(source: &mut Source<'_>) -> Vec<u8> {
    if source.byte() == 0 {
        return (0..source.byte()).map(|_| source.byte()).collect();
    }
    source.document().into_bytes()
}
