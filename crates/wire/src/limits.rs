//! Limits on sizes. `hello` reports them to clients, and the server enforces them.

/// The largest message in bytes, including its header. Also the limit on the decompressed size of a
/// message.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// The largest document that can be stored, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The largest document in a message, in bytes. It is larger than a stored document, so a command
/// can contain a document of the full size and its own fields.
pub const COMMAND_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + 16 * 1024;

/// The maximal number of documents or statements in a write command.
pub const WRITE_BATCH_COUNT_MAX: usize = 100_000;
