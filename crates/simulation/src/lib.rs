//! Deterministic simulation of the engine on a simulated disk.
//!
//! A run consists of random steps that its seed determines: writes, reads, index builds, drops,
//! folds, merges, disk faults, crashes. During long steps (folds, merges, builds) other steps run
//! between the blocks that the long step writes. Every read is compared with a model of plain maps.
//! There are no background threads, no real clock and no random numbers except those of the seed,
//! so runs of the same seed write the same bytes.
//!
//! Not for: production. The product never links this crate.
//!
//! ```
//! use windrow_simulation::run::run;
//!
//! assert_eq!(run(1, 10), run(1, 10));
//! ```
//!
//! Modules in reading order:
//!
//! - [`random`]: the random numbers of a seed
//! - [`model`]: the expected state
//! - [`world`]: the state of a run
//! - `writes`, `reads`, `changes`, `transactions`, `work`, `faults`: the steps
//! - [`run`](mod@run): a whole run
//! - [`cluster`]: several servers over one object store
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod changes;
mod clock;
pub mod cluster;
mod faults;
pub mod model;
pub mod random;
mod reads;
pub mod run;
mod transactions;
mod work;
pub mod world;
mod writes;
