//! Model tests: random operations on a storage and on plain collections, with crashes of every kind
//! in between. After a crash the log has a prefix of the appended records, at least up to the last
//! sync. The catalog has the result of the changes in that prefix.

mod common;

use std::collections::BTreeMap;

use common::{Random, open, set_encrypted, small, try_open};
use windrow_storage::{
    CatalogError, Crash, Disk, Expectation, MemoryDisk, Position, RowChange, Storage,
};

type Outcome = Result<(), CatalogError>;
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// An appended record.
#[derive(Clone)]
enum ModelRecord {
    Data(Vec<u8>),
    Rows(Vec<RowChange>),
}

/// The expected content of a storage.
struct Model {
    /// All appended records by position.
    records: BTreeMap<u64, ModelRecord>,
    rows: Rows,
    synced: u64,
    /// Records before this position may be dropped.
    dropped_before: u64,
}

impl Model {
    fn new() -> Self {
        Self {
            records: BTreeMap::new(),
            rows: Rows::new(),
            synced: 0,
            dropped_before: 1,
        }
    }

    fn newest(&self) -> u64 {
        self.records
            .last_key_value()
            .map_or(0, |(&position, _)| position)
    }

    fn rows_at(&self, position: u64) -> Rows {
        let mut rows = Rows::new();
        for record in self.records.range(..=position).map(|(_, record)| record) {
            if let ModelRecord::Rows(changes) = record {
                changes.iter().for_each(|change| apply(&mut rows, change));
            }
        }
        rows
    }

    /// Compares the model with a storage that was opened after a crash. Removes the records that
    /// the crash lost from the model.
    fn settle(&mut self, storage: &Storage, story: &str) {
        let newest = storage.log.written().0;
        assert!(
            newest >= self.synced,
            "{story}: synced {}, found {newest}",
            self.synced
        );
        assert!(
            newest <= self.newest(),
            "{story}: appended {}, found {newest}",
            self.newest()
        );
        self.records.retain(|&position, _| position <= newest);
        self.rows = self.rows_at(newest);
        self.synced = newest;
        self.check(storage, story);
    }

    fn check(&self, storage: &Storage, story: &str) {
        let found: Rows = storage
            .catalog
            .scan(b"")
            .into_iter()
            .map(|(key, value)| (key, value.to_vec()))
            .collect();
        assert_eq!(found, self.rows, "{story}: rows");
        let mut records = storage.log.read_from(Position(self.dropped_before));
        for (position, expected) in self.records.range(self.dropped_before..) {
            if let ModelRecord::Data(payload) = expected {
                let record = records.next().expect(story).expect(story);
                assert_eq!(record.position.0, *position, "{story}");
                assert!(record.payload == *payload, "{story}: payload of {position}");
            }
        }
        assert!(
            records.next().is_none(),
            "{story}: more records than were appended"
        );
    }
}

fn apply(rows: &mut Rows, change: &RowChange) {
    match &change.value {
        Some(value) => rows.insert(change.key.clone(), value.clone()),
        None => rows.remove(&change.key),
    };
}

/// Makes a random change of the catalog. The change enters the model first: if it fails, a crash
/// may keep it or lose it.
fn change(model: &mut Model, storage: &Storage, random: &mut Random) -> Outcome {
    let mut keys = BTreeMap::new();
    for _ in 0..=random.below(3) {
        let key = format!("row {}", random.below(20)).into_bytes();
        let length = random.below(200) as usize;
        let value = (random.below(4) > 0).then(|| random.payload(length));
        let expected = match (random.below(3), model.rows.get(&key)) {
            (0, _) => Expectation::Any,
            (_, Some(value)) => Expectation::Value(value.clone()),
            (_, None) => Expectation::Absent,
        };
        keys.insert(
            key.clone(),
            RowChange {
                key,
                expected,
                value,
            },
        );
    }
    let changes: Vec<RowChange> = keys.into_values().collect();
    let attempted = model.newest() + 1;
    changes
        .iter()
        .for_each(|change| apply(&mut model.rows, change));
    model
        .records
        .insert(attempted, ModelRecord::Rows(changes.clone()));
    let position = storage.catalog.change(changes, |_| {})?;
    assert_eq!(position.0, attempted);
    model.synced = attempted;
    Ok(())
}

