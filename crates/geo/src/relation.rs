//! Spatial predicates on the sphere. Shapes that only touch intersect.

use s2rst::s2::edge_crossings::{Crossing, crossing_sign};
use s2rst::s2::{Cap, Point, Rect, Region};

use crate::line::{Edge, distance_to, edges_cross_inside, midpoint};
use crate::polygon::Polygon;
use crate::shape::Geometry;

impl Geometry {
    fn bound(&self) -> Rect {
        match self {
            Geometry::Point(leaf) => Rect::from_lat_lng(leaf.point.into()),
            Geometry::Line(line) => line.bound(),
            Geometry::Polygon(polygon) => polygon.bound(),
        }
    }

    fn points(&self) -> Box<dyn Iterator<Item = Point> + '_> {
        match self {
            Geometry::Point(leaf) => Box::new(std::iter::once(leaf.point)),
            Geometry::Line(line) => Box::new(line.points().iter().copied()),
            Geometry::Polygon(polygon) => Box::new(polygon.points()),
        }
    }

    fn edges(&self) -> Vec<Edge> {
        match self {
            Geometry::Point(_) => Vec::new(),
            Geometry::Line(line) => line.edges().collect(),
            Geometry::Polygon(polygon) => polygon.edges().collect(),
        }
    }

    fn touches(&self, point: Point) -> bool {
        match self {
            Geometry::Point(leaf) => leaf.cell().contains_point(point),
            Geometry::Line(line) => line.touches(point),
            Geometry::Polygon(polygon) => polygon.touches(point),
        }
    }

    /// Returns `true` if both have a point in common.
    pub fn intersects(&self, other: &Geometry) -> bool {
        match (self, other) {
            (Geometry::Point(leaf), _) => other.touches(leaf.point),
            (_, Geometry::Point(leaf)) => self.touches(leaf.point),
            _ => {
                self.bound().intersects(other.bound())
                    && (self.points().any(|point| other.touches(point))
                        || other.points().any(|point| self.touches(point))
                        || self.has_crossing_edge(other))
            }
        }
    }

    fn has_crossing_edge(&self, other: &Geometry) -> bool {
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
    pub fn contains(&self, geometry: &Geometry) -> bool {
        if let Geometry::Point(leaf) = geometry {
            return self.touches(leaf.point);
        }
        if !geometry.points().all(|point| self.touches(point)) {
            return false;
        }
        let edges = geometry.edges();
        if edges_cross_inside(edges.iter().copied(), self.edges()) {
            return false;
        }
        if !edges.iter().all(|edge| self.touches(midpoint(*edge))) {
            return false;
        }
        // All vertices and edges are inside. The geometry is still not contained if it surrounds a
        // hole of this polygon, or if its interior is the other side of the sphere.
        match geometry {
            Geometry::Polygon(other) => !self.edges().any(|edge| {
                other.contains_interior(edge.0) || other.contains_interior(midpoint(edge))
            }),
            _ => true,
        }
    }
}

/// Returns `true` if all of the geometry lies in the cap.
pub(crate) fn cap_contains(cap: &Cap, geometry: &Geometry) -> bool {
    if let Geometry::Point(leaf) = geometry {
        return cap.intersects_cell(&leaf.cell());
    }
    if !geometry.points().all(|point| cap.contains_point(&point)) {
        return false;
    }
    // The point of an edge that is farthest from the center is nearest to the center's antipode.
    let opposite = Point(-cap.center().vector());
    let room = std::f64::consts::PI - cap.angle_radius().radians();
    if let Geometry::Polygon(polygon) = geometry
        && room > 0.0
        && polygon.contains_point(opposite)
    {
        return false;
    }
    room <= 0.0 || distance_to(geometry.edges().into_iter(), opposite) >= room
}
