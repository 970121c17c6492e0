//! Fuzz targets: a function for each reader of untrusted bytes.
//!
//! A [`Target`] takes arbitrary bytes and panics if a reader panics, hangs, or accepts invalid
//! input. It also checks properties: decoding reverses encoding, an index finds what a scan finds,
//! an update produces valid BSON.
//!
//! Not for: production. The product never links this crate.
//!
//! - `fuzz/` (a separate workspace, because it needs a nightly compiler) runs the targets with
//!   libFuzzer.
//! - `tests/saved_inputs.rs` runs the inputs of `corpus/` on every test run: seeds with a high
//!   coverage, and every input that revealed a bug, with a comment about it.
//! - [`value_encoding`] decodes arbitrary bytes as documents. Random bytes are almost never valid
//!   BSON, so parsers of commands need generated documents, with names that the parsers know.
//!
//! ```
//! windrow_fuzz_targets::run("filter", b"arbitrary bytes");
//! ```
//!
//! Modules in reading order:
//!
//! - [`value_encoding`]: arbitrary bytes as values
//! - `targets`: a file for each target
//! - [`corpus`]: saved inputs
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod corpus;
mod targets;
pub mod value_encoding;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target, its corpus and its binary in `fuzz/`.
    pub name: &'static str,
    /// Runs the target on an input. Panics if the input reveals a bug.
    pub run: fn(&[u8]),
}

/// All targets, sorted by name.
pub const TARGETS: &[Target] = &[
    Target {
        name: "block",
        run: targets::block::run,
    },
    Target {
        name: "bson",
        run: targets::bson::run,
    },
    Target {
        name: "catalog",
        run: targets::catalog::run,
    },
    Target {
        name: "commit",
        run: targets::commit::run,
    },
    Target {
        name: "disk",
        run: targets::disk::run,
    },
    Target {
        name: "encrypted",
        run: targets::encrypted::run,
    },
    Target {
        name: "expression",
        run: targets::expression::run,
    },
    Target {
        name: "filter",
        run: targets::filter::run,
    },
    Target {
        name: "geo",
        run: targets::geo::run,
    },
    Target {
        name: "pipeline",
        run: targets::pipeline::run,
    },
    Target {
        name: "plan",
        run: targets::plan::run,
    },
    Target {
        name: "regex",
        run: targets::regex::run,
    },
    Target {
        name: "sasl",
        run: targets::sasl::run,
    },
    Target {
        name: "search",
        run: targets::search::run,
    },
    Target {
        name: "text",
        run: targets::text::run,
    },
    Target {
        name: "update",
        run: targets::update::run,
    },
    Target {
        name: "wire",
        run: targets::wire::run,
    },
];

/// Runs a target on an input.
///
/// # Panics
/// Panics if the input reveals a bug, and if there is no target with this name.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target has this name").run)(bytes);
}