/// Makes a random operation on the model and on the storage.
fn step(model: &mut Model, storage: &Storage, random: &mut Random) -> Outcome {
    match random.below(20) {
        0..12 => {
            let length = [random.below(100), random.below(3000), random.below(12_000)]
                [random.below(3) as usize] as usize;
            let payload = random.payload(length);
            let (left, right) = payload.split_at(length / 3);
            let attempted = model.newest() + 1;
            model
                .records
                .insert(attempted, ModelRecord::Data(payload.clone()));
            let position = storage.log.append(&[left, right], |_| {})?;
            assert_eq!(position.0, attempted);
        }
        12..15 => {
            let position = random.below(model.newest() + 1);
            storage.log.sync(Position(position))?;
            model.synced = model.synced.max(position);
        }
        15..18 => change(model, storage, random)?,
        18 => {
            let position = random.below(model.newest() + 2).max(model.dropped_before);
            model.dropped_before = position;
            storage.drop_log_before(Position(position))?;
            if storage.log.first().0 > 1 {
                model.synced = model.synced.max(storage.log.synced().0);
            }
        }
        _ => storage.catalog.checkpoint()?,
    }
    Ok(())
}

/// Runs several lives of one disk. Each ends with a close or a crash.
fn run(seed: u64) {
    set_encrypted(seed % 2 == 1);
    let mut random = Random(seed);
    let mut disk = MemoryDisk::new();
    let mut model = Model::new();
    for life in 0..6 {
        let story = format!("seed {seed}, life {life}");
        let storage = open(&disk);
        model.settle(&storage, &story);
        for _ in 0..random.below(60) {
            step(&mut model, &storage, &mut random).expect("a step");
        }
        model.check(&storage, &story);
        let end = random.below(5);
        let crashed = match end {
            0 => {
                model.synced = model.newest();
                drop(storage);
                continue;
            }
            1 => {
                model.synced = model.newest();
                disk.crash(Crash::OfProcess)
            }
            2 => disk.crash(Crash::LosingUnsynced),
            _ => disk.crash(Crash::Tearing {
                seed: random.next(),
            }),
        };
        disk = crashed;
    }
    let storage = open(&disk);
    model.settle(&storage, &format!("seed {seed}, at the end"));
}

#[test]
fn crash_leaves_a_prefix() {
    (0..400).for_each(run);
}

#[test]
fn power_loss_after_recovery_loses_nothing() {
    for seed in 0..200 {
        set_encrypted(seed % 2 == 1);
        let mut random = Random(seed);
        let disk = MemoryDisk::new();
        let storage = open(&disk);
        let mut model = Model::new();
        for _ in 0..80 {
            step(&mut model, &storage, &mut random).expect("a step");
        }
        let torn = disk.crash(Crash::Tearing { seed });
        let first = open(&torn);
        let newest = first.log.written();
        // The start truncated and removed files. These changes may be torn too.
        let torn_again = torn.crash(Crash::Tearing { seed: seed + 1000 });
        let second = open(&torn_again);
        assert_eq!(second.log.written(), newest, "seed {seed}");
        model.settle(&second, &format!("seed {seed}"));
    }
}

/// A sequence of operations ends after its first, second, third … change of the disk: in an append,
/// a sync, a checkpoint or a drop. The starts after it end in the same way.
#[test]
fn crash_after_every_change_of_the_disk_leaves_a_prefix() {
    let (mut ends, mut starts) = (0, 0);
    for changes in 0..600 {
        set_encrypted(changes % 2 == 1);
        let mut random = Random(changes / 50);
        let mut model = Model::new();
        let disk = MemoryDisk::new();
        disk.set_changes_left(Some(changes));
        let Ok(storage) = try_open(&disk) else {
            open(&disk.crash(Crash::Tearing { seed: changes }));
            continue;
        };
        let mut steps = 0..400;
        if steps.all(|_| step(&mut model, &storage, &mut random).is_ok()) {
            continue;
        }
        ends += 1;
        let mut crashed = disk.crash(Crash::Tearing { seed: changes });
        for more in 0..8 {
            crashed.set_changes_left(Some(more));
            starts += u64::from(try_open(&crashed).is_err());
            crashed = crashed.crash(Crash::Tearing {
                seed: changes + more,
            });
        }
        model.settle(&open(&crashed), &format!("after {changes} changes"));
    }
    assert!(
        ends > 300 && starts > 300,
        "{ends} sequences and {starts} starts ended early"
    );
}

