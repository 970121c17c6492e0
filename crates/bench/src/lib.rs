//! The workloads of `bench/`, measured over the wire beside a baseline in the same run.
//!
//! Each workload starts a server on a temporary data folder, feeds it from a seeded generator,
//! stops it, runs the rival on the same data, and prints a table and one line of JSON.
//!
//! It is not for tests of behaviour: it checks only that the server did the work that was timed.
//! It shares no code with the server; its BSON and its client are its own.
//!
//! ```
//! use windrow_bench::random::Random;
//! let (mut one, mut other) = (Random::new(7), Random::new(7));
//! assert_eq!(one.next(), other.next());
//! ```
//!
//! In reading order: [`options`], what is measured and with what; [`random`], [`corpus`] and [`entries`],
//! the documents and what indexes store of them; [`bson`], [`client`], [`server`]
//! [`load`], [`cursor`] and [`crowd`], the way to the server, with [`json`] for commands as text;
//! [`rival`] and [`calibration`], the way to the baseline; [`measure`], times; [`report`], what is
//! printed; then a module for each workload.

pub mod options;

pub mod error;
pub mod random;

pub mod corpus;
pub mod entries;

pub mod bson;
pub mod client;
pub mod crowd;
pub mod cursor;
pub mod json;
pub mod load;
pub mod server;

pub mod calibration;
pub mod rival;

pub mod measure;
pub mod report;
pub mod settle;

pub mod concurrency;
pub mod dump;
pub mod insertion;
pub mod reads;
pub mod space;
pub mod w1;
pub mod w2;
pub mod w3;
pub mod w4;
pub mod w5;
pub mod w8;
pub mod w9;
