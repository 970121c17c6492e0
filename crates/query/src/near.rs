//! `$near`: which index answers it. What it finds comes in the order of its distance.

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_geo::{Cells, Near};
use windrow_mql::filter::Filter;

use crate::bounds::IndexBounds;
use crate::source::SourceIndex;

/// How a `$near` is answered.
#[derive(Clone, Debug)]
pub struct NearScan {
    pub index: SourceIndex,
    pub cells: Cells,
    /// Of the other fields; that of the place is read ring by ring.
    pub bounds: IndexBounds,
    /// The number of the field of the place.
    pub field: usize,
    pub path: Path,
    pub near: Arc<Near>,
    /// What else a document must fulfil.
    pub filter: Option<Filter>,
}
