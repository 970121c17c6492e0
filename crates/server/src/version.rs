//! The MongoDB version that the server presents, and its own version.

use windrow_document::{DocumentBuf, doc};

/// The MongoDB version whose behaviour clients can expect.
pub const MONGODB_VERSION: &str = "8.0.0";

/// Returns the version of Windrow, for `hello` and `buildInfo`.
pub fn windrow() -> DocumentBuf {
    doc! { "version": (env!("CARGO_PKG_VERSION")) }
}
