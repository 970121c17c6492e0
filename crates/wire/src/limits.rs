//! The sizes that MongoDB promises to its clients in the reply to `hello`, and enforces.

/// The largest message in bytes, header included; also the largest size to which a compressed
/// message may unpack.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// The largest document that a client may store, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The largest document in a message, in bytes: a command may carry a document of the full size
/// and some words around it.
pub const COMMAND_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + 16 * 1024;

/// The most documents or statements in one write command.
pub const WRITE_BATCH_COUNT_MAX: usize = 100_000;
