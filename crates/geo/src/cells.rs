//! The mapping from shapes to index keys, and from queries to ranges of index keys.

use s2rst::s2::metric::AVG_EDGE;
use s2rst::s2::{Cap, CellId, Level};
use windrow_document::Value;

use crate::covering::{CellLevels, descendants};
use crate::grid::Grid;
use crate::key_range::KeyRange;
use crate::near::{DistanceUnit, Near};
use crate::plane::{Overlap, PlaneShape, Rectangle};
use crate::region::Region;
use crate::shape::Shape;
use crate::{Coordinates, Error};

/// Added to angles in radians so that rounding cannot exclude a point on the boundary. About a
/// micrometre on the earth.
const SLACK: f64 = 1e-13;

/// How a geospatial index divides space into cells. An index entry's key is the id of a cell.
///
/// ```
/// use windrow_document::{ValueRef, doc};
/// use windrow_geo::{Cells, Condition, CellLevels, Shape};
///
/// let cells = Cells::Sphere(CellLevels::default());
/// let place = doc! { "type": "Point", "coordinates": [1, 2] };
/// let shape = Shape::parse(ValueRef::Document(place.as_document())).unwrap();
/// let keys = cells.keys(&shape).unwrap();
///
/// let operand = doc! { "$centerSphere": [[0, 0], 0.1] };
/// let operand = ValueRef::Document(operand.as_document());
/// let condition = Condition::parse("$geoWithin", operand).unwrap();
/// let ranges = condition.ranges(&cells).unwrap();
/// assert!(ranges.iter().any(|range| keys.iter().any(|key| range.contains(*key))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cells {
    /// S2 cells of the sphere, for a `2dsphere` index.
    Sphere(CellLevels),
    /// Squares of the plane, for a `2d` index.
    Plane(Grid),
}

impl Cells {
    /// Returns the keys under which an index stores the shape, without duplicates.
    ///
    /// Fails with code 2 if the shape is not on the earth (sphere) or not a point (plane), and with
    /// code 13027 if a point is outside the grid.
    pub fn keys(&self, shape: &Shape) -> Result<Vec<u64>, Error> {
        match self {
            Cells::Sphere(levels) => {
                shape.check_on_earth()?;
                Ok(levels.index_cells(shape))
            }
            Cells::Plane(grid) => match shape.position() {
                Some(position) => grid.key(position).map(|key| vec![key]),
                None => Err(Error::bad_value("a 2d index holds points only")),
            },
        }
    }

    /// Returns the BSON value that represents a key in an index. Its order is that of the keys
    /// within either half of the 64-bit range (`Int64`) or all of it (`Binary`).
    pub fn value(&self, key: u64) -> Value {
        match self {
            Cells::Sphere(_) => Value::Int64(key.cast_signed()),
            Cells::Plane(_) => Value::Binary {
                subtype: 128,
                bytes: key.to_be_bytes().to_vec(),
            },
        }
    }

    /// Returns the ranges that contain the keys of every shape that can be related to the region,
    /// or `None` if this kind of index cannot answer for the region.
    pub(crate) fn ranges(&self, region: &Region) -> Option<Vec<KeyRange>> {
        match (self, region) {
            (Cells::Sphere(levels), Region::Sphere(shape)) => Some(levels.shape_ranges(shape)),
            (Cells::Sphere(levels), Region::Cap(cap)) => Some(levels.cap_ranges(cap)),
            (Cells::Plane(grid), Region::Plane(shape)) => {
                Some(grid.ranges(|square| shape.overlap(square)))
            }
            (Cells::Plane(grid), Region::Cap(cap)) => Some(cap_squares(grid, cap)),
            (Cells::Sphere(_), Region::Plane(_)) | (Cells::Plane(_), Region::Sphere(_)) => None,
        }
    }

    /// Returns `true` if this kind of index can find the nearest shapes for the query.
    pub fn supports(&self, near: &Near) -> bool {
        match self {
            Cells::Sphere(_) => near.unit != DistanceUnit::Planar,
            Cells::Plane(_) => near.unit != DistanceUnit::Meters,
        }
    }

