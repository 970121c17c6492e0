//! `windrow-simulate [--servers] [--first SEED] [--seeds COUNT] [--steps COUNT]`: runs seeds on all
//! cores and reports those that fail. With `--servers`, several servers share an object store.
//!
//! `--first SEED --seeds 1` repeats a failed run. `WINDROW_SIMULATION_TRACE=1` prints its steps,
//! `WINDROW_SIMULATION_THOROUGH=1` checks everything after each step.

#![deny(missing_docs)]

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_simulation::cluster::{self, StoreMutation};
use windrow_simulation::run::run;

fn main() -> ExitCode {
    let mut numbers = [("--first", 1), ("--seeds", 1_000), ("--steps", 150)];
    let mut arguments = std::env::args().skip(1);
    let mut has_servers = false;
    while let Some(name) = arguments.next() {
        if name == "--servers" {
            has_servers = true;
            continue;
        }
        let known = numbers.iter_mut().find(|(known, _)| *known == name);
        let value = arguments.next().and_then(|text| text.parse().ok());
        let (Some((_, number)), Some(value)) = (known, value) else {
            eprintln!(
                "usage: windrow-simulate [--servers] [--first SEED] [--seeds COUNT] [--steps COUNT]"
            );
            return ExitCode::from(2);
        };
        *number = value;
    }
    let [first, seeds, steps] = numbers.map(|(_, number)| number);
    let next = AtomicU64::new(first);
    let failed = Mutex::new(Vec::new());
    let run_seeds = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                return;
            }
            let run_seed = || {
                if has_servers {
                    _ = cluster::run(seed, steps as usize, StoreMutation::None)
                } else {
                    _ = run(seed, steps as usize)
                }
            };
            if catch_unwind(run_seed).is_err() {
                eprintln!("seed {seed} failed");
                failed.lock().unwrap().push(seed);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(run_seeds);
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_unstable();
    println!(
        "{seeds} seeds from {first}, {steps} steps each: {} failed {failed:?}",
        failed.len()
    );
    ExitCode::from(u8::from(!failed.is_empty()))
}
