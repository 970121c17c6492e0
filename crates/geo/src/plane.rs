//! Shapes of the plane: `$box`, `$center` and `$polygon`. Their boundaries belong to them.

use windrow_document::{Array, ValueRef};

use crate::Error;
use crate::coordinates::{Coordinates, ExtraElements};

/// A shape of the plane.
#[derive(Clone, Debug, PartialEq)]
pub enum PlaneShape {
    Box(Rectangle),
    Circle { center: Coordinates, radius: f64 },
    Polygon(Vec<Coordinates>),
}

/// An axis-parallel rectangle. Its edges belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// The lower left corner.
    pub low: Coordinates,
    /// The upper right corner.
    pub high: Coordinates,
}

/// How much of a rectangle lies in a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// No point of the rectangle.
    Disjoint,
    /// Some of it, or not known.
    Partial,
    /// All of it.
    Contained,
}

impl Rectangle {
    /// The smallest rectangle around the points.
    fn around(points: &[Coordinates]) -> Option<Rectangle> {
        let (first, rest) = points.split_first()?;
        let start = Rectangle {
            low: *first,
            high: *first,
        };
        Some(rest.iter().fold(start, |bound, point| Rectangle {
            low: Coordinates {
                x: bound.low.x.min(point.x),
                y: bound.low.y.min(point.y),
            },
            high: Coordinates {
                x: bound.high.x.max(point.x),
                y: bound.high.y.max(point.y),
            },
        }))
    }

    /// Returns `true` if the point is inside or on an edge.
    pub fn contains(&self, point: Coordinates) -> bool {
        (self.low.x..=self.high.x).contains(&point.x)
            && (self.low.y..=self.high.y).contains(&point.y)
    }

    fn corners(&self) -> [Coordinates; 4] {
        let (low, high) = (self.low, self.high);
        let at = |x, y| Coordinates { x, y };
        [low, at(high.x, low.y), high, at(low.x, high.y)]
    }

    fn overlap(&self, other: &Rectangle) -> Overlap {
        let apart = other.high.x < self.low.x
            || other.low.x > self.high.x
            || other.high.y < self.low.y
            || other.low.y > self.high.y;
        if apart {
            Overlap::Disjoint
        } else if self.contains(other.low) && self.contains(other.high) {
            Overlap::Contained
        } else {
            Overlap::Partial
        }
    }

    /// Returns the point of the rectangle that is nearest to `point`.
    fn nearest(&self, point: Coordinates) -> Coordinates {
        Coordinates {
            x: point.x.clamp(self.low.x, self.high.x),
            y: point.y.clamp(self.low.y, self.high.y),
        }
    }
}

impl PlaneShape {
    pub(crate) fn parse_box(value: ValueRef<'_>) -> Result<PlaneShape, Error> {
        let points = points("$box", value)?;
        match points.as_slice() {
            // MongoDB ignores elements after the second corner.
            [first, second, ..] => Rectangle::around(&[*first, *second])
                .map(PlaneShape::Box)
                .ok_or_else(|| Error::bad_value("$box has no corners")),
            _ => Err(Error::bad_value(
                "Point coordinates for a box must be two pairs of numbers",
            )),
        }
    }

    pub(crate) fn parse_center(value: ValueRef<'_>) -> Result<PlaneShape, Error> {
        let (center, radius) = circle("$center", value)?;
        Ok(PlaneShape::Circle { center, radius })
    }

    pub(crate) fn parse_polygon(value: ValueRef<'_>) -> Result<PlaneShape, Error> {
        let points = points("$polygon", value)?;
        if points.len() < 3 {
            return Err(Error::bad_value("Polygon must have at least 3 points"));
        }
        Ok(PlaneShape::Polygon(points))
    }

    /// Returns `true` if the point is inside or on the boundary.
    pub fn contains(&self, point: Coordinates) -> bool {
        match self {
            PlaneShape::Box(rectangle) => rectangle.contains(point),
            PlaneShape::Circle { center, radius } => {
                distance_outside(*center, *radius, point) <= 0.0
            }
            PlaneShape::Polygon(corners) => polygon_contains(corners, point),
        }
    }

    /// Returns how much of the rectangle lies in the shape. `Partial` is returned if the exact
    /// answer is too expensive.
    pub fn overlap(&self, rectangle: &Rectangle) -> Overlap {
        match self {
            PlaneShape::Box(own) => own.overlap(rectangle),
            PlaneShape::Circle { center, radius } => {
                let nearest = rectangle.nearest(*center);
                let mut corners = rectangle.corners().into_iter();
                if center.distance(nearest) > *radius
                    && distance_outside(*center, *radius, nearest) > 0.0
                {
                    Overlap::Disjoint
                } else if corners.all(|corner| distance_outside(*center, *radius, corner) <= 0.0) {
                    Overlap::Contained
                } else {
                    Overlap::Partial
                }
            }
            PlaneShape::Polygon(corners) => polygon_overlap(corners, rectangle),
        }
    }
}

