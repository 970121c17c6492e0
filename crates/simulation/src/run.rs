//! One run of one seed.

use crate::world::World;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What happened, in one number.
    pub trace: u64,
    /// All bytes of the disk, in one number.
    pub disk: u64,
}

/// Runs a seed for so many steps.
///
/// # Panics
/// Where the engine answers otherwise than the model, or fails without a reason.
pub fn run(seed: u64, steps: usize) -> Ended {
    let world = World::new(seed);
    world.create();
    for _ in 0..steps {
        world.step();
        if std::env::var_os("WINDROW_SIMULATION_THOROUGH").is_some() {
            world.check_all();
        }
    }
    world.with(|state| state.ending = true);
    world.crash();
    world.resume_builds();
    world.fold();
    while world.some_merge() {}
    world.check_all();
    world.with(|state| Ended {
        trace: state.trace,
        disk: state.disk.digest(),
    })
}
