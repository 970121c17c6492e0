//! Runs 500 seeds of one server, and 300 of several. `make simulate` runs more.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_simulation::cluster::{self, ClusterReport, StoreMutation};
use windrow_simulation::run::run;

const STEPS: usize = 150;
const CLUSTER_STEPS: usize = 1000;

/// Runs the seeds from 1 on all cores.
fn run_all(seeds: u64, run_seed: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(1);
    let run_seeds = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > seeds {
                return;
            }
            println!("seed {seed}");
            run_seed(seed);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(run_seeds);
        }
    });
}

#[test]
fn the_engine_agrees_with_the_model() {
    run_all(500, |seed| _ = run(seed, STEPS));
}

#[test]
fn servers_agree_and_lose_nothing() {
    let total = Mutex::new(ClusterReport::default());
    run_all(300, |seed| {
        let report = cluster::run(seed, CLUSTER_STEPS, StoreMutation::None);
        let mut total = total.lock().unwrap();
        total.takeovers += report.takeovers;
        total.acknowledged += report.acknowledged;
        total.linearizable += report.linearizable;
        total.reloads += report.reloads;
        total.compared += report.compared;
        total.shares += report.shares;
        total.taken_back += report.taken_back;
    });
    let total = total.into_inner().unwrap();
    println!("{total:?}");
    assert!(total.takeovers > 1_500 && total.acknowledged > 10_000);
    assert!(total.linearizable > 500 && total.reloads > 100 && total.compared > 2_000);
    assert!(total.shares > 10 && total.taken_back > 100);
}

/// The simulation must notice if an object store breaks its promises.
#[test]
fn broken_object_stores_are_noticed() {
    for mutation in [StoreMutation::TwoWin, StoreMutation::LosesObjects] {
        let fails = |seed: &u64| {
            let seed = *seed;
            std::panic::catch_unwind(move || cluster::run(seed, CLUSTER_STEPS, mutation)).is_err()
        };
        assert!((1..=200).any(|seed| fails(&seed)), "{mutation:?}");
    }
}

#[test]
fn runs_are_deterministic() {
    for seed in [6, 7, 9, 10] {
        assert_eq!(run(seed, STEPS), run(seed, STEPS), "seed {seed}");
    }
    for seed in 1..4 {
        let run = || cluster::run(seed, CLUSTER_STEPS, StoreMutation::None);
        assert_eq!(run(), run(), "seed {seed} of several servers");
    }
    // The data folders of these seeds are encrypted with random keys.
    for seed in [8, 11] {
        let (one, other) = (run(seed, STEPS), run(seed, STEPS));
        assert_eq!(one.trace, other.trace, "seed {seed}");
        assert_ne!(one.disk, other.disk, "seed {seed}");
    }
}
