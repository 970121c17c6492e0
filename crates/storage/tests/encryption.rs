//! Encrypted data folders: nothing readable reaches the disk, and nothing opens without the key.

mod common;

use std::sync::Arc;

use common::{Random, master_key, refusal, set_encrypted, small};
use windrow_storage::{
    BlockAddress, Caching, Compression, Disk, MemoryDisk, Position, RowChange, Storage,
    StorageError, StorageOptions, encode_block, rotate_keys,
};

/// A text that must not be on an encrypted disk.
const SECRET: &[u8] = b"the secret that nobody may read";

fn with_key(byte: char) -> StorageOptions {
    StorageOptions {
        encryption: Some(master_key(byte)),
        ..small()
    }
}

fn open(disk: &MemoryDisk, byte: char) -> Result<Storage, StorageError> {
    Storage::open(Arc::new(disk.clone()), with_key(byte))
}

/// Returns the bytes of all files.
fn files(disk: &MemoryDisk) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for folder in ["", "log", "runs", "catalog"] {
        for name in disk.list(folder).unwrap() {
            let path = [folder, &name].join("/");
            let path = path.trim_start_matches('/');
            let Ok(file) = disk.open(path) else {
                continue;
            };
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(0, &mut bytes).unwrap();
            found.push((path.to_owned(), bytes));
        }
    }
    found
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Writes the secret to the log, to blocks and to the catalog, in forms that do not compress and in
/// forms that do. Returns the addresses of the blocks.
fn write_secrets(storage: &Storage) -> Vec<BlockAddress> {
    storage.log.append(&[SECRET], |_| {}).unwrap();
    storage.log.append(&[&SECRET.repeat(100)], |_| {}).unwrap();
    let row = RowChange::put("row of secrets", SECRET);
    storage.catalog.change(vec![row], |_| {}).unwrap();
    storage.catalog.checkpoint().unwrap();
    let mut writer = storage.runs.create().unwrap();
    let raw = encode_block(SECRET, Compression::None);
    let lz4 = encode_block(&SECRET.repeat(50), Compression::Lz4);
    let zstd = encode_block(&SECRET.repeat(50), Compression::Zstd);
    let addresses = [raw, lz4, zstd].map(|block| writer.append(&block).unwrap());
    writer.finish().unwrap();
    addresses.to_vec()
}

fn check_secrets(storage: &Storage, addresses: &[BlockAddress]) {
    let records = storage.log.read_from(Position(1));
    let payloads: Vec<Vec<u8>> = records.map(|record| record.unwrap().payload).collect();
    assert_eq!(payloads[..2], [SECRET.to_vec(), SECRET.repeat(100)]);
    assert_eq!(
        storage.catalog.get(b"row of secrets").as_deref(),
        Some(SECRET)
    );
    for (address, times) in addresses.iter().zip([1, 50, 50]) {
        let block = storage.runs.open_block(*address, Caching::Past).unwrap();
        assert_eq!(*block, *SECRET.repeat(times));
    }
}

#[test]
fn nothing_readable_reaches_the_disk() {
    let disk = MemoryDisk::new();
    let storage = open(&disk, 'a').unwrap();
    let addresses = write_secrets(&storage);
    check_secrets(&storage, &addresses);
    drop(storage);
    let found = files(&disk);
    assert!(found.len() >= 5, "{}", found.len());
    for (path, bytes) in &found {
        for part in SECRET.windows(8) {
            assert!(
                !contains(bytes, part),
                "{path} has {:?}",
                part.escape_ascii().to_string()
            );
        }
        assert!(!contains(bytes, b"row of secrets"), "{path}");
    }
    check_secrets(&open(&disk, 'a').unwrap(), &addresses);

    // The same folder without encryption has all of it.
    let disk = MemoryDisk::new();
    let storage = common::open(&disk);
    write_secrets(&storage);
    drop(storage);
    let plain = files(&disk)
        .iter()
        .filter(|(_, bytes)| contains(bytes, SECRET))
        .count();
    assert_eq!(plain, 3, "the log, the run and the checkpoint");
}

