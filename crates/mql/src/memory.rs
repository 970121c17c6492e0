//! How much memory an evaluation may take.
//!
//! An expression can make more of a document than it is given: `$concatArrays` doubles an array, and a
//! stage after it doubles it again. MongoDB ends that with ExceededMemoryLimit where an operator holds
//! values (100 MB, as `$range` and the accumulators have it), and with 13548 where a document outgrows
//! the buffer that it is written into (125 MB). Documents that leave are asked for their 16 MB where they
//! leave.
//!
//! What lives is counted by thread ([`LiveBytes`]), since values of one evaluation live at many levels of
//! its tree at once, and each by itself may be within its limit.

mod building;
mod kept;
mod limits;
mod live;

pub(crate) use building::{Fields, List, References};
pub(crate) use kept::Kept;
pub(crate) use limits::{
    LIVE_BYTES_MAX, VALUE_BYTES_MAX, check_accumulated, check_value, check_windows, depth,
    exceeded, within,
};
pub use limits::{check_document, check_growth, heap_bytes};
pub(crate) use live::{LiveBytes, check_live, check_written};
