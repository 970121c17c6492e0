//! The web page of a server, for searching indexed files and administering the database.
//!
//! Pages access the database as clients do: by the wire protocol, with the privileges of the
//! logged-in user. Privileges, the audit log and limits therefore apply without a second
//! implementation. The caller passes a function that opens a connection within the process
//! ([`PageServices`]).
//!
//! The crate contains no database logic and does not read indexed files except to send them.
//!
//! [`PageServer::start`] listens on an address and serves the page on its own threads.
//!
//! ```text
//! server        connections, HTTP
//!   ↓
//! application   host, route, session, token
//!   ↓
//! sections      the table of pages; handlers run on threads that may block
//!   ↓
//! request       the view of a handler: parameters, forms, `database()`
//! ```
//!
//! Modules in reading order:
//!
//! - `options`, `services`, `folder_services`: what the caller passes
//! - `server`, `tls_stream`, `application`: from a socket to a handler
//! - `route`, `request`, `response`, `body`, `form`, `error`: what handlers receive and return
//! - `sections`: the pages; `shell`: their frame; `data_table`: tables; `collection_frame`: the
//!   frame of the pages of a collection; `show`: formats values; `texts`: all texts; `assets`:
//!   scripts and styles
//! - `imports`: the progress of imports; `text_reader`: reads text in pieces
//! - `live`: streams of events; `history`, `sampler`: statistics of the last hours
//! - `literals`: documents in the syntax of mongosh; `document_tree`: renders documents;
//!   `namespace`: names of collections in addresses
//! - `database`, `reading_commands`, `connection`, `interrupt`: runs commands
//! - `site`, `session`, `login`, `basic_login`, `login_delay`, `host`, `secret`: sessions, logins
//!   and the checks of requests
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod application;
mod assets;
mod basic_login;
mod body;
mod collection_frame;
mod connection;
mod data_table;
mod database;
mod document_tree;
mod error;
mod folder_services;
mod form;
mod history;
mod host;
mod imports;
mod interrupt;
mod literals;
mod live;
mod login;
mod login_delay;
mod namespace;
mod options;
mod reading_commands;
mod request;
mod response;
mod route;
mod sampler;
mod secret;
mod sections;
mod server;
mod services;
mod session;
mod shell;
mod show;
mod site;
mod text_reader;
mod texts;
mod tls_stream;

pub use folder_services::{
    ConfigFunction, FolderServices, QueueBytes, RunProgress, RunRequest, StageProgress,
};
pub use options::PageOptions;
pub use server::PageServer;
pub use services::{
    ConnectFunction, ConnectionEnds, Credentials, IndexedFile, IndexedStamp, OpenFunction,
    PageServices, PageTls,
};