/// Returns how far a point lies outside of a circle; zero or less is inside. For a point straight
/// beside or above the center, the center plus the radius is compared with the coordinate, as
/// MongoDB does. Otherwise rounding would exclude 5.0001 from the circle of radius 0.0001 around 5.
fn distance_outside(center: Coordinates, radius: f64, point: Coordinates) -> f64 {
    let along_axis = |a: f64, b: f64| a.max(b) - (a.min(b) + radius);
    if center.x == point.x {
        along_axis(center.y, point.y)
    } else if center.y == point.y {
        along_axis(center.x, point.x)
    } else {
        center.distance(point) - radius
    }
}

/// Parses a center and a radius. Fails with code 2.
pub(crate) fn circle(name: &str, value: ValueRef<'_>) -> Result<(Coordinates, f64), Error> {
    let fields = match value {
        ValueRef::Array(array) => array.as_document(),
        ValueRef::Document(document) => document,
        _ => return Err(Error::bad_value(format!("{name} must be an array"))),
    };
    let mut values = fields.iter().map(|(_, value)| value);
    let (Some(center), Some(radius), None) = (values.next(), values.next(), values.next()) else {
        return Err(Error::bad_value(format!(
            "{name} must have a center and a radius"
        )));
    };
    let center = Coordinates::parse_pair(center, ExtraElements::Refused)?.check_finite()?;
    match radius.as_f64().filter(|_| radius.is_number()) {
        Some(radius) if radius >= 0.0 => Ok((center, radius)),
        _ => Err(Error::bad_value(format!(
            "radius of {name} must be a non-negative number, found {radius}"
        ))),
    }
}

fn points(name: &str, value: ValueRef<'_>) -> Result<Vec<Coordinates>, Error> {
    let fields = match value {
        ValueRef::Array(array) => array,
        ValueRef::Document(document) => Array::from_document(document),
        _ => return Err(Error::bad_value(format!("{name} must be an array"))),
    };
    let parse_point =
        |value| Coordinates::parse_pair(value, ExtraElements::Refused)?.check_finite();
    fields.iter().map(parse_point).collect()
}

fn sides(corners: &[Coordinates]) -> impl Iterator<Item = (Coordinates, Coordinates)> + '_ {
    let next = corners.iter().cycle().skip(1);
    corners.iter().copied().zip(next.copied())
}

/// Returns twice the signed area of the triangle: positive if its corners are in counterclockwise
/// order.
fn signed_area(a: Coordinates, b: Coordinates, c: Coordinates) -> f64 {
    (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
}

fn is_on(from: Coordinates, to: Coordinates, point: Coordinates) -> bool {
    signed_area(from, to, point) == 0.0
        && Rectangle::around(&[from, to]).is_some_and(|around| around.contains(point))
}

/// Ray casting: a point is inside if a ray to the right crosses an odd number of sides. Points on a
/// side are inside.
fn polygon_contains(corners: &[Coordinates], point: Coordinates) -> bool {
    let mut inside = false;
    for (from, to) in sides(corners) {
        if is_on(from, to, point) {
            return true;
        }
        if (from.y > point.y) != (to.y > point.y) {
            let left = signed_area(from, to, point) > 0.0;
            inside ^= left == (to.y > from.y);
        }
    }
    inside
}

fn polygon_overlap(corners: &[Coordinates], rectangle: &Rectangle) -> Overlap {
    let Some(bound) = Rectangle::around(corners) else {
        return Overlap::Disjoint;
    };
    if bound.overlap(rectangle) == Overlap::Disjoint {
        return Overlap::Disjoint;
    }
    if sides(corners).any(|(from, to)| may_cross(rectangle, from, to)) {
        return Overlap::Partial;
    }
    if polygon_contains(corners, rectangle.low) {
        Overlap::Contained
    } else {
        Overlap::Disjoint
    }
}

/// Returns `true` if a side can cross a rectangle: their bounds overlap, and the corners are not
/// all on one side of the line.
fn may_cross(rectangle: &Rectangle, from: Coordinates, to: Coordinates) -> bool {
    let meets = Rectangle::around(&[from, to])
        .is_some_and(|around| around.overlap(rectangle) != Overlap::Disjoint);
    let areas = rectangle
        .corners()
        .map(|corner| signed_area(from, to, corner));
    meets && !(areas.iter().all(|area| *area > 0.0) || areas.iter().all(|area| *area < 0.0))
}
