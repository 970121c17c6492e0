//! Shapes on the sphere as cells: those by which an index holds a shape, and the ranges in which a
//! query finds what may meet it.
//!
//! A cell's id is a place on a curve through all of them, and all cells within it lie in one range of
//! ids around it. What meets a cell is held by a cell within it, or by one around it:
//!
//! ```text
//! query cell c   →   [first leaf of c, last leaf of c], parent of c, its parent, …
//! ```

use s2rst::s1::Angle;
use s2rst::s2::region_coverer::RegionCoverer;
use s2rst::s2::{Cap, CellId, CellUnion, Level, Point, Region};

use crate::key_range::KeyRange;
use crate::shape::{Part, Shape};

/// Cells by which one line or polygon is held, where the coarsest level allows as few.
const HELD_CELLS_MAX: usize = 8;
/// Cells of a query. More are tighter, and more seeks.
const QUERY_CELLS_MAX: usize = 20;
/// The finest cells of a query: about a meter.
const QUERY_LEVEL_MAX: u8 = 23;

/// The cells that an index of the sphere uses for lines and polygons: from the faces of a cube, 0, to
/// less than a centimetre, 30. Points are held by their smallest cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    pub coarsest: u8,
    pub finest: u8,
}

impl Levels {
    /// The finest there are.
    pub const MAX: u8 = 30;
}

impl Default for Levels {
    fn default() -> Levels {
        Levels {
            coarsest: 0,
            finest: QUERY_LEVEL_MAX,
        }
    }
}

impl Levels {
    fn coverer(self, cells: usize) -> RegionCoverer {
        RegionCoverer::new()
            .min_level(Level::new(self.coarsest))
            .max_level(Level::new(self.finest))
            .max_cells(cells)
    }

    /// The cells of a shape, each once, in their order.
    pub(crate) fn held(self, shape: &Shape) -> Vec<u64> {
        let mut found = Vec::new();
        for part in &shape.parts {
            match part {
                Part::Point(spot) => found.push(spot.cell.id()),
                Part::Line(line) => found.extend(line.ask(|it| self.cover(it))),
                Part::Polygon(polygon) => found.extend(polygon.ask(|it| self.cover(it))),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn cover(self, region: &dyn Region) -> Vec<u64> {
        let covering = self.coverer(HELD_CELLS_MAX).covering(region);
        covering.cell_ids().iter().map(|cell| cell.id()).collect()
    }

    /// Where the cells lie that hold what may meet a shape.
    pub(crate) fn ranges_of(self, shape: &Shape) -> Vec<KeyRange> {
        let mut cells = Vec::new();
        for part in &shape.parts {
            match part {
                Part::Point(spot) => cells.push(spot.cell),
                Part::Line(line) => cells.extend(line.ask(query)),
                Part::Polygon(polygon) => {
                    cells.extend(polygon.ask(query));
                }
            }
        }
        let mut union = CellUnion::from_cell_ids(cells);
        if union.num_cells() > QUERY_CELLS_MAX {
            union = query(&union);
        }
        self.ranges(&union)
    }

    /// As [`Levels::ranges_of`], for all within an angle of a point.
    pub(crate) fn ranges_around(self, point: Point, radians: f64) -> Vec<KeyRange> {
        let angle = Angle::from_radians(radians.min(std::f64::consts::PI));
        self.ranges_in(&Cap::from_center_angle(point, angle))
    }

    pub(crate) fn ranges_in(self, cap: &Cap) -> Vec<KeyRange> {
        self.ranges(&query(cap))
    }

    fn ranges(self, cells: &CellUnion) -> Vec<KeyRange> {
        let mut found = Vec::new();
        for cell in cells.cell_ids() {
            found.push((cell.range_min().id(), cell.range_max().id()));
            found.extend(self.around(*cell));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The cells around one, up to the coarsest.
    fn around(self, cell: CellId) -> impl Iterator<Item = KeyRange> {
        (self.coarsest..u8::from(cell.level())).map(move |level| {
            let id = cell.parent_at_level(Level::new(level)).id();
            (id, id)
        })
    }
}

fn query(region: &dyn Region) -> CellUnion {
    Levels::default().coverer(QUERY_CELLS_MAX).covering(region)
}
