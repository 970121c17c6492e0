//! The server: sockets, sessions, cursors and commands.
//!
//! [`Server::bind`] opens the sockets. [`Server::run`] serves each connection with a thread until a
//! [`Stop`] is requested. A message is parsed into a [`Request`](windrow_wire::Request). The
//! command that it names gets the request and a `Context`. `commands` has one file for each
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
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod arguments;
mod buffers;
mod change_stream;
mod changes;
mod client;
mod clock;
mod cluster_parameters;
mod collation;
mod collection_uuid;
mod command;
mod commands;
mod config;
mod connection;
mod context;
mod cursors;
mod dispatch;
mod errors;
mod expiry;
mod explained;
mod fail_points;
mod failing;
mod first_batch;
mod generic;
mod idle;
mod incoming;
mod index_builds;
mod joined;
mod joining;
mod labels;
mod latency;
mod listed;
mod log;
mod machine;
mod member;
mod metrics;
mod moments;
mod namespace;
mod operations;
mod parameters;
mod plan_summary;
mod profiling;
mod queries;
mod query_shape;
mod random;
mod recorder;
mod retries;
mod search_indexes;
mod server;
mod sessions;
mod shell_text;
mod stable_api;
mod state;
mod statistics;
mod stop;
mod storable;
mod sync;
mod tailing;
mod transactions;
mod usage;
mod validators;
mod verbosity;
mod version;
mod views;
mod writes;

pub use config::Config;
pub use index_builds::log_resumed_builds;
pub use log::{Log, Severity};
pub use parameters::parse_parameter_value;
pub use server::Server;
pub use state::{Services, State, StatusSection};
pub use stop::Stop;
