//! The plan of `$near`, which returns documents in the order of their distance.

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_geo::{Cells, Near};
use windrow_mql::filter::Filter;

use crate::bounds::IndexBounds;
use crate::source::SourceIndex;

/// A scan of a geospatial index that returns documents in the order of their distance.
#[derive(Clone, Debug)]
pub struct NearScan {
    /// The index.
    pub index: SourceIndex,
    /// The cells of the index: on a sphere or in a plane.
    pub cells: Cells,
    /// The bounds of the other fields. The field with the location is read ring by ring.
    pub bounds: IndexBounds,
    /// The position of the field with the location.
    pub field: usize,
    /// The path of the location.
    pub path: Path,
    /// The center and the distances.
    pub near: Arc<Near>,
    /// The complete filter, if it has other conditions.
    pub filter: Option<Filter>,
}
