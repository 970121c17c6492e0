//! The version that the server presents, and the one that it is.

use windrow_document::{DocumentBuf, doc};

/// The MongoDB whose behaviour clients may expect.
pub const MONGODB_VERSION: &str = "8.0.0";

/// What `hello` and `buildInfo` say of Windrow itself.
pub fn windrow() -> DocumentBuf {
    doc! { "version": (env!("CARGO_PKG_VERSION")) }
}