fn payloads(storage: &Storage) -> Vec<Vec<u8>> {
    let records = storage.log.read_from(Position(1));
    records
        .map(|record| record.expect("a record").payload)
        .collect()
}

/// The log has three unsynced records of the same length. A power loss tears the second one only,
/// so the log ends after the first. The next record replaces the second one exactly. Behind it are
/// the bytes of the third one, with the next position and valid checksums. If the start did not cut
/// them off, the third record would be in the log again.
#[test]
fn records_after_a_torn_record_do_not_return() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    for payload in [b"record 1", b"record 2", b"record 3"] {
        storage.log.append(&[payload], |_| {}).expect("an append");
    }
    let torn = disk.crash(Crash::OfProcess);
    torn.spoil("log/000000000001.log", |bytes| bytes[48 + 56 + 50] ^= 1);
    let storage = open(&torn);
    assert_eq!(payloads(&storage), [b"record 1"]);
    storage
        .log
        .append(&[b"record B"], |_| {})
        .expect("an append");
    for crash in [
        Crash::OfProcess,
        Crash::Tearing { seed: 1 },
        Crash::Tearing { seed: 2 },
    ] {
        let found = payloads(&open(&torn.crash(crash)));
        assert!(
            found == [b"record 1", b"record B"] || found == [b"record 1"],
            "{found:?}"
        );
    }
}

/// A process dies with unsynced records, the next process reads them, and then power is lost. The
/// second process reports them as durable, so it must sync them at its start.
#[test]
fn start_makes_recovered_records_durable() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let position = storage
        .log
        .append(&[b"unsynced"], |_| {})
        .expect("an append");
    let killed = disk.crash(Crash::OfProcess);
    let storage = open(&killed);
    storage.log.sync(position).expect("a sync");
    let storage = open(&killed.crash(Crash::LosingUnsynced));
    assert_eq!(payloads(&storage), [b"unsynced"]);
}

/// The checkpoint has all changes, one more record begins a segment, and all segments before it are
/// dropped. After a power loss, only the header of the new segment has the next position.
#[test]
fn drop_of_segments_keeps_the_numbering() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    for _ in 0..60 {
        storage.catalog.checkpoint().expect("a checkpoint");
        let position = storage.log.append(&[&[1; 400]], |_| {}).expect("an append");
        storage.drop_log_before(position).expect("a drop");
        let found = open(&disk.crash(Crash::LosingUnsynced)).log.written();
        assert!(found >= storage.catalog.checkpointed() && found <= position);
    }
    assert_eq!(
        disk.list("log")
            .expect("a list")
            .iter()
            .filter(|name| name.ends_with("log"))
            .count(),
        1
    );
}

#[test]
fn conflict_changes_no_row() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let put = |key: &str, value: &str, expected| {
        RowChange::put(key.as_bytes(), value.as_bytes()).expecting(expected)
    };
    let change = |changes| storage.catalog.change(changes, |_| {});
    change(vec![put("a", "1", Expectation::Absent)]).expect("a is absent");
    let newest = storage.log.written();
    let cases = [
        vec![
            put("b", "2", Expectation::Any),
            put("a", "2", Expectation::Absent),
        ],
        vec![
            put("b", "2", Expectation::Any),
            put("a", "2", Expectation::Value(b"0".to_vec())),
        ],
        vec![
            put("b", "2", Expectation::Any),
            put("c", "2", Expectation::Value(Vec::new())),
        ],
    ];
    for changes in cases {
        let key = changes[1].key.clone();
        match change(changes) {
            Err(CatalogError::Conflict(found)) => assert_eq!(found, key),
            other => panic!("{other:?}"),
        }
        assert_eq!(storage.catalog.scan(b"").len(), 1);
        assert_eq!(storage.log.written(), newest);
    }
    change(vec![put("a", "2", Expectation::Value(b"1".to_vec()))]).expect("a is 1");
    assert_eq!(storage.catalog.get(b"a").as_deref(), Some(&b"2"[..]));
    let long = change(vec![RowChange::put("long", vec![0; 4097])]).expect_err("too long");
    assert_eq!(
        long.to_string(),
        "the value of a catalog row has 4097 bytes, the limit is 4096"
    );
    assert_eq!(small().log.segment_bytes, 8 << 10);
}
