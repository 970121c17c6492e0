//! Coverings: shapes on the sphere as sets of S2 cells.
//!
//! An S2 cell id is a position on a space-filling (Hilbert) curve. The ids of all descendants of a
//! cell form one contiguous range around its own id. Two cells intersect only if one is an ancestor
//! of the other, so a query that covers cell `c` reads
//!
//! ```text
//! [first leaf of c, last leaf of c], parent of c, its parent, … up to the coarsest level
//! ```
//!
//! and finds every shape that is stored under a descendant or an ancestor of `c`. See
//! <http://s2geometry.io/devguide/s2cell_hierarchy> for the numbering.

use s2rst::s1::Angle;
use s2rst::s2::region_coverer::RegionCoverer;
use s2rst::s2::{Cap, CellId, CellUnion, Level, Point, Region};

use crate::key_range::{KeyRange, merge};
use crate::shape::{Geometry, Shape};

/// Upper bound of the cells that store one line or polygon. The coarsest level can force more.
const INDEX_CELLS_MAX: usize = 8;
/// Upper bound of the cells of a query's covering. More cells exclude more non-matching shapes but
/// need more seeks.
const QUERY_CELLS_MAX: usize = 20;
/// The finest level of a query's covering. Its cells are about a meter wide.
const QUERY_LEVEL_MAX: u8 = 23;

/// The levels of the S2 cells that a `2dsphere` index uses for lines and polygons. Level 0 is a
/// face of the cube around the earth, level 30 a cell less than a centimetre wide. Points are
/// stored under their leaf cell (level 30) whatever the levels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellLevels {
    /// The smallest level: the largest cells.
    pub coarsest: u8,
    /// The greatest level: the smallest cells.
    pub finest: u8,
}

impl CellLevels {
    /// The level of leaf cells.
    pub const MAX: u8 = 30;
}

impl Default for CellLevels {
    fn default() -> CellLevels {
        CellLevels {
            coarsest: 0,
            finest: QUERY_LEVEL_MAX,
        }
    }
}

impl CellLevels {
    fn coverer(self, cells: usize) -> RegionCoverer {
        RegionCoverer::new()
            .min_level(Level::new(self.coarsest))
            .max_level(Level::new(self.finest))
            .max_cells(cells)
    }

    /// Returns the ids of the cells that store a shape, sorted and without duplicates.
    pub(crate) fn index_cells(self, shape: &Shape) -> Vec<u64> {
        let mut found = Vec::new();
        for geometry in &shape.geometries {
            match geometry {
                Geometry::Point(leaf) => found.push(leaf.cell.id()),
                Geometry::Line(line) => found.extend(line.with_region(|it| self.cover(it))),
                Geometry::Polygon(polygon) => {
                    found.extend(polygon.with_region(|it| self.cover(it)))
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn cover(self, region: &dyn Region) -> Vec<u64> {
        let covering = self.coverer(INDEX_CELLS_MAX).covering(region);
        covering.cell_ids().iter().map(|cell| cell.id()).collect()
    }

    /// Returns the key ranges of all shapes that can intersect `shape`.
    pub(crate) fn shape_ranges(self, shape: &Shape) -> Vec<KeyRange> {
        self.ranges(&covering_of(shape))
    }

    /// Returns the key ranges of all shapes that can lie within `radians` of a point.
    pub(crate) fn nearby_ranges(self, point: Point, radians: f64) -> Vec<KeyRange> {
        let angle = Angle::from_radians(radians.min(std::f64::consts::PI));
        self.cap_ranges(&Cap::from_center_angle(point, angle))
    }

    pub(crate) fn cap_ranges(self, cap: &Cap) -> Vec<KeyRange> {
        self.ranges(&query_covering(cap))
    }

    fn ranges(self, cells: &CellUnion) -> Vec<KeyRange> {
        let mut found = Vec::new();
        for cell in cells.cell_ids() {
            found.push(descendants(*cell));
            found.extend(self.ancestors(*cell));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The ancestors of a cell, up to the coarsest level.
    fn ancestors(self, cell: CellId) -> impl Iterator<Item = KeyRange> {
        (self.coarsest..u8::from(cell.level())).map(move |level| {
            let id = cell.parent_at_level(Level::new(level)).id();
            KeyRange::new(id, id)
        })
    }
}

/// The ids of a cell and of all cells within it.
pub(crate) fn descendants(cell: CellId) -> KeyRange {
    KeyRange::new(cell.range_min().id(), cell.range_max().id())
}

/// Returns the ids of the cells of a covering and of all cells within them.
pub(crate) fn descendants_of(cells: &CellUnion) -> Vec<KeyRange> {
    merge(cells.cell_ids().iter().copied().map(descendants).collect())
}

/// Returns the covering of a shape for a query.
pub(crate) fn covering_of(shape: &Shape) -> CellUnion {
    let mut cells = Vec::new();
    for geometry in &shape.geometries {
        match geometry {
            Geometry::Point(leaf) => cells.push(leaf.cell),
            Geometry::Line(line) => cells.extend(line.with_region(query_covering)),
            Geometry::Polygon(polygon) => cells.extend(polygon.with_region(query_covering)),
        }
    }
    let union = CellUnion::from_cell_ids(cells);
    if union.num_cells() > QUERY_CELLS_MAX {
        query_covering(&union)
    } else {
        union
    }
}

pub(crate) fn query_covering(region: &dyn Region) -> CellUnion {
    CellLevels::default()
        .coverer(QUERY_CELLS_MAX)
        .covering(region)
}
