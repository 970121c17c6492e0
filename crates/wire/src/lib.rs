//! MongoDB's wire protocol: message bytes in, replies out, and the one table of error codes.
//!
//! It takes [`Request`]s off a stream ([`read_header`], [`read_message`], [`Request::parse`]) and
//! puts [`Reply`]s on it ([`write_reply`]). A request has been checked completely: framing, flags,
//! checksum, and structure and UTF-8 of every document in it. [`ErrorCode`] and [`CommandError`]
//! are how anything that goes wrong is told to a client.
//!
//! Not here: sockets, sessions, and what any command means.
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
//! Reading order: [`limits`], [`header`], [`read`], [`compression`], [`message`], [`query`],
//! [`request`], [`documents`], [`batch`], [`reply`], [`error`], [`code`], [`command_error`].
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod batch;
mod bytes;
pub mod code;
pub mod command_error;
pub mod compression;
pub mod documents;
pub mod error;
pub mod header;
pub mod limits;
pub mod message;
mod query;
pub mod read;
pub mod reply;
pub mod request;

pub use batch::Batch;
pub use code::ErrorCode;
pub use command_error::CommandError;
pub use compression::Compressor;
pub use documents::Documents;
pub use error::WireError;
pub use header::{Header, OpCode};
pub use message::Flags;
pub use read::{read_header, read_message};
pub use reply::{Reply, ReplyTo, write_reply};
pub use request::{Rejected, Request};
