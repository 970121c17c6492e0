//! What a document holds.

use s2rst::s2::{Cell, CellId, Point};

use crate::line::Line;
use crate::polygon::Polygon;
use crate::position::Position;
use crate::{EARTH_METERS, Error};

/// A shape, taken apart.
#[derive(Clone, Debug)]
pub struct Shape {
    /// On the sphere; of a pair that is no longitude and latitude, none.
    pub(crate) parts: Vec<Part>,
    /// Where it is one point.
    pub(crate) position: Option<Position>,
    /// A polygon that may be larger than a hemisphere.
    pub(crate) is_big: bool,
}

/// One connected piece.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Point(Spot),
    Line(Line),
    Polygon(Box<Polygon>),
}

/// A point with the smallest cell around it, less than a centimetre wide: points in one cell are taken
/// as one.
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

    /// Where it is one point.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// Error 2 where an index of the sphere cannot hold it.
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

    /// Whether it is one point, line or polygon, which is all that an index of version 1 takes.
    pub fn is_single(&self) -> bool {
        self.parts.len() == 1
    }

    /// Meters from a point of the earth to the nearest of the shape; None where it is not on earth.
    pub(crate) fn meters_to(&self, point: Point) -> Option<f64> {
        let radians = self.parts.iter().map(|part| match part {
            Part::Point(spot) => spot.point.distance(point).radians(),
            Part::Line(line) => line.distance(point),
            Part::Polygon(polygon) => polygon.distance(point),
        });
        radians.reduce(f64::min).map(|angle| angle * EARTH_METERS)
    }
}
