//! Spatial predicates on the sphere. Shapes that only touch intersect.

use s2rst::s2::edge_crossings::{Crossing, crossing_sign};
use s2rst::s2::{Cap, Point, Rect, Region};

use crate::line::{Edge, any_cross, distance_to, middle};
use crate::polygon::Polygon;
use crate::shape::Part;

impl Part {
    fn bound(&self) -> Rect {
        match self {
            Part::Point(spot) => Rect::from_lat_lng(spot.point.into()),
            Part::Line(line) => line.bound(),
            Part::Polygon(polygon) => polygon.bound(),
        }
    }

    fn points(&self) -> Box<dyn Iterator<Item = Point> + '_> {
        match self {
            Part::Point(spot) => Box::new(std::iter::once(spot.point)),
            Part::Line(line) => Box::new(line.points().iter().copied()),
            Part::Polygon(polygon) => Box::new(polygon.points()),
        }
    }

    fn edges(&self) -> Vec<Edge> {
        match self {
            Part::Point(_) => Vec::new(),
            Part::Line(line) => line.edges().collect(),
            Part::Polygon(polygon) => polygon.edges().collect(),
        }
    }

    fn touches(&self, point: Point) -> bool {
        match self {
            Part::Point(spot) => spot.cell().contains_point(point),
            Part::Line(line) => line.touches(point),
            Part::Polygon(polygon) => polygon.touches(point),
        }
    }

    /// Returns `true` if both have a point in common.
    pub fn intersects(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::Point(one), _) => other.touches(one.point),
            (_, Part::Point(other)) => self.touches(other.point),
            _ => {
                self.bound().intersects(other.bound())
                    && (self.points().any(|point| other.touches(point))
                        || other.points().any(|point| self.touches(point))
                        || self.meets_edges(other))
            }
        }
    }

    fn meets_edges(&self, other: &Part) -> bool {
        let others = other.edges();
        self.edges().into_iter().any(|(from, to)| {
            others
                .iter()
                .any(|(start, end)| crossing_sign(from, to, *start, *end) != Crossing::DoNotCross)
        })
    }
}

impl Polygon {
    /// Returns `true` if all of the geometry is inside the polygon or on its boundary.
    pub fn contains(&self, part: &Part) -> bool {
        if let Part::Point(spot) = part {
            return self.touches(spot.point);
        }
        if !part.points().all(|point| self.touches(point)) {
            return false;
        }
        let edges = part.edges();
        if any_cross(edges.iter().copied(), self.edges()) {
            return false;
        }
        if !edges.iter().all(|edge| self.touches(middle(*edge))) {
            return false;
        }
        // All vertices and edges are inside. The geometry is still not contained if it surrounds a
        // hole of this polygon, or if its interior is the other side of the sphere.
        match part {
            Part::Polygon(other) => !self
                .edges()
                .any(|edge| other.has_inside(edge.0) || other.has_inside(middle(edge))),
            _ => true,
        }
    }
}

/// Returns `true` if all of the geometry lies in the cap.
pub(crate) fn cap_contains(cap: &Cap, part: &Part) -> bool {
    if let Part::Point(spot) = part {
        return cap.intersects_cell(&spot.cell());
    }
    if !part.points().all(|point| cap.contains_point(&point)) {
        return false;
    }
    // The point of an edge that is farthest from the center is nearest to the center's antipode.
    let opposite = Point(-cap.center().vector());
    let room = std::f64::consts::PI - cap.angle_radius().radians();
    if let Part::Polygon(polygon) = part
        && room > 0.0
        && polygon.contains_point(opposite)
    {
        return false;
    }
    room <= 0.0 || distance_to(part.edges().into_iter(), opposite) >= room
}
