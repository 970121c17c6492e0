//! The clock and the random bytes of a run, in place of the real ones.

use std::cell::Cell;

use crate::random::mix;

thread_local! {
    /// The state of the engine's random number generator.
    static BYTES: Cell<u64> = const { Cell::new(0) };
    static CLOCK: Cell<u64> = const { Cell::new(0) };
    static IS_OF_RUN: Cell<bool> = const { Cell::new(false) };
}

/// Begins a run on this thread.
pub(crate) fn reset(seed: u64) {
    BYTES.set(mix(seed));
    CLOCK.set(0);
    IS_OF_RUN.set(true);
}

/// Returns whether this thread makes steps of a run.
pub(crate) fn is_of_run() -> bool {
    IS_OF_RUN.get()
}

/// Runs steps on a thread of their own, as if they were made by this thread, and waits for it.
pub(crate) fn on_another_thread(steps: impl FnOnce() + Send) {
    let (bytes, clock) = (BYTES.get(), CLOCK.get());
    let other = move || {
        BYTES.set(bytes);
        CLOCK.set(clock);
        IS_OF_RUN.set(true);
        steps();
        (BYTES.get(), CLOCK.get())
    };
    let ended = std::thread::scope(|scope| scope.spawn(other).join());
    let (bytes, clock) = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    BYTES.set(bytes);
    CLOCK.set(clock);
}

/// The simulated clock in milliseconds. It advances with each call.
pub(crate) fn now_ms() -> u64 {
    CLOCK.set(CLOCK.get() + 137);
    1_700_000_000_000 + CLOCK.get()
}

/// Fills a buffer with the random bytes of the run.
pub(crate) fn fill_random(bytes: &mut [u8]) {
    for byte in bytes {
        BYTES.set(mix(BYTES.get().wrapping_add(1)));
        *byte = BYTES.get() as u8;
    }
}
