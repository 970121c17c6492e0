//! The server: sockets, sessions, cursors and commands.
//!
//! [`Server::bind`] opens the sockets. [`Server::run`] serves each connection with a thread until a
//! [`Stop`] is requested. A message is parsed into a [`Request`](windrow_wire::Request). The
//! command that it names gets the request and a [`Context`]. [`commands`] has one file for each
//! command, and one table of all. A panic of a command does not affect the other connections.
//!
//! Not for: the bytes of messages (`windrow-wire`), or the semantics of documents, queries and
//! indexes.
//!
//! ```
//! use std::sync::Arc;
//! use windrow_server::{Config, Log, Server, Services};
//! let services = Services::in_memory(Arc::new(Log::to_nowhere()))?;
//! let config = Config { listen: vec!["127.0.0.1:0".parse()?], ..Config::default() };
//! let server = Server::bind(config, services)?;
//! let stop = server.stop();
//! let thread = std::thread::spawn(move || server.run());
//! stop.request();
//! thread.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reading order: `config`, `server`, `client`, `connection`, `dispatch`, `commands`,
//! `command`, `context`, `member`, `state`, `errors`, `shell_text`, `queries`,
//! `views`, `validators`, `collation`, `writes`, `changes`, `expiry`, `generic`,
//! `arguments`, `namespace`, `operations`, `sessions`, `retries`, `transactions`,
//! `joined`, `moments`, `joining`, `cursors`, `tailing`, `change_stream`, `listed`,
//! `verbosity`, `parameters`, `cluster_parameters`, `profiling`, `recorder`, `log`,
//! `metrics`, `latency`, `usage`, `statistics`, `stop`.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod arguments;
mod buffers;
mod change_stream;
pub mod changes;
pub mod client;
mod clock;
mod cluster_parameters;
pub mod collation;
mod collection_uuid;
pub mod command;
pub mod commands;
pub mod config;
pub mod connection;
pub mod context;
pub mod cursors;
pub mod dispatch;
pub mod errors;
mod expiry;
mod explained;
mod fail_points;
mod failing;
mod first_batch;
pub mod generic;
mod idle;
mod incoming;
pub mod index_builds;
pub mod joined;
mod joining;
mod labels;
pub mod latency;
pub mod listed;
pub mod log;
mod machine;
mod member;
pub mod metrics;
mod moments;
pub mod namespace;
pub mod operations;
pub mod parameters;
mod plan_summary;
pub mod profiling;
pub mod queries;
mod query_shape;
mod random;
mod recorder;
pub mod retries;
mod search_indexes;
pub mod server;
pub mod sessions;
pub mod shell_text;
pub mod stable_api;
mod state;
mod statistics;
pub mod stop;
mod storable;
mod sync;
mod tailing;
pub mod transactions;
pub mod usage;
pub mod validators;
pub mod verbosity;
mod version;
pub mod views;
pub mod writes;

pub use config::Config;
pub use context::Context;
pub use log::Log;
pub use server::Server;
pub use state::{Services, State, StatusSection};
pub use stop::Stop;
