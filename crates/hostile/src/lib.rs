//! What bytes from outside must not do, whatever they are: one function for each reader of such bytes.
//!
//! A [`Target`] takes any bytes and panics where something is wrong: where a reader panics, hangs, or
//! accepts what it cannot honour. It asks for more than that no reader panics: what was decoded and
//! encoded again decodes to the same, an index finds what a scan finds, an update leaves valid BSON.
//!
//! `fuzz/` (a workspace of its own, since it needs a nightly compiler) lets libFuzzer look for such
//! bytes; `tests/known_inputs_do_no_harm.rs` runs those of `corpus/` on every test run: seeds that reach
//! much of the code, and every input that ever did harm, with its story. The product never links this.
//!
//! Readers of commands take documents, and random bytes are hardly ever one. [`grammar`] makes a
//! document of any bytes, with names that mean something to the parsers.
//!
//! Reading order: [`grammar`], then one file a target in `targets`, [`corpus`].
#![forbid(unsafe_code)]

pub mod corpus;
pub mod grammar;
mod targets;

/// A reader of outside bytes, and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All of them, by name.
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

/// Gives the bytes to the target of that name.
///
/// # Panics
/// Where the target finds something wrong, and where there is none of that name.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("the name of a target").run)(bytes);
}
