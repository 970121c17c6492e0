//! The geometry of a stored value.

use s2rst::s2::{Cell, CellId, Point};

use crate::line::Line;
use crate::polygon::Polygon;
use crate::position::Position;
use crate::{EARTH_METERS, Error};

/// A GeoJSON object or a legacy coordinate pair.
///
/// ```
/// use windrow_document::{ValueRef, doc};
/// use windrow_geo::Shape;
///
/// let point = doc! { "type": "Point", "coordinates": [200, 0] };
/// let error = Shape::parse(ValueRef::Document(point.as_document())).unwrap_err();
/// assert_eq!(error.code, 2);
/// ```
#[derive(Clone, Debug)]
pub struct Shape {
    /// The geometries on the sphere. Empty if the shape is a pair that is not a longitude and
    /// latitude.
    pub(crate) parts: Vec<Part>,
    /// The coordinates, if the shape is a single point.
    pub(crate) position: Option<Position>,
    /// The shape is a polygon that can be larger than a hemisphere.
    pub(crate) is_big: bool,
}

/// A single geometry. `Multi…` objects and collections consist of several.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Point(Spot),
    Line(Line),
    Polygon(Box<Polygon>),
}

/// A point with its S2 leaf cell, which is less than a centimetre wide. Two points in the same leaf
/// cell are considered equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub point: Point,
    pub cell: CellId,
}

impl Spot {
    pub fn of(point: Point) -> Spot {
        Spot {
            point,
            cell: CellId::from_point(&point),
        }
    }

    pub fn cell(&self) -> Cell {
        Cell::from_cell_id(self.cell)
    }
}

impl Shape {
    pub(crate) fn of_position(position: Position) -> Shape {
        let spot = position
            .is_on_earth()
            .then(|| Part::Point(Spot::of(position.point())));
        Shape {
            parts: spot.into_iter().collect(),
            position: Some(position),
            is_big: false,
        }
    }

    /// Returns the coordinates if the shape is a single point.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// Fails with code 2 if a `2dsphere` index cannot store the shape.
    pub fn check_on_earth(&self) -> Result<(), Error> {
        if let Some(position) = self.position {
            position.check_on_earth()?;
        }
        match self.is_big {
            true => Err(Error::bad_value(
                "can't index a polygon with strict winding order",
            )),
            false => Ok(()),
        }
    }

    /// Returns `true` if the shape is a single geometry. Version 1 of `2dsphere` indexes stores
    /// only those.
    pub fn is_single(&self) -> bool {
        self.parts.len() == 1
    }

    /// Returns the distance from a point to the nearest point of the shape in meters, or `None` if
    /// the shape is not on the earth.
    pub(crate) fn meters_to(&self, point: Point) -> Option<f64> {
        let radians = self.parts.iter().map(|part| match part {
            Part::Point(spot) => spot.point.distance(point).radians(),
            Part::Line(line) => line.distance(point),
            Part::Polygon(polygon) => polygon.distance(point),
        });
        radians.reduce(f64::min).map(|angle| angle * EARTH_METERS)
    }
}
