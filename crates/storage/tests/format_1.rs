//! A saved folder of format 1. Every later version reads it, or refuses its FORMAT file with the
//! name of the format. No version may report it as damaged.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::small;
use windrow_storage::{
    BlockAddress, Caching, Compression, Position, RealDisk, RowChange, Storage, encode_block,
};

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1")
}

fn open(folder: &Path) -> Storage {
    Storage::open(Arc::new(RealDisk::new(folder).unwrap()), small()).unwrap()
}

fn payload(number: usize) -> Vec<u8> {
    (0..number * 100)
        .map(|i| ((i * number) % 251) as u8)
        .collect()
}

fn block(number: usize) -> Vec<u8> {
    (0..700).map(|i| (i / 50 + number) as u8).collect()
}

/// Writes the saved folder: `cargo test -p windrow-storage --test format_1 -- --ignored`,
/// with an empty folder in its place. Only for a new format, under the name of that format.
#[test]
#[ignore = "writes the saved folder again"]
fn write_the_fixture() {
    let storage = open(&fixture());
    let put = |key: &str, value: Vec<u8>| {
        storage
            .catalog
            .change(vec![RowChange::put(key, value)], |_| {})
            .unwrap()
    };
    let mut writer = storage.runs.create().unwrap();
    for (number, compression) in COMPRESSIONS.into_iter().enumerate() {
        let address = writer
            .append(&encode_block(&block(number), compression))
            .unwrap();
        put(&format!("block {number}"), address.to_bytes().to_vec());
    }
    writer.finish().unwrap();
    put("goes", vec![1]);
    storage.catalog.checkpoint().unwrap();
    storage
        .catalog
        .change(vec![RowChange::delete("goes")], |_| {})
        .unwrap();
    for number in 0..20 {
        storage.log.append(&[&payload(number)], |_| {}).unwrap();
    }
    std::fs::remove_file(fixture().join("LOCK")).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

#[test]
fn saved_folder_of_format_1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture(), folder.path());
    let storage = open(folder.path());
    assert_eq!(storage.catalog.checkpointed(), Position(4));
    assert_eq!(storage.catalog.scan(b"").len(), 3);
    for number in 0..COMPRESSIONS.len() {
        let row = storage
            .catalog
            .get(format!("block {number}").as_bytes())
            .unwrap();
        let address = BlockAddress::from_bytes(&row).unwrap();
        assert_eq!(
            *storage.runs.open_block(address, Caching::Keep).unwrap(),
            *block(number)
        );
    }
    let records = storage.log.read_from(Position(1));
    let found: Vec<Vec<u8>> = records.map(|record| record.unwrap().payload).collect();
    assert_eq!(found, (0..20).map(payload).collect::<Vec<_>>());
}
