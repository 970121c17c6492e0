//! MongoDB's wire protocol: requests are parsed from bytes, replies are encoded to bytes.
//!
//! Not for: sockets, sessions, or the meaning of any command.
//!
//! - [`Request`] is a parsed message. Its framing, flags, checksum, and the structure and UTF-8 of
//!   all of its documents are validated.
//! - [`Reply`] is an encoded reply, [`Batch`] the documents of a cursor in it.
//! - [`CommandError`] is the error of a command, with one of MongoDB's [`ErrorCode`]s.
//! - [`WireError`] is a violation of the protocol or a failure of the connection.
//!
//! ```
//! use windrow_wire::{Reply, Request, read_header, read_message, write_reply};
//! # use windrow_document::doc;
//! # let body = doc! { "ping": 1, "$db": "admin" };
//! # let mut bytes = Vec::new();
//! # for word in [21 + body.as_bytes().len() as i32, 1, 0, 2013, 0] {
//! #     bytes.extend_from_slice(&word.to_le_bytes());
//! # }
//! # bytes.push(0);
//! # bytes.extend_from_slice(body.as_bytes());
//! # let (mut input, mut output) = (bytes.as_slice(), Vec::new());
//! let (mut buffer, mut spare) = (Vec::new(), Vec::new());
//! while let Some(header) = read_header(&mut input)? {
//!     read_message(&mut input, &header, &mut buffer)?;
//!     let request = Request::parse(&header, buffer, &mut spare).unwrap();
//!     assert_eq!((request.command(), request.database()), ("ping", "admin"));
//!     write_reply(&mut output, &request.reply_to(), &Reply::ok(doc! {}), 1, &mut spare)?;
//!     buffer = request.into_buffer();
//! }
//! # Ok::<(), windrow_wire::WireError>(())
//! ```
//!
//! Modules in reading order:
//!
//! - [`limits`], [`header`], `read`: messages on a stream
//! - `field_reader`: the fields of a message
//! - [`compression`], `op_msg`, `op_query`: the kinds of messages
//! - `request`, `request_documents`: parsed messages
//! - `batch`, `reply`: encoded replies
//! - `error`, `code`, `command_error`: what can go wrong
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod batch;
mod code;
mod command_error;
pub mod compression;
mod error;
mod field_reader;
pub mod header;
pub mod limits;
mod op_msg;
mod op_query;
mod read;
mod reply;
mod request;
mod request_documents;

pub use batch::Batch;
pub use code::ErrorCode;
pub use command_error::CommandError;
pub use compression::Compressor;
pub use error::WireError;
pub use header::{Header, OpCode};
pub use op_msg::MessageFlags;
pub use read::{read_header, read_message};
pub use reply::{Reply, ReplyTarget, write_reply};
pub use request::{Request, RequestError};
pub use request_documents::RequestDocuments;