#[test]
fn folders_open_with_their_key_only() {
    let encrypted = MemoryDisk::new();
    drop(open(&encrypted, 'a').unwrap());
    assert!(matches!(
        open(&encrypted, 'b'),
        Err(StorageError::WrongKey { .. })
    ));
    assert!(refusal(&encrypted).contains("is encrypted: an encryption key file is needed"));
    drop(open(&encrypted, 'a').unwrap());

    let plain = MemoryDisk::new();
    drop(common::open(&plain));
    assert!(matches!(
        open(&plain, 'a'),
        Err(StorageError::NotEncrypted { .. })
    ));
    let rotated = rotate_keys(Arc::new(plain.clone()), &master_key('a'), &master_key('b'));
    assert!(matches!(rotated, Err(StorageError::NotEncrypted { .. })));
    let rotated = rotate_keys(
        Arc::new(MemoryDisk::new()),
        &master_key('a'),
        &master_key('b'),
    );
    assert!(matches!(rotated, Err(StorageError::NotEncrypted { .. })));
}

/// Files of all generations can be read, and new files use the newest one.
#[test]
fn keys_are_rotated() {
    let disk = MemoryDisk::new();
    let storage = open(&disk, 'a').unwrap();
    let in_use = rotate_keys(Arc::new(disk.clone()), &master_key('a'), &master_key('b'));
    assert!(matches!(in_use, Err(StorageError::InUse { .. })));
    let first = write_secrets(&storage);
    drop(storage);
    let wrong = rotate_keys(Arc::new(disk.clone()), &master_key('c'), &master_key('b'));
    assert!(matches!(wrong, Err(StorageError::WrongKey { .. })));
    let rotated = rotate_keys(Arc::new(disk.clone()), &master_key('a'), &master_key('b'));
    assert_eq!(rotated.unwrap(), 2);
    assert_eq!(common::open(&MemoryDisk::new()).runs.key_generation(), None);
    assert!(matches!(
        open(&disk, 'a'),
        Err(StorageError::WrongKey { .. })
    ));
    let storage = open(&disk, 'b').unwrap();
    assert_eq!(storage.runs.key_generation(), Some(2));
    check_secrets(&storage, &first);
    let mut writer = storage.runs.create().unwrap();
    let second = writer
        .append(&encode_block(SECRET, Compression::None))
        .unwrap();
    writer.finish().unwrap();
    // The record does not fit into the segment, so it begins another one.
    let large = Random(1).payload(9 << 10);
    storage.log.append(&[&large], |_| {}).unwrap();
    drop(storage);
    let generations: Vec<u8> = files(&disk)
        .iter()
        .filter_map(|(path, bytes)| match path.split('/').next()? {
            "runs" => Some(bytes[16]),
            "log" => Some(bytes[32]),
            _ => None,
        })
        .collect();
    assert_eq!(generations, [1, 2, 1, 2]);
    let storage = open(&disk, 'b').unwrap();
    check_secrets(&storage, &first);
    let block = storage.runs.open_block(second, Caching::Past).unwrap();
    assert_eq!(*block, *SECRET);
}

/// Bytes that change are noticed although their checksum is made right again: the tag is not.
#[test]
fn changed_bytes_with_a_right_checksum_are_noticed() {
    let disk = MemoryDisk::new();
    let storage = open(&disk, 'a').unwrap();
    let addresses = write_secrets(&storage);
    drop(storage);
    let address = addresses[0];
    let file = disk.open("runs/000000000001.run").unwrap();
    let mut bytes = vec![0; address.length_stored as usize];
    file.read_at(address.offset, &mut bytes).unwrap();
    let checksum = |bytes: &[u8]| twox_hash::XxHash3_64::oneshot_with_seed(0, &bytes[8..]);
    let place = u64::from_le_bytes(bytes[..8].try_into().unwrap()) ^ checksum(&bytes);
    bytes[20] ^= 1;
    let placed = checksum(&bytes) ^ place;
    bytes[..8].copy_from_slice(&placed.to_le_bytes());
    file.write_at(address.offset, &bytes).unwrap();
    let storage = open(&disk, 'a').unwrap();
    let error = storage.runs.open_block(address, Caching::Past).unwrap_err();
    assert!(
        error.to_string().contains("it cannot be decrypted"),
        "{error}"
    );
}

/// Each byte of the file of keys is flipped: the folder does not open, and nothing panics.
#[test]
fn damaged_keys_are_refused() {
    let disk = MemoryDisk::new();
    drop(open(&disk, 'a').unwrap());
    let file = disk.open("KEYS").unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    let mut random = Random(7);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 + random.below(255) as u8;
        file.write_at(0, &damaged).unwrap();
        if let Ok(storage) = open(&disk, 'a') {
            panic!(
                "byte {at} of KEYS counts for nothing: {:?}",
                storage.log.written()
            );
        }
        file.write_at(0, &bytes).unwrap();
    }
    set_encrypted(false);
    drop(open(&disk, 'a').unwrap());
}
