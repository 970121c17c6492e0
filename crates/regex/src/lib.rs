//! Regular expressions in PCRE's syntax, with bounded steps and memory.
//!
//! Patterns come from clients, so a search must end: it checks an interrupt while it matches, and
//! the backtracking engine fails after a number of steps, as PCRE does. There are two engines:
//!
//! - The linear engine (crate `regex-automata`) runs every pattern without look-around,
//!   back-references and atomic groups, in time linear in the text.
//! - The backtracking engine is Windrow's own, because no crate has one that can be interrupted:
//!   `fancy-regex`, `regress`, and the bindings of PCRE2 and Oniguruma have no such check.
//!
//! Compiled patterns share a budget of 256 MiB. A pattern that does not fit is compiled for each
//! search.
//!
//! A [`Regex`] is one compiled pattern. A [`RegexSet`] is a set of patterns, and tests if any of
//! them matches. [`prefix()`] returns the literal text that every match begins with.
//!
//! This crate does not know BSON or MongoDB's error codes.
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
