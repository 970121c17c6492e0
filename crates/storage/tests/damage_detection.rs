//! Detection of damage. Each test changes single bytes of a file, one after the other. Durable data
//! is then either read as it was written, or refused with the place of the damage. It is never read
//! differently, and never missing without an error.

mod common;

use common::{Random, open, refusal, try_open};
use std::collections::HashSet;
use std::sync::Arc;
use windrow_storage::{
    BlockAddress, Caching, Compression, Crash, Disk, MemoryDisk, Position, RowChange, RunId,
    Storage, StorageError, StorageOptions, encode_block,
};

fn payloads(storage: &Storage) -> Result<Vec<Vec<u8>>, StorageError> {
    storage
        .log
        .read_from(Position(1))
        .map(|record| Ok(record?.payload))
        .collect()
}

/// Returns a copy of the disk with a flipped bit.
fn flip(disk: &MemoryDisk, path: &str, offset: usize) -> MemoryDisk {
    let copy = disk.crash(Crash::OfProcess);
    copy.spoil(path, |bytes| bytes[offset] ^= 0x10);
    copy
}

fn length(disk: &MemoryDisk, path: &str) -> usize {
    disk.open(path).unwrap().len().unwrap() as usize
}

/// Returns a disk with a closed log of several segments, and the payloads of its records.
fn closed_log() -> (MemoryDisk, Vec<Vec<u8>>) {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let payloads: Vec<Vec<u8>> = (0..40_usize)
        .map(|i| (0..i * 30).map(|j| ((j * j * i) >> 4) as u8).collect())
        .collect();
    for payload in &payloads {
        let position = storage.log.append(&[payload], |_| {}).unwrap();
        storage.log.sync(position).unwrap();
    }
    drop(storage);
    (disk, payloads)
}

#[test]
fn changed_byte_of_a_closed_log_is_refused() {
    let (disk, expected) = closed_log();
    let segments: Vec<String> = disk
        .list("log")
        .unwrap()
        .into_iter()
        .map(|name| format!("log/{name}"))
        .collect();
    assert!(segments.len() >= 3);
    for path in &segments {
        let bytes = length(&disk, path);
        let is_last = Some(path) == segments.last();
        for offset in (0..bytes).step_by(7) {
            let damaged = flip(&disk, path, offset);
            // The last 48 bytes are the mark of the close. Without it, no record is lost.
            if is_last && offset >= bytes - 48 {
                assert_eq!(payloads(&open(&damaged)).unwrap(), expected);
                continue;
            }
            let error = refusal(&damaged);
            assert!(
                error.starts_with(&format!("memory:/{path}, at byte ")),
                "{offset}: {error}"
            );
            assert!(error.contains(" is damaged: record "), "{offset}: {error}");
        }
    }
}

/// The history of the log before the catalog's checkpoint may be long, so a start does not read it.
/// Damage in it does not prevent the start. Its readers get an error.
#[test]
fn damage_of_the_history_is_reported_by_its_readers() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    storage.log.keep_history(1 << 20);
    for number in 0..200_u32 {
        let row = RowChange::put(number.to_string(), [number as u8; 300]);
        storage.catalog.change(vec![row], |_| {}).unwrap();
    }
    let checkpointed = storage.catalog.checkpointed();
    storage.drop_log_before(checkpointed).unwrap();
    drop(storage);
    let mut names = disk.list("log").unwrap();
    names.sort();
    assert!(names.len() >= 5, "{names:?}");
    let first = format!("log/{}", names[0]);
    for offset in (0..length(&disk, &first)).step_by(97) {
        let damaged = flip(&disk, &first, offset);
        // If the header of the segment or of its first record is damaged, the start reads the
        // segment.
        if offset < 96 {
            assert!(refusal(&damaged).contains(&first), "{offset}");
            continue;
        }
        let again = open(&damaged);
        assert_eq!(again.catalog.scan(b"").len(), 200);
        let mut follower = again.log.follow(Position(1));
        let error = loop {
            match follower.read() {
                Ok(record) => assert!(record.is_some(), "{offset}: the damage was not noticed"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(&first), "{offset}: {error}");
        let mut read = again.log.read_from(Position(1));
        assert!(read.any(|record| record.is_err()), "{offset}");
        let whole = again.log.read_from(checkpointed);
        whole.for_each(|record| drop(record.unwrap()));
    }
    let kept = open(&disk);
    let mut follower = kept.log.follow(Position(1));
    let mut count = 0;
    while follower.read().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 200);
}

#[test]
fn log_without_one_of_its_files_is_refused() {
    let (disk, _) = closed_log();
    let mut names = disk.list("log").unwrap();
    names.sort();
    let copy = disk.crash(Crash::OfProcess);
    copy.remove(&format!("log/{}", names[1])).unwrap();
    assert_eq!(
        refusal(&copy),
        format!("memory:/log/{} is damaged: the file is missing", names[1])
    );
}

