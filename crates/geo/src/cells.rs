//! The keys by which an index holds shapes, and the ranges of keys that a query reads.

use s2rst::s2::metric::AVG_EDGE;
use s2rst::s2::{Cap, CellId, Level};
use windrow_document::Value;

use crate::covering::Levels;
use crate::grid::Grid;
use crate::key_range::KeyRange;
use crate::near::{Measure, Near};
use crate::plane::{Figure, Overlap, Rectangle};
use crate::region::Region;
use crate::shape::Shape;
use crate::{Error, Position};

/// Room for what rounding moved, in radians: about a micrometre.
const SLACK: f64 = 1e-13;

/// How an index cuts the world up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cells {
    /// Cells of the sphere, of a `2dsphere` index.
    Sphere(Levels),
    /// Squares of the plane, of a `2d` index.
    Plane(Grid),
}

impl Cells {
    /// The keys of a shape, each once. Errors: 2 for what is no place on earth, 13027 for a place
    /// outside the grid.
    pub fn keys(&self, shape: &Shape) -> Result<Vec<u64>, Error> {
        match self {
            Cells::Sphere(levels) => {
                shape.check_on_earth()?;
                Ok(levels.held(shape))
            }
            Cells::Plane(grid) => match shape.position() {
                Some(position) => grid.key(position).map(|key| vec![key]),
                None => Err(Error::bad_value("a 2d index holds points only")),
            },
        }
    }

    /// The value that stands in an index for a key.
    pub fn value(&self, key: u64) -> Value {
        match self {
            Cells::Sphere(_) => Value::Int64(key.cast_signed()),
            Cells::Plane(_) => Value::Binary {
                subtype: 128,
                bytes: key.to_be_bytes().to_vec(),
            },
        }
    }

    /// Where the shapes lie that may lie in a region; None where the index cannot say.
    pub(crate) fn ranges(&self, region: &Region) -> Option<Vec<KeyRange>> {
        match (self, region) {
            (Cells::Sphere(levels), Region::Sphere(shape)) => Some(levels.ranges_of(shape)),
            (Cells::Sphere(levels), Region::Cap(cap)) => Some(levels.ranges_in(cap)),
            (Cells::Plane(grid), Region::Plane(figure)) => {
                Some(grid.ranges(|square| figure.overlap(square)))
            }
            (Cells::Plane(grid), Region::Cap(cap)) => Some(ranges_of_cap(grid, cap)),
            (Cells::Sphere(_), Region::Plane(_)) | (Cells::Plane(_), Region::Sphere(_)) => None,
        }
    }

    /// Whether the index can say what is near.
    pub fn answers(&self, near: &Near) -> bool {
        match self {
            Cells::Sphere(_) => near.measure != Measure::Plane,
            Cells::Plane(_) => near.measure != Measure::Meters,
        }
    }

    /// Where all shapes lie that are within a distance, and others.
    pub fn within(&self, near: &Near, distance: f64) -> Vec<KeyRange> {
        let radians = near.radians(distance) * (1.0 + SLACK) + SLACK;
        match (self, near.measure) {
            (Cells::Sphere(levels), _) => levels.ranges_around(near.point(), radians),
            (Cells::Plane(grid), Measure::Plane) => {
                let circle = Figure::Circle {
                    center: near.center,
                    radius: distance,
                };
                grid.ranges(|square| circle.overlap(square))
            }
            (Cells::Plane(grid), _) => {
                let angle = s2rst::s1::Angle::from_radians(radians.min(std::f64::consts::PI));
                ranges_of_cap(grid, &Cap::from_center_angle(near.point(), angle))
            }
        }
    }

    /// The finest level of [`Cells::around`].
    pub fn level_max(&self) -> u8 {
        match self {
            Cells::Sphere(_) => Levels::MAX,
            Cells::Plane(grid) => grid.bits.min(32) as u8,
        }
    }

    /// The cell of a level around the point that is asked for.
    pub fn around(&self, near: &Near, level: u8) -> KeyRange {
        match self {
            Cells::Sphere(_) => {
                let cell = CellId::from_point(&near.point()).parent_at_level(Level::new(level));
                (cell.range_min().id(), cell.range_max().id())
            }
            Cells::Plane(grid) => grid.around(near.center, u32::from(level)),
        }
    }

    /// About how wide a cell of a level is, in the unit of the measure.
    pub fn width(&self, near: &Near, level: u8) -> f64 {
        match (self, near.measure) {
            (Cells::Sphere(_), _) => near.distance_of(AVG_EDGE.value(Level::new(level))),
            (Cells::Plane(grid), Measure::Plane) => grid.width(u32::from(level)),
            (Cells::Plane(grid), _) => near.distance_of(grid.width(u32::from(level)).to_radians()),
        }
    }

    /// The distance within which everything lies, in the unit of the measure.
    pub fn farthest(&self, near: &Near) -> f64 {
        match (self, near.measure) {
            (Cells::Plane(grid), Measure::Plane) => [grid.min, grid.max]
                .into_iter()
                .flat_map(|x| [grid.min, grid.max].map(|y| Position { x, y }))
                .map(|corner| near.center.distance(corner))
                .fold(0.0, f64::max),
            _ => near.distance_of(std::f64::consts::PI),
        }
    }
}

/// The squares of the rectangles of longitudes and latitudes around a cap.
fn ranges_of_cap(grid: &Grid, cap: &Cap) -> Vec<KeyRange> {
    let bound = cap.rect_bound();
    let (low, high) = (bound.lo(), bound.hi());
    let hair = SLACK.to_degrees();
    let rectangle = |from: f64, to: f64| Rectangle {
        low: Position {
            x: from - hair,
            y: low.lat.degrees() - hair,
        },
        high: Position {
            x: to + hair,
            y: high.lat.degrees() + hair,
        },
    };
    let (from, to) = (low.lng.degrees(), high.lng.degrees());
    // Longitudes across the edge of the map are two rectangles.
    let rectangles = match bound.is_inverted() || from > to {
        true => vec![rectangle(from, 180.0), rectangle(-180.0, to)],
        false => vec![rectangle(from, to)],
    };
    grid.ranges(|square| {
        let overlaps = rectangles
            .iter()
            .map(|one| Figure::Box(*one).overlap(square));
        overlaps.fold(Overlap::Outside, Overlap::or)
    })
}

impl Overlap {
    /// How something lies to two figures together.
    fn or(self, other: Overlap) -> Overlap {
        match (self, other) {
            (Overlap::Inside, _) | (_, Overlap::Inside) => Overlap::Inside,
            (Overlap::Outside, Overlap::Outside) => Overlap::Outside,
            _ => Overlap::Partly,
        }
    }
}
