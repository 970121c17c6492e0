//! Limits on the memory of an evaluation.
//!
//! An expression can create a value much larger than its input: `$concatArrays` doubles an array,
//! and the next stage doubles it again. Like MongoDB, we fail with 146 ExceededMemoryLimit if an
//! operator holds more than 100 MB of values, and with 13548 if a document between stages exceeds
//! the 125 MB of MongoDB's write buffer. The 16 MB limit of stored and returned documents is
//! checked where they are stored or returned.
//!
//! Live bytes are counted per thread (`LiveBytes`), because one evaluation holds values at many
//! levels of its tree, each of which may be within the limit by itself.

mod constant_cache;
mod limited;
mod limits;
mod live;

pub(crate) use constant_cache::CachedConstant;
pub(crate) use limited::{LimitedArrayBuilder, LimitedDocumentBuilder, LimitedVec};
pub(crate) use limits::{
    LIVE_BYTES_MAX, VALUE_BYTES_MAX, check_accumulated, check_limit, check_value,
    check_window_values, depth, limit_error,
};
pub use limits::{check_document, check_growth, heap_bytes};
pub(crate) use live::{LiveBytes, check_live, check_written};