    /// Returns ranges that contain a key of every shape within `distance` of the query's center.
    /// `distance` is in the query's unit. The ranges contain more distant shapes, too.
    pub fn ranges_within(&self, near: &Near, distance: f64) -> Vec<KeyRange> {
        let radians = near.radians(distance) * (1.0 + SLACK) + SLACK;
        match (self, near.unit) {
            (Cells::Sphere(levels), _) => levels.nearby_ranges(near.point(), radians),
            (Cells::Plane(grid), DistanceUnit::Planar) => {
                let circle = PlaneShape::Circle {
                    center: near.center,
                    radius: distance,
                };
                grid.ranges(|square| circle.overlap(square))
            }
            (Cells::Plane(grid), _) => {
                let angle = s2rst::s1::Angle::from_radians(radians.min(std::f64::consts::PI));
                cap_squares(grid, &Cap::from_center_angle(near.point(), angle))
            }
        }
    }

    /// The finest level that [`Cells::cell_range`] accepts.
    pub fn level_max(&self) -> u8 {
        match self {
            Cells::Sphere(_) => CellLevels::MAX,
            Cells::Plane(grid) => grid.bits.min(32) as u8,
        }
    }

    /// Returns the range of keys of the cell at `level` that contains the query's center.
    pub fn cell_range(&self, near: &Near, level: u8) -> KeyRange {
        match self {
            Cells::Sphere(_) => {
                let leaf = CellId::from_point(&near.point());
                descendants(leaf.parent_at_level(Level::new(level)))
            }
            Cells::Plane(grid) => grid.square_range(near.center, u32::from(level)),
        }
    }

    /// Returns the approximate width of a cell at `level`, in the query's unit.
    pub fn cell_width(&self, near: &Near, level: u8) -> f64 {
        match (self, near.unit) {
            (Cells::Sphere(_), _) => near.distance_of(AVG_EDGE.value(Level::new(level))),
            (Cells::Plane(grid), DistanceUnit::Planar) => grid.width(u32::from(level)),
            (Cells::Plane(grid), _) => near.distance_of(grid.width(u32::from(level)).to_radians()),
        }
    }

    /// Returns a distance, in the query's unit, that no indexed shape exceeds.
    pub fn distance_max(&self, near: &Near) -> f64 {
        match (self, near.unit) {
            (Cells::Plane(grid), DistanceUnit::Planar) => [grid.min, grid.max]
                .into_iter()
                .flat_map(|x| [grid.min, grid.max].map(|y| Coordinates { x, y }))
                .map(|corner| near.center.distance(corner))
                .fold(0.0, f64::max),
            _ => near.distance_of(std::f64::consts::PI),
        }
    }
}

/// Returns the grid's ranges for the latitude-longitude rectangle around a cap.
fn cap_squares(grid: &Grid, cap: &Cap) -> Vec<KeyRange> {
    let bound = cap.rect_bound();
    let (low, high) = (bound.lo(), bound.hi());
    let margin = SLACK.to_degrees();
    let rectangle = |from: f64, to: f64| Rectangle {
        low: Coordinates {
            x: from - margin,
            y: low.lat.degrees() - margin,
        },
        high: Coordinates {
            x: to + margin,
            y: high.lat.degrees() + margin,
        },
    };
    let (from, to) = (low.lng.degrees(), high.lng.degrees());
    // A rectangle that crosses the antimeridian is two rectangles in the plane.
    let rectangles = if bound.is_inverted() || from > to {
        vec![rectangle(from, 180.0), rectangle(-180.0, to)]
    } else {
        vec![rectangle(from, to)]
    };
    grid.ranges(|square| {
        let overlaps = rectangles
            .iter()
            .map(|rectangle| PlaneShape::Box(*rectangle).overlap(square));
        overlaps.fold(Overlap::Disjoint, Overlap::with_union)
    })
}

impl Overlap {
    /// The overlap with the union of two shapes, given the overlap with each.
    fn with_union(self, other: Overlap) -> Overlap {
        match (self, other) {
            (Overlap::Contained, _) | (_, Overlap::Contained) => Overlap::Contained,
            (Overlap::Disjoint, Overlap::Disjoint) => Overlap::Disjoint,
            _ => Overlap::Partial,
        }
    }
}
