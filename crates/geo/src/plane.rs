//! Shapes of the plane: `$box`, `$center` and `$polygon`. Their boundaries belong to them.

use windrow_document::{Array, ValueRef};

use crate::Error;
use crate::position::{More, Position};

/// A shape of the plane.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    Box(Rectangle),
    Circle { center: Position, radius: f64 },
    Polygon(Vec<Position>),
}

/// An axis-parallel rectangle. Its edges belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// The lower left corner.
    pub low: Position,
    /// The upper right corner.
    pub high: Position,
}

/// How much of a rectangle lies in a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// No point of the rectangle.
    Outside,
    /// Some of it, or not known.
    Partly,
    /// All of it.
    Inside,
}

impl Rectangle {
    fn of(points: &[Position]) -> Option<Rectangle> {
        let (first, rest) = points.split_first()?;
        let start = Rectangle {
            low: *first,
            high: *first,
        };
        Some(rest.iter().fold(start, |one, point| Rectangle {
            low: Position {
                x: one.low.x.min(point.x),
                y: one.low.y.min(point.y),
            },
            high: Position {
                x: one.high.x.max(point.x),
                y: one.high.y.max(point.y),
            },
        }))
    }

    pub fn contains(&self, point: Position) -> bool {
        (self.low.x..=self.high.x).contains(&point.x)
            && (self.low.y..=self.high.y).contains(&point.y)
    }

    fn corners(&self) -> [Position; 4] {
        let (low, high) = (self.low, self.high);
        let at = |x, y| Position { x, y };
        [low, at(high.x, low.y), high, at(low.x, high.y)]
    }

    fn overlap(&self, other: &Rectangle) -> Overlap {
        let apart = other.high.x < self.low.x
            || other.low.x > self.high.x
            || other.high.y < self.low.y
            || other.low.y > self.high.y;
        match apart {
            true => Overlap::Outside,
            false if self.contains(other.low) && self.contains(other.high) => Overlap::Inside,
            false => Overlap::Partly,
        }
    }

    /// Returns the point of the rectangle that is nearest to `point`.
    fn nearest(&self, point: Position) -> Position {
        Position {
            x: point.x.clamp(self.low.x, self.high.x),
            y: point.y.clamp(self.low.y, self.high.y),
        }
    }
}

impl Figure {
    pub(crate) fn parse_box(value: ValueRef<'_>) -> Result<Figure, Error> {
        let points = points("$box", value)?;
        match points.as_slice() {
            // MongoDB ignores elements after the second corner.
            [one, other, ..] => Rectangle::of(&[*one, *other])
                .map(Figure::Box)
                .ok_or_else(|| Error::bad_value("$box has no corners")),
            _ => Err(Error::bad_value(
                "Point coordinates for a box must be two pairs of numbers",
            )),
        }
    }

    pub(crate) fn parse_center(value: ValueRef<'_>) -> Result<Figure, Error> {
        let (center, radius) = circle("$center", value)?;
        Ok(Figure::Circle { center, radius })
    }

    pub(crate) fn parse_polygon(value: ValueRef<'_>) -> Result<Figure, Error> {
        let points = points("$polygon", value)?;
        match points.len() {
            0..3 => Err(Error::bad_value("Polygon must have at least 3 points")),
            _ => Ok(Figure::Polygon(points)),
        }
    }

    pub fn contains(&self, point: Position) -> bool {
        match self {
            Figure::Box(rectangle) => rectangle.contains(point),
            Figure::Circle { center, radius } => beyond(*center, *radius, point) <= 0.0,
            Figure::Polygon(corners) => polygon_contains(corners, point),
        }
    }

    /// Returns how much of the rectangle lies in the shape. `Partly` is returned if the exact
    /// answer is too expensive.
    pub fn overlap(&self, rectangle: &Rectangle) -> Overlap {
        match self {
            Figure::Box(own) => own.overlap(rectangle),
            Figure::Circle { center, radius } => {
                let nearest = rectangle.nearest(*center);
                let mut corners = rectangle.corners().into_iter();
                if center.distance(nearest) > *radius && beyond(*center, *radius, nearest) > 0.0 {
                    Overlap::Outside
                } else if corners.all(|one| beyond(*center, *radius, one) <= 0.0) {
                    Overlap::Inside
                } else {
                    Overlap::Partly
                }
            }
            Figure::Polygon(corners) => polygon_overlap(corners, rectangle),
        }
    }
}

