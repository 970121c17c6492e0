//! Some hundreds of seeds; `make simulate` runs more.

use std::sync::atomic::{AtomicU64, Ordering};

use windrow_simulation::run::run;

const STEPS: usize = 150;

#[test]
fn seeds_answer_like_plain_maps() {
    let next = AtomicU64::new(1);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > 500 {
                return;
            }
            println!("seed {seed}");
            run(seed, STEPS);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}

#[test]
fn a_seed_writes_the_same_bytes_again() {
    for seed in [7, 8, 9, 10] {
        assert_eq!(run(seed, STEPS), run(seed, STEPS), "seed {seed}");
    }
}
