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
//! Modules in reading order:
//!
//! - `config`, `server`, `admission`, `connection`, `client`, `stop`, `signals`: connections and
//!   threads; `connector`: connections within the process
//! - `listener`, `socket`, `network_address`, `transport`, `tls`: sockets and encryption;
//!   `adaptive_wait` and `buffers` receive messages
//! - `dispatch`, `time_limits`: from a request to its reply; `command` and `commands`: the table of
//!   commands; `context`, `state`: the data that commands use; `errors`, `error_labels`: their
//!   errors
//! - `access`: users and what they may do
//! - `audit`, `auditing`, `authorization_audit`: the audit log
//! - `arguments`, `common_arguments`, `namespace`, `collection_uuid`, `collation`, `stable_api`:
//!   parsing of requests
//! - `queries`, `views`, `first_batch`, `cursors`, `list_cursor`, `tailable_cursor`,
//!   `change_stream`, `snapshot_reads`, `explanation`, `plan_summary`, `query_shape`: reads
//! - `writes`, `changes`, `insert_preparation`, `validators`, `retries`, `expiry`: writes
//! - `queryable_encryption`: commands on encrypted fields
//! - `index_builds`, `search_indexes`: builds of indexes
//! - `sessions`, `transactions`, `transaction_admission`, `transaction_context`, `idle`: sessions
//!   and transactions
//! - `operations`, `operation_slots`, `log`, `recorder`, `profiling`, `verbosity`, `metrics`,
//!   `latency`, `usage`, `shown_command`, `statistics`, `machine`, `shell_text`, `traces`,
//!   `command_spans`: monitoring
//! - `parameters`, `cluster_parameters`, `fail_points`, `fail_point_effects`, `replica_set`:
//!   settings
//! - `clock`, `random`, `sync`, `version`
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod access;
mod acknowledgment;
mod adaptive_wait;
mod admission;
mod arguments;
mod audit;
mod auditing;
mod authorization_audit;
mod buffers;
mod change_stream;
mod changes;
mod client;
mod clock;
mod cluster_parameters;
mod collation;
mod collection_uuid;
mod command;
mod command_spans;
mod commands;
mod common_arguments;
mod config;
mod connection;
mod connector;
mod context;
mod cursors;
mod data_set_host;
mod dispatch;
mod error_labels;
mod errors;
mod expiry;
mod explanation;
mod fail_point_effects;
mod fail_points;
mod first_batch;
mod housekeeping;
mod idle;
mod index_builds;
mod insert_preparation;
mod latency;
mod list_cursor;
mod listener;
mod log;
mod machine;
mod metrics;
mod metrics_page;
mod namespace;
mod network_address;
mod operation_slots;
mod operations;
mod parameters;
mod placement;
mod plan_summary;
mod profiling;
mod queries;
mod query_shape;
mod queryable_encryption;
mod random;
mod recorder;
mod replica_set;
mod retries;
mod role;
mod router;
mod search_index_renewal;
mod search_indexes;
mod server;
mod sessions;
mod shell_text;
mod shown_command;
mod signals;
mod snapshot_reads;
mod socket;
mod stable_api;
mod state;
mod statistics;
mod stop;
mod suspension;
mod sync;
mod tailable_cursor;
mod time_limits;
mod tls;
mod traces;
mod transaction_admission;
mod transaction_context;
mod transactions;
mod transport;
mod usage;
mod users_engine;
mod validators;
mod verbosity;
mod version;
mod views;
mod writes;

pub use access::directory::AccessControl;
pub use access::local_user::{LOCAL_USER, new_password};
pub use audit::{AuditFilter, AuditSettings, AuditTarget};
pub use config::{Config, UnixSocket};
pub use connector::Connector;
pub use data_set_host::{DataSetHost, OpenDataSet};
pub use index_builds::log_resumed_builds;
pub use log::{Log, LogRotation, LogTarget, Severity, SyslogFacility};
pub use metrics_page::metrics_page;
pub use network_address::NetworkAddress;
pub use parameters::parse_parameter_value;
pub use placement::{DataSetId, Placement, StoredPlacement};
pub use profiling::ProfilingLevel;
pub use router::{EncryptStream, Handover, Router, RouterSettings};
pub use server::Server;
pub use state::{RuntimeSettings, Services, State};
pub use stop::Stop;
pub use tls::{CERTIFICATE_WARNING_TIME, KeyPassword, TlsError, TlsMode, TlsSettings, TlsVersion};
pub use traces::{SpanQueue, Traces};
pub use users_engine::{FirstEngine, UsersEngine};