/// Returns how far a point lies outside of a circle; zero or less is inside. For a point straight
/// beside or above the center, the center plus the radius is compared with the coordinate, as
/// MongoDB does. Otherwise rounding would exclude 5.0001 from the circle of radius 0.0001 around 5.
fn beyond(center: Position, radius: f64, point: Position) -> f64 {
    let along = |one: f64, other: f64| one.max(other) - (one.min(other) + radius);
    if center.x == point.x {
        along(center.y, point.y)
    } else if center.y == point.y {
        along(center.x, point.x)
    } else {
        center.distance(point) - radius
    }
}

/// Parses a center and a radius. Fails with code 2.
pub(crate) fn circle(name: &str, value: ValueRef<'_>) -> Result<(Position, f64), Error> {
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
    let center = Position::legacy(center, More::Refused)?.check_finite()?;
    match radius.as_f64().filter(|_| radius.is_number()) {
        Some(radius) if radius >= 0.0 => Ok((center, radius)),
        _ => Err(Error::bad_value(format!(
            "radius of {name} must be a non-negative number, found {radius}"
        ))),
    }
}

fn points(name: &str, value: ValueRef<'_>) -> Result<Vec<Position>, Error> {
    let fields = match value {
        ValueRef::Array(array) => array,
        ValueRef::Document(document) => Array::from_document(document),
        _ => return Err(Error::bad_value(format!("{name} must be an array"))),
    };
    let one = |value| Position::legacy(value, More::Refused)?.check_finite();
    fields.iter().map(one).collect()
}

fn sides(corners: &[Position]) -> impl Iterator<Item = (Position, Position)> + '_ {
    let next = corners.iter().cycle().skip(1);
    corners.iter().copied().zip(next.copied())
}

/// Returns twice the signed area of the triangle: positive if its corners are in counterclockwise
/// order.
fn turn(one: Position, two: Position, three: Position) -> f64 {
    (two.x - one.x) * (three.y - one.y) - (two.y - one.y) * (three.x - one.x)
}

fn is_on(from: Position, to: Position, point: Position) -> bool {
    turn(from, to, point) == 0.0
        && Rectangle::of(&[from, to]).is_some_and(|around| around.contains(point))
}

/// Ray casting: a point is inside if a ray to the right crosses an odd number of sides. Points on a
/// side are inside.
fn polygon_contains(corners: &[Position], point: Position) -> bool {
    let mut inside = false;
    for (from, to) in sides(corners) {
        if is_on(from, to, point) {
            return true;
        }
        if (from.y > point.y) != (to.y > point.y) {
            let left = turn(from, to, point) > 0.0;
            inside ^= left == (to.y > from.y);
        }
    }
    inside
}

fn polygon_overlap(corners: &[Position], rectangle: &Rectangle) -> Overlap {
    let Some(bound) = Rectangle::of(corners) else {
        return Overlap::Outside;
    };
    if bound.overlap(rectangle) == Overlap::Outside {
        return Overlap::Outside;
    }
    if sides(corners).any(|(from, to)| may_meet(rectangle, from, to)) {
        return Overlap::Partly;
    }
    match polygon_contains(corners, rectangle.low) {
        true => Overlap::Inside,
        false => Overlap::Outside,
    }
}

/// Returns `true` if a side can cross a rectangle: their bounds overlap, and the corners are not
/// all on one side of the line.
fn may_meet(rectangle: &Rectangle, from: Position, to: Position) -> bool {
    let meets = Rectangle::of(&[from, to])
        .is_some_and(|around| around.overlap(rectangle) != Overlap::Outside);
    let turns = rectangle.corners().map(|corner| turn(from, to, corner));
    meets && !(turns.iter().all(|one| *one > 0.0) || turns.iter().all(|one| *one < 0.0))
}
