//! An encrypted database in an object store: nothing readable is in the object store or on the
//! local disks, and nothing opens without the key.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{cluster_options, master_key, primary};
use windrow_storage::{
    BlockAddress, Bucket, Caching, Compression, Disk, FollowOutcome, MemoryBucket, MemoryDisk,
    Position, Replica, RowChange, RunId, StaleReason, Storage, StorageError, StorageOptions,
    encode_block, inspect, rotate_keys, unlock, unseal,
};

/// A text that must not be in the object store.
const SECRET: &[u8] = b"the secret that nobody may read";

fn open(
    disk: &MemoryDisk,
    bucket: &MemoryBucket,
    key: Option<char>,
) -> Result<Replica, StorageError> {
    let storage_options = StorageOptions {
        encryption: key.map(master_key),
        ..StorageOptions::default()
    };
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Replica::open(disk, storage_options, cluster_options(bucket))
}

fn refusal(disk: &MemoryDisk, bucket: &MemoryBucket, key: Option<char>) -> String {
    match open(disk, bucket, key) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Fails if a readable secret is in the object store or on a disk.
fn check_unreadable(disk: &MemoryDisk, bucket: &MemoryBucket) {
    let mut count = 0;
    for folder in ["log", "runs", "catalog", "shares", "boundary", "servers"] {
        for name in bucket.list(folder, "").unwrap() {
            let bytes = bucket.get(&format!("{folder}/{name}")).unwrap().unwrap();
            assert!(!contains(&bytes, SECRET), "{folder}/{name}");
            count += 1;
        }
    }
    assert!(count > 3);
    for folder in ["log", "runs", "catalog", "cache"] {
        for name in disk.list(folder).unwrap() {
            let file = disk.open(&format!("{folder}/{name}")).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(0, &mut bytes).unwrap();
            assert!(!contains(&bytes, SECRET), "{folder}/{name}");
        }
    }
}

/// Writes the secret to the log, to the catalog, to a checkpoint and to a run.
fn write_secrets(storage: &Storage) -> BlockAddress {
    storage.log.append(&[SECRET], |_| {}).unwrap();
    storage.log.append(&[&SECRET.repeat(100)], |_| {}).unwrap();
    let row = RowChange::put("row of secrets", SECRET);
    let changed = storage.catalog.change(vec![row], |_| {}).unwrap();
    let mut writer = storage.runs.create().unwrap();
    let block = encode_block(SECRET, Compression::None);
    let address = writer.append(&block).unwrap();
    writer.finish().unwrap();
    storage.drop_log_before(changed).unwrap();
    let last = storage.log.append(&[SECRET], |_| {}).unwrap();
    assert!(storage.wait_durable(last, Duration::from_secs(10)).unwrap());
    address
}

fn check_secrets(storage: &Storage, address: BlockAddress) {
    let row = storage.catalog.get(b"row of secrets");
    assert_eq!(row.as_deref(), Some(SECRET));
    let block = storage.runs.open_block(address, Caching::Past).unwrap();
    assert_eq!(&*block, SECRET);
    let records = storage.log.read_from(storage.log.first());
    let last = records.last().unwrap().unwrap();
    assert_eq!(last.payload, SECRET);
}

/// Waits until a checkpoint is in the object store.
fn wait_for_checkpoint(bucket: &MemoryBucket) {
    for _ in 0..1000 {
        if !bucket.list("boundary", "").unwrap().is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("there is no boundary");
}

#[test]
fn servers_share_what_nobody_else_can_read() {
    let bucket = MemoryBucket::new();
    let disk = MemoryDisk::new();
    let first = primary(open(&disk, &bucket, Some('a')).unwrap());
    assert_eq!(first.runs.key_generation(), Some(1));
    let address = write_secrets(&first);
    check_secrets(&first, address);
    wait_for_checkpoint(&bucket);
    first.runs.create_reserved(RunId(99)).unwrap();
    first.runs.report_share(RunId(99), SECRET).unwrap();
    let report = first.runs.share_report(RunId(99)).unwrap();
    assert_eq!(report.as_deref(), Some(SECRET));
    check_unreadable(&disk, &bucket);
    first.close_upload();
    drop(first);

    let empty = MemoryDisk::new();
    let second = primary(open(&empty, &bucket, Some('a')).unwrap());
    check_secrets(&second, address);
    check_unreadable(&empty, &bucket);
    drop(second);
    // The local data is read again, and compared with the shared log.
    let first = primary(open(&disk, &bucket, Some('a')).unwrap());
    check_secrets(&first, address);
}

#[test]
fn only_the_right_key_opens_a_database() {
    let (bucket, disk) = (MemoryBucket::new(), MemoryDisk::new());
    drop(primary(open(&disk, &bucket, Some('a')).unwrap()));
    for disk in [&disk, &MemoryDisk::new()] {
        let wrong = refusal(disk, &bucket, Some('b'));
        assert!(
            wrong.contains("not the one that protects memory:keys"),
            "{wrong}"
        );
        let missing = refusal(disk, &bucket, None);
        assert!(
            missing.contains("is encrypted: its encryption key file"),
            "{missing}"
        );
    }
    assert!(open(&disk, &bucket, Some('a')).is_ok());
    let rotated = rotate_keys(Arc::new(disk), &master_key('a'), &master_key('b'));
    let message = rotated.unwrap_err().to_string();
    assert!(message.contains("the copy of a database"), "{message}");

    let plain = MemoryBucket::new();
    drop(primary(open(&MemoryDisk::new(), &plain, None).unwrap()));
    let message = refusal(&MemoryDisk::new(), &plain, Some('a'));
    assert!(message.contains("not encrypted"), "{message}");
}

#[test]
fn objects_cannot_be_exchanged() {
    let (bucket, disk) = (MemoryBucket::new(), MemoryDisk::new());
    let first = primary(open(&disk, &bucket, Some('a')).unwrap());
    write_secrets(&first);
    first.close_upload();
    drop(first);
    let names = bucket.list("log", "").unwrap();
    let name = |index: usize| format!("log/{}", names[index]);
    let other = bucket.get(&name(1)).unwrap().unwrap();
    let newest = names.iter().max().unwrap();
    bucket.put(&format!("log/{newest}"), other).unwrap();
    let message = refusal(&MemoryDisk::new(), &bucket, Some('a'));
    assert!(message.contains("cannot be decrypted"), "{message}");
}

#[test]
fn diverged_copy_is_loaded_again() {
    let (bucket, disk) = (MemoryBucket::new(), MemoryDisk::new());
    let first = primary(open(&disk, &bucket, Some('a')).unwrap());
    let address = write_secrets(&first);
    // A record that is not uploaded.
    first.close_upload();
    first.log.append(&[b"alone"], |_| {}).unwrap();
    first.log.sync(first.log.written()).unwrap();
    drop(first);
    let second = primary(open(&MemoryDisk::new(), &bucket, Some('a')).unwrap());
    let last = second.log.append(&[SECRET], |_| {}).unwrap();
    assert!(second.wait_durable(last, Duration::from_secs(10)).unwrap());

    let mut replica = open(&disk, &bucket, Some('a')).unwrap();
    let stale = loop {
        match replica.follow(&mut ()).unwrap() {
            FollowOutcome::Advanced => {}
            FollowOutcome::AtEnd => panic!("the difference was not found"),
            FollowOutcome::Stale(stale) => break stale,
        }
    };
    assert!(matches!(stale, StaleReason::Diverged(_)));
    let mut saved = Vec::new();
    let mut again = replica
        .reload(stale, |storage, from| {
            let records = storage.log.read_from(from);
            saved.extend(records.map(|record| record.unwrap().payload));
            Ok(())
        })
        .unwrap();
    assert_eq!(saved, [b"alone"]);
    let sealed = again.storage().seal(SECRET).unwrap().unwrap();
    assert!(!contains(&sealed, SECRET));
    let unsealed = unseal(&bucket, &master_key('a'), &sealed, "a file").unwrap();
    assert_eq!(unsealed, SECRET);
    assert!(unseal(&bucket, &master_key('a'), SECRET, "a file").is_err());
    while again.follow(&mut ()).unwrap() == FollowOutcome::Advanced {}
    assert!(again.written() >= last);
    check_secrets(&again.storage(), address);
    check_unreadable(&disk, &bucket);
}

#[test]
fn tools_need_the_key() {
    let (bucket, disk) = (MemoryBucket::new(), MemoryDisk::new());
    let first = primary(open(&disk, &bucket, Some('a')).unwrap());
    write_secrets(&first);
    first.close_upload();
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    assert!(unlock(shared.clone(), None).is_err());
    assert!(unlock(shared.clone(), Some(&master_key('b'))).is_err());
    let unlocked = unlock(shared, Some(&master_key('a'))).unwrap();
    let report = inspect(&unlocked, &|_| None).unwrap();
    assert_eq!(report.runs, 1);
    assert!(report.newest > Position(3));
    assert!(report.is_released);
}
