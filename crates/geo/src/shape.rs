//! The geometry of a stored value.

use s2rst::s2::{Cell, CellId, Point};
use windrow_document::ValueRef;
use windrow_interrupt::{Interrupted, WorkCounter};

use crate::coordinates::Coordinates;
use crate::line::Line;
use crate::polygon::Polygon;
use crate::{EARTH_RADIUS_METERS, Error};

/// The work of reporting that a value is not a shape.
const UNITS_OF_ERROR: usize = 20;

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
    pub(crate) geometries: Vec<Geometry>,
    /// The coordinates, if the shape is a single point.
    pub(crate) position: Option<Coordinates>,
    /// The shape is a polygon that can be larger than a hemisphere.
    pub(crate) has_strict_winding: bool,
}

/// A single geometry. `Multi…` objects and collections consist of several.
#[derive(Clone, Debug)]
pub(crate) enum Geometry {
    Point(LeafPoint),
    Line(Line),
    Polygon(Box<Polygon>),
}

/// A point with its S2 leaf cell, which is less than a centimetre wide. Two points in the same leaf
/// cell are considered equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafPoint {
    pub point: Point,
    pub cell: CellId,
}

impl LeafPoint {
    pub fn new(point: Point) -> LeafPoint {
        LeafPoint {
            point,
            cell: CellId::from_point(&point),
        }
    }

    pub fn cell(&self) -> Cell {
        Cell::from_cell_id(self.cell)
    }
}

/// Parses a stored value. Returns `None` if it is not a shape. Fails only if
/// `count_work` does.
pub(crate) fn parse_stored(
    value: ValueRef<'_>,
    count_work: WorkCounter<'_>,
) -> Result<Option<Shape>, Interrupted> {
    if !matches!(value, ValueRef::Document(_) | ValueRef::Array(_)) {
        return Ok(None);
    }
    match Shape::parse_with(value, count_work) {
        Ok(shape) => Ok(Some(shape)),
        // The error is that of the value, unless the work must stop.
        Err(_) => count_work(UNITS_OF_ERROR).map(|()| None),
    }
}

impl Shape {
    pub(crate) fn from_coordinates(position: Coordinates) -> Shape {
        let point = position
            .is_on_earth()
            .then(|| Geometry::Point(LeafPoint::new(position.point())));
        Shape {
            geometries: point.into_iter().collect(),
            position: Some(position),
            has_strict_winding: false,
        }
    }

    /// Returns the coordinates if the shape is a single point.
    pub fn position(&self) -> Option<Coordinates> {
        self.position
    }

    /// Fails with code 2 if a `2dsphere` index cannot store the shape.
    pub fn check_on_earth(&self) -> Result<(), Error> {
        if let Some(position) = self.position {
            position.check_on_earth()?;
        }
        if self.has_strict_winding {
            return Err(Error::bad_value(
                "can't index a polygon with strict winding order",
            ));
        }
        Ok(())
    }

    /// Returns `true` if the shape is a single geometry. Version 1 of `2dsphere` indexes stores
    /// only those.
    pub fn is_single(&self) -> bool {
        self.geometries.len() == 1
    }

    /// Returns the distance from a point to the nearest point of the shape in meters, or `None` if
    /// the shape is not on the earth.
    /// Fails if `count_work` does.
    pub(crate) fn meters_to(
        &self,
        point: Point,
        count_work: WorkCounter<'_>,
    ) -> Result<Option<f64>, Interrupted> {
        let mut nearest: Option<f64> = None;
        for geometry in &self.geometries {
            count_work(geometry.edge_count() + 1)?;
            let radians = geometry.distance(point);
            nearest = Some(nearest.map_or(radians, |known| known.min(radians)));
        }
        Ok(nearest.map(|angle| angle * EARTH_RADIUS_METERS))
    }
}
