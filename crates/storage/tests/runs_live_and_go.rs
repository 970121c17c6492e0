//! Runs: what is written is read, through the cache and past it; files go when nobody needs them.

mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;

use common::{Random, open};
use windrow_storage::{
    BlockAddress, Caching, Compression, Crash, Disk, MemoryDisk, RunId, Runs, encode_block,
};

const HOW: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

type Written = Vec<(BlockAddress, Vec<u8>)>;

fn write_run(runs: &Runs, random: &mut Random, lengths: &[usize]) -> (RunId, Written) {
    let mut writer = runs.create().unwrap();
    let mut blocks = Vec::new();
    for (&length, how) in lengths.iter().zip(HOW.iter().cycle()) {
        let raw = random.payload(length);
        let block = encode_block(&raw, *how);
        assert_eq!(block.length_raw() as usize, length);
        let address = writer.append(&block).unwrap();
        assert_eq!(address.length_stored, block.length_stored());
        assert_eq!(BlockAddress::from_bytes(&address.to_bytes()), Some(address));
        blocks.push((address, raw));
    }
    (writer.finish().unwrap(), blocks)
}

fn check_blocks(runs: &Runs, blocks: &Written) {
    for (address, raw) in blocks {
        assert!(
            *runs.open_block(*address, Caching::Past).unwrap() == **raw,
            "{address:?}"
        );
        assert!(
            *runs.open_block(*address, Caching::Keep).unwrap() == **raw,
            "{address:?}"
        );
    }
}

#[test]
fn what_is_written_is_read() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let mut random = Random(1);
    let lengths = [
        0,
        1,
        100,
        32 << 10,
        33 << 10,
        5,
        17 << 20,
        2 << 20,
        1 << 20,
        0,
        40_000,
    ];
    let (run, blocks) = write_run(&storage.runs, &mut random, &lengths);
    check_blocks(&storage.runs, &blocks);
    assert_eq!(storage.runs.list().unwrap(), [run]);
    // finish() synced everything: power may go.
    drop(storage);
    let storage = open(&disk.crash(Crash::LosingUnsynced));
    check_blocks(&storage.runs, &blocks);
    let (next, _) = write_run(&storage.runs, &mut random, &[10]);
    assert!(next > run);
}

#[test]
fn a_removed_run_lives_as_long_as_its_handles() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let (run, blocks) = write_run(&storage.runs, &mut Random(2), &[1000, 2000]);
    let exists = || disk.open("runs/000000000001.run").is_ok();
    let handle = storage.runs.handle(run).unwrap();
    assert_eq!(handle.run(), run);
    let other = handle.clone();
    storage.runs.remove(run).unwrap();
    assert_eq!(storage.runs.list().unwrap(), []);
    check_blocks(&storage.runs, &blocks);
    drop(handle);
    check_blocks(&storage.runs, &blocks);
    assert!(exists());
    drop(other);
    assert!(!exists());
    assert_eq!(
        storage.runs.cache_bytes(),
        0,
        "its blocks are forgotten too"
    );
    assert!(storage.runs.open_block(blocks[0].0, Caching::Keep).is_err());
    let (second, _) = write_run(&storage.runs, &mut Random(3), &[10]);
    storage.runs.remove(second).unwrap();
    assert!(
        disk.list("runs").unwrap().is_empty(),
        "without handles it goes at once"
    );
}

#[test]
fn orphans_go_at_the_start() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let mut random = Random(4);
    let (kept, blocks) = write_run(&storage.runs, &mut random, &[10, 20]);
    let (orphan, _) = write_run(&storage.runs, &mut random, &[10]);
    let unfinished = storage.runs.create().unwrap();
    let killed = disk.crash(Crash::OfProcess);
    let again = open(&killed);
    assert_eq!(again.runs.list().unwrap(), [kept, orphan]);
    assert_eq!(killed.list("runs").unwrap().len(), 3);
    again.runs.retain(&HashSet::from([kept])).unwrap();
    assert_eq!(killed.list("runs").unwrap().len(), 1);
    check_blocks(&again.runs, &blocks);
    drop(unfinished);
    assert_eq!(
        disk.list("runs").unwrap().len(),
        2,
        "dropped unfinished, it removes its file"
    );
}

#[test]
fn the_cache_keeps_to_its_budget() {
    let storage = open(&MemoryDisk::new());
    let lengths = [20_000; 200];
    let (_, blocks) = write_run(&storage.runs, &mut Random(5), &lengths);
    check_blocks(&storage.runs, &blocks);
    let full = storage.runs.cache_bytes();
    assert!(full > 500_000 && full <= 1 << 20, "{full}");
    storage.runs.set_cache_bytes_max(200_000);
    check_blocks(&storage.runs, &blocks);
    assert!(
        storage.runs.cache_bytes() <= 200_000,
        "{}",
        storage.runs.cache_bytes()
    );
}

#[test]
fn reading_past_the_cache_leaves_it_alone() {
    let storage = open(&MemoryDisk::new());
    let (_, blocks) = write_run(&storage.runs, &mut Random(6), &[1000; 20]);
    for (address, raw) in &blocks {
        assert!(*storage.runs.open_block(*address, Caching::Past).unwrap() == **raw);
    }
    assert_eq!(storage.runs.cache_bytes(), 0);
}

#[test]
fn readers_writers_and_removal_at_once() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let runs: &Arc<Runs> = &storage.runs;
    thread::scope(|scope| {
        for seed in 0..6 {
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..40 {
                    let (run, blocks) = write_run(runs, &mut random, &[3000, 10, 40_000]);
                    let handle = runs.handle(run).unwrap();
                    thread::scope(|readers| {
                        readers.spawn(|| check_blocks(runs, &blocks));
                        readers.spawn(|| runs.remove(run).unwrap());
                        check_blocks(runs, &blocks);
                    });
                    drop(handle);
                }
            });
        }
    });
    assert!(disk.list("runs").unwrap().is_empty());
    assert_eq!(runs.cache_bytes(), 0);
}