/// The first record was synced before the second one was written. The header of the second one says
/// so, which proves that a defect of the first one is damage and not a torn end.
#[test]
fn later_record_proves_that_an_earlier_one_was_durable() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let first = storage.log.append(&[b"the first record"], |_| {}).unwrap();
    storage.log.sync(first).unwrap();
    storage.log.append(&[b"the second record"], |_| {}).unwrap();
    let killed = disk.crash(Crash::OfProcess);
    let path = "log/000000000001.log";
    // The segment header has 48 bytes, the header of the first record 48, and its payload 16. Then
    // follows the second record.
    let error = refusal(&flip(&killed, path, 48 + 48));
    let expected = "memory:/log/000000000001.log, at byte 48 is damaged: record 1 should be \
        there, but the checksum of the record's payload does not match";
    assert_eq!(error, expected);
    let torn = open(&flip(&killed, path, 48 + 64 + 48));
    assert_eq!(payloads(&torn).unwrap(), [b"the first record".to_vec()]);
}

/// A reused file has records of its earlier use behind its end, complete and with valid checksums.
/// They must not be read, and must not be taken for a proof of damage.
#[test]
fn records_of_an_earlier_use_are_not_read() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let payload = [9; 500];
    for round in 0..400 {
        let position = storage
            .log
            .append(&[&payload[..400 + round % 100]], |_| {})
            .unwrap();
        if round % 20 == 0 {
            storage.log.sync(position).unwrap();
            storage.drop_log_before(position).unwrap();
        }
    }
    let names = disk.list("log").unwrap();
    let recycled = |name: &String| length(&disk, &format!("log/{name}")) > 7 << 10;
    assert!(names.iter().any(recycled), "{names:?}");
    let newest = storage.log.written();
    for crash in [Crash::OfProcess, Crash::LosingUnsynced] {
        let again = open(&disk.crash(crash));
        assert!(again.log.written() <= newest && again.log.written() >= storage.log.synced());
        assert!(
            payloads(&again).is_err(),
            "the read of a dropped record fails"
        );
        let kept = again.log.read_from(again.log.first());
        assert!(kept.inspect(|record| assert!(record.is_ok())).count() > 0);
    }
}

fn run_with_blocks(storage: &Storage) -> Vec<(BlockAddress, Vec<u8>)> {
    let mut writer = storage.runs.create().unwrap();
    let mut blocks = Vec::new();
    for (index, compression) in [Compression::None, Compression::Lz4, Compression::Zstd]
        .iter()
        .enumerate()
    {
        let raw: Vec<u8> = (0..3000).map(|i| (i / 100 + index) as u8).collect();
        let block = encode_block(&raw, *compression);
        blocks.push((writer.append(&block).unwrap(), raw));
    }
    writer.finish().unwrap();
    blocks
}

#[test]
fn changed_byte_of_a_run_is_refused() {
    let disk = MemoryDisk::new();
    let blocks = run_with_blocks(&open(&disk));
    let path = "runs/000000000001.run";
    for offset in 0..length(&disk, path) {
        let storage = open(&flip(&disk, path, offset));
        let read: Vec<_> = blocks
            .iter()
            .map(|(at, _)| storage.runs.open_block(*at, Caching::Keep))
            .collect();
        let errors: Vec<String> = read
            .iter()
            .filter_map(|read| Some(read.as_ref().err()?.to_string()))
            .collect();
        let inside = blocks.iter().find(|(at, _)| {
            (at.offset..at.offset + u64::from(at.length_stored)).contains(&(offset as u64))
        });
        let (count, start) = match inside {
            Some((at, _)) => (
                1,
                format!("memory:/{path}, block at byte {} is dam", at.offset),
            ),
            None => (blocks.len(), format!("memory:/{path} is damaged: its ")),
        };
        assert_eq!(errors.len(), count, "byte {offset}: {errors:?}");
        assert!(
            errors.iter().all(|error| error.starts_with(&start)),
            "{offset}: {errors:?}"
        );
    }
}

/// A valid block at the offset of another block must fail its checksum.
#[test]
fn block_in_the_wrong_place_is_refused() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let mut writer = storage.runs.create().unwrap();
    let first = writer
        .append(&encode_block(&[1; 100], Compression::None))
        .unwrap();
    let second = writer
        .append(&encode_block(&[2; 100], Compression::None))
        .unwrap();
    writer.finish().unwrap();
    disk.spoil("runs/000000000001.run", |bytes| {
        let (from, length) = (first.offset as usize, first.length_stored as usize);
        bytes.copy_within(from..from + length, second.offset as usize);
    });
    assert_eq!(
        &*storage.runs.open_block(first, Caching::Keep).unwrap(),
        &[1; 100]
    );
    let error = storage
        .runs
        .open_block(second, Caching::Keep)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("is damaged: its checksum does not match"),
        "{error}"
    );
    let beyond = BlockAddress {
        offset: 10_000,
        ..first
    };
    let error = storage
        .runs
        .open_block(beyond, Caching::Keep)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("is damaged: it should have 116 bytes there"),
        "{error}"
    );
    let missing = BlockAddress {
        run: RunId(77),
        ..first
    };
    let error = storage
        .runs
        .open_block(missing, Caching::Keep)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "memory:/runs/000000000077.run is damaged: the file is missing"
    );
    let runs = HashSet::from([RunId(1), RunId(77)]);
    assert_eq!(storage.runs.retain(&runs).unwrap_err().to_string(), error);
}

