//! The life of a run: blocks are read as they were written, with and without the cache, and the
//! file is deleted after the run was removed and its last handle was dropped.

mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;

use common::{Random, open};
use windrow_storage::{
    BlockAddress, Caching, Compression, Crash, Disk, MemoryDisk, RunId, Runs, encode_block,
};

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

/// The addresses and raw bytes of the blocks of a run.
type RunBlocks = Vec<(BlockAddress, Vec<u8>)>;

fn write_run(runs: &Runs, random: &mut Random, lengths: &[usize]) -> (RunId, RunBlocks) {
    let mut writer = runs.create().unwrap();
    let mut blocks = Vec::new();
    for (&length, compression) in lengths.iter().zip(COMPRESSIONS.iter().cycle()) {
        let raw = random.payload(length);
        let block = encode_block(&raw, *compression);
        assert_eq!(block.length_raw() as usize, length);
        let address = writer.append(&block).unwrap();
        assert_eq!(address.length_stored, block.length_stored());
        assert_eq!(BlockAddress::from_bytes(&address.to_bytes()), Some(address));
        blocks.push((address, raw));
    }
    (writer.finish().unwrap(), blocks)
}

fn check_blocks(runs: &Runs, blocks: &RunBlocks) {
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
fn blocks_are_read_as_written() {
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
    // `finish` synced the run, so a power loss does not affect it.
    drop(storage);
    let storage = open(&disk.crash(Crash::LosingUnsynced));
    check_blocks(&storage.runs, &blocks);
    let (next, _) = write_run(&storage.runs, &mut random, &[10]);
    assert!(next > run);
}

#[test]
fn removed_run_is_readable_until_its_last_handle_drops() {
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
    assert_eq!(storage.runs.cache_bytes(), 0, "its blocks left the cache");
    assert!(storage.runs.open_block(blocks[0].0, Caching::Keep).is_err());
    let (second, _) = write_run(&storage.runs, &mut Random(3), &[10]);
    storage.runs.remove(second).unwrap();
    assert!(
        disk.list("runs").unwrap().is_empty(),
        "a run without handles is deleted at once"
    );
}

#[test]
fn retain_deletes_orphans_and_unfinished_runs() {
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
        "an unfinished writer removes its file when it is dropped"
    );
}

#[test]
fn cache_stays_below_its_limit() {
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
fn reads_past_the_cache_do_not_fill_it() {
    let storage = open(&MemoryDisk::new());
    let (_, blocks) = write_run(&storage.runs, &mut Random(6), &[1000; 20]);
    for (address, raw) in &blocks {
        assert!(*storage.runs.open_block(*address, Caching::Past).unwrap() == **raw);
    }
    assert_eq!(storage.runs.cache_bytes(), 0);
}

#[test]
fn concurrent_writes_reads_and_removes() {
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
