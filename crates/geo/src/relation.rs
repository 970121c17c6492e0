//! Spatial predicates on the sphere. Shapes that only touch intersect.

use s2rst::s2::edge_crossings::{Crossing, crossing_sign};
use s2rst::s2::{Cap, Point, Rect, Region};

use windrow_interrupt::{Interrupted, WorkCounter};

use crate::line::{Edge, crosses_inside, distance_to, midpoint};
use crate::polygon::Polygon;
use crate::shape::Geometry;
use crate::work::UNITS_PER_VERTEX;

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

    /// The number of edges; 0 for a point.
    pub fn edge_count(&self) -> usize {
        match self {
            Geometry::Point(_) => 0,
            Geometry::Line(line) => line.points().len(),
            Geometry::Polygon(polygon) => polygon.edge_count(),
        }
    }

    /// The work of [`touches`](Self::touches).
    fn units_of_touch(&self) -> usize {
        match self {
            Geometry::Point(_) => 1,
            Geometry::Line(line) => line.points().len(),
            Geometry::Polygon(_) => UNITS_PER_VERTEX,
        }
    }

    /// Returns the distance to the nearest point of the geometry, in radians.
    pub fn distance(&self, point: Point) -> f64 {
        match self {
            Geometry::Point(leaf) => leaf.point.distance(point).radians(),
            Geometry::Line(line) => line.distance(point),
            Geometry::Polygon(polygon) => polygon.distance(point),
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

    /// Returns `true` if both have a point in common. Fails if `count_work` does.
    pub fn intersects(
        &self,
        other: &Geometry,
        count_work: WorkCounter<'_>,
    ) -> Result<bool, Interrupted> {
        match (self, other) {
            (Geometry::Point(leaf), _) => other.touches_point(leaf.point, count_work),
            (_, Geometry::Point(leaf)) => self.touches_point(leaf.point, count_work),
            _ => Ok(self.bound().intersects(other.bound())
                && (any(self.points(), |point| {
                    other.touches_point(point, count_work)
                })? || any(other.points(), |point| {
                    self.touches_point(point, count_work)
                })? || self.has_crossing_edge(other, count_work)?)),
        }
    }

    fn touches_point(
        &self,
        point: Point,
        count_work: WorkCounter<'_>,
    ) -> Result<bool, Interrupted> {
        count_work(self.units_of_touch())?;
        Ok(self.touches(point))
    }

    fn has_crossing_edge(
        &self,
        other: &Geometry,
        count_work: WorkCounter<'_>,
    ) -> Result<bool, Interrupted> {
        let others = other.edges();
        any(self.edges(), |edge| {
            count_work(others.len())?;
            let crosses = |other: &Edge| {
                let crossing = crossing_sign(edge.from, edge.to, other.from, other.to);
                crossing != Crossing::DoNotCross
            };
            Ok(others.iter().any(crosses))
        })
    }
}

/// Returns `true` if the test holds for an element. Fails with its first error.
pub(crate) fn any<T>(
    elements: impl IntoIterator<Item = T>,
    test: impl Fn(T) -> Result<bool, Interrupted>,
) -> Result<bool, Interrupted> {
    for element in elements {
        if test(element)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Polygon {
    /// Returns `true` if all of the geometry is inside the polygon or on its boundary. Fails with
    /// the error of `count_work`.
    pub fn contains(
        &self,
        geometry: &Geometry,
        count_work: WorkCounter<'_>,
    ) -> Result<bool, Interrupted> {
        let leaves = |point| {
            count_work(UNITS_PER_VERTEX)?;
            Ok(!self.touches(point))
        };
        if let Geometry::Point(leaf) = geometry {
            return Ok(self.touches(leaf.point));
        }
        if any(geometry.points(), leaves)? {
            return Ok(false);
        }
        let edges = geometry.edges();
        let crosses = |edge: Edge| {
            count_work(self.edge_count())?;
            Ok(crosses_inside(edge, self.edges()))
        };
        if any(edges.iter().copied(), crosses)? || any(edges.iter().copied().map(midpoint), leaves)?
        {
            return Ok(false);
        }
        // All vertices and edges are inside. The geometry is still not contained if it surrounds a
        // hole of this polygon, or if its interior is the other side of the sphere.
        let Geometry::Polygon(other) = geometry else {
            return Ok(true);
        };
        let is_surrounded = |edge: Edge| {
            count_work(2 * UNITS_PER_VERTEX)?;
            Ok(other.contains_interior(edge.from) || other.contains_interior(midpoint(edge)))
        };
        Ok(!any(self.edges(), is_surrounded)?)
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
