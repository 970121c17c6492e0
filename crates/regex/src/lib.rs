//! Regular expressions in PCRE's syntax, with bounded steps and memory.
//!
//! Patterns come from clients, so a search must end: it checks an interrupt while it matches, and
//! the backtracking engine fails after a number of steps, as PCRE does. Two engines share the work:
//!
//! - The linear engine (crate `regex-automata`) serves every pattern without look-around,
//!   back-references and atomic groups, in time linear in the text.
//! - The backtracking engine is Windrow's own, because no crate has one that can be interrupted:
//!   `fancy-regex` and `regress` have no such check, PCRE2's and Oniguruma's bindings offer none.
//!
//! Compiled patterns share a budget of 256 MiB; one that does not fit is compiled for each search.
//!
//! A [`Regex`] is one compiled pattern, a [`RegexSet`] many of which one must match. [`prefix()`]
//! gives the literal text that every match begins with.
//!
//! Not here: BSON, and MongoDB's error codes.
//!
//! ```
//! use windrow_interrupt::Uninterrupted;
//! use windrow_regex::{Options, Purpose, Regex};
//!
//! let regex = Regex::new(r"(\w)\1$", Options::default(), Purpose::Positions)?;
//! assert_eq!(regex.is_match("tree", &Uninterrupted), Ok(true));
//! let found = regex.captures_at("tree", 0, &Uninterrupted)?.unwrap();
//! assert_eq!(found, [Some(2..4), Some(2..3)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reading order: `search`, `syntax` (pattern to a tree), `hir`, `linear`, `program`,
//! `backtrack`, `budget`, `regex`, `set`.
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod backtrack;
mod budget;
mod error;
mod hir;
mod linear;
mod program;
mod regex;
mod search;
mod set;
mod syntax;

pub use error::{MatchError, ParseError};
pub use regex::{Purpose, Regex};
pub use search::Captures;
pub use set::RegexSet;
pub use syntax::{Options, prefix};