#[test]
fn changed_byte_of_a_checkpoint_is_refused() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let changes = (0..10)
        .map(|i| RowChange::put(format!("key {i}"), vec![i; 20]))
        .collect();
    let position = storage.catalog.change(changes, |_| {}).unwrap();
    storage.catalog.checkpoint().unwrap();
    drop(storage);
    let path = format!("catalog/{:020}.checkpoint", position.0);
    for offset in 0..length(&disk, &path) {
        let error = refusal(&flip(&disk, &path, offset));
        assert!(
            error.starts_with(&format!("memory:/{path} is damaged: ")),
            "{offset}: {error}"
        );
    }
}

/// The only file of the log was deleted. The log then ends before the catalog's checkpoint.
#[test]
fn log_that_ends_before_the_checkpoint_is_refused() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    storage
        .catalog
        .change(vec![RowChange::put("a", "1")], |_| {})
        .unwrap();
    storage.catalog.checkpoint().unwrap();
    drop(storage);
    disk.remove("log/000000000001.log").unwrap();
    let expected = "memory:/log is damaged: it ends with record 0, but the catalog's checkpoint \
        is of record 1";
    assert_eq!(refusal(&disk), expected);
}

#[test]
fn folder_with_a_bad_format_file_is_refused() {
    let unknown = "memory:/FORMAT says \"windrow data format 2\", a format that this version of \
        Windrow does not know";
    let cases: [(&[u8], &str); 3] = [
        (b"windrow data format 2\n", unknown),
        (
            b"",
            "memory:/FORMAT is damaged: it should say which format it is, and says \"\"",
        ),
        (
            b"\xffgarbage",
            "memory:/FORMAT is damaged: it should say which format it is",
        ),
    ];
    for (content, expected) in cases {
        let disk = MemoryDisk::new();
        drop(open(&disk));
        disk.spoil("FORMAT", |bytes| *bytes = content.to_vec());
        let error = refusal(&disk);
        assert!(error.starts_with(expected), "{error}");
    }
    let disk = MemoryDisk::new();
    drop(open(&disk));
    disk.remove("FORMAT").unwrap();
    let error = refusal(&disk);
    assert_eq!(
        error,
        "memory:/FORMAT is damaged: it is missing, though \"catalog\" stands beside it"
    );
    let disk = MemoryDisk::new();
    disk.create("holiday.jpg").unwrap();
    let error = refusal(&disk);
    assert!(
        error.starts_with("memory:/ is not a Windrow data folder"),
        "{error}"
    );
    assert!(error.contains("holiday.jpg"), "{error}");
    assert_eq!(
        disk.list("").unwrap(),
        ["holiday.jpg"],
        "nothing was created"
    );
    assert!(try_open(&MemoryDisk::new()).is_ok());
}

/// After `shorten_start` a start reads only the newest segment: damage in the older one does not
/// prevent it. Power loss at any time leaves all rows.
#[test]
fn shortened_start_skips_the_older_segment() {
    let disk = MemoryDisk::new();
    let open = |disk: &MemoryDisk| {
        Storage::open(Arc::new(disk.clone()), StorageOptions::default()).unwrap()
    };
    let storage = open(&disk);
    let change = |value: u8| RowChange::put("row", [value]);
    assert!(!storage.shorten_start(change(1)).unwrap());
    for seed in 0..3 {
        let payload = Random(seed).payload(500_000);
        storage.log.append(&[&payload], |_| {}).unwrap();
    }
    assert!(storage.shorten_start(change(2)).unwrap());
    assert!(!storage.shorten_start(change(3)).unwrap());
    let written = storage.log.written();
    drop(storage);
    let first = "log/000000000001.log";
    for damaged in [
        flip(&disk, first, 700_000),
        disk.crash(Crash::Tearing { seed: 5 }),
    ] {
        let again = open(&damaged);
        assert_eq!(again.log.written(), written);
        assert_eq!(again.catalog.get(b"row").as_deref(), Some(&[2][..]));
        assert_eq!(again.log.read_from(written.next()).count(), 0);
        let position = again.log.append(&[b"more"], |_| {}).unwrap();
        assert_eq!(position, written.next());
    }
}
