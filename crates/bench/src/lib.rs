//! Workloads that measure Windrow over the wire and compare it with a baseline in the same run.
//!
//! Each workload starts a server on a temporary data folder, inserts documents of a seeded
//! generator, measures, runs the baseline on the same data, and prints a table and a line of JSON.
//!
//! Not for: tests of behaviour. A workload only verifies that the server did the measured work. It
//! has its own BSON and its own client, and shares only SCRAM and TLS with the server.
//!
//! ```
//! use windrow_bench::random::Random;
//!
//! let (mut first, mut second) = (Random::new(7), Random::new(7));
//! assert_eq!(first.next(), second.next());
//! ```
//!
//! Modules in reading order:
//!
//! - [`options`], [`error`]: the command line and errors
//! - [`random`], [`corpus`], [`entries`]: generated documents and their index entries
//! - [`bson`], [`json`], [`client`], [`access`], [`server`], [`load`], [`cursor`], [`connections`],
//!   [`settle`]: access to the server
//! - [`rival`], [`calibration`]: baselines
//! - [`measure`], [`report`]: times and their output
//! - [`insertion`] and a module for each workload
#![deny(missing_docs)]

pub mod access;
pub mod bson;
pub mod calibration;
pub mod client;
pub mod concurrency;
pub mod connections;
pub mod corpus;
pub mod cursor;
pub mod dump;
pub mod entries;
pub mod error;
pub mod insertion;
pub mod json;
pub mod load;
pub mod measure;
pub mod options;
pub mod random;
pub mod reads;
pub mod report;
pub mod rival;
pub mod server;
pub mod settle;
pub mod space;
pub mod w1;
pub mod w2;
pub mod w3;
pub mod w4;
pub mod w5;
pub mod w7;
pub mod w8;
pub mod w9;
