//! Runs of the simulation.

use crate::world::World;

/// The digests of a run. Runs of the same seed must have equal digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunDigest {
    /// A digest of all steps.
    pub trace: u64,
    /// A digest of all bytes on the disk.
    pub disk: u64,
}

/// Runs `steps` random steps and checks everything at the end.
///
/// # Panics
/// Panics if the engine and the model differ, or if the engine fails without a fault of the disk.
pub fn run(seed: u64, steps: usize) -> RunDigest {
    let world = World::new(seed);
    world.create();
    for _ in 0..steps {
        world.step();
        if std::env::var_os("WINDROW_SIMULATION_THOROUGH").is_some() {
            world.check_all();
        }
    }
    world.with(|state| state.is_ending = true);
    world.crash();
    world.resume_builds();
    world.fold();
    while world.merge_once() {}
    world.check_all();
    world.with(|state| RunDigest {
        trace: state.trace,
        disk: state.disk.digest(),
    })
}
