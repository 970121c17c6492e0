//! The engine on a simulated disk, driven by one seed.
//!
//! A run is a sequence of steps that the seed decides: writes, reads, index builds, drops, folds,
//! merges, failures of the disk, crashes. A step that lasts (a fold, a merge, a build) lets others
//! happen inside it, between the blocks that it writes. A plain map beside the engine judges every
//! read. There are no threads that do anything unasked, no clock and no random bytes but the seed's, so
//! that a run of the same seed writes the same bytes.
//!
//! Reading order: [`random`], [`model`], [`world`], `writes`, `reads`, `changes`, `transactions`, `work`, `faults`, [`run`](mod@run).
#![forbid(unsafe_code)]

mod changes;
mod faults;
pub mod model;
pub mod random;
mod reads;
pub mod run;
mod transactions;
mod work;
pub mod world;
mod writes;
