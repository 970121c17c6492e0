//! Lines on the sphere: chains of great-circle edges.

use s2rst::s1::{Angle, ChordAngle};
use s2rst::s2::edge_crossings::{Crossing, crossing_sign};
use s2rst::s2::edge_distances::{distance_from_segment, is_distance_less};
use s2rst::s2::polyline::Polyline;
use s2rst::s2::shape_index::ShapeIndex;
use s2rst::s2::shape_index_region::ShapeIndexRegion;
use s2rst::s2::{Point, Rect, Region};

/// Two points, joined by the shorter great-circle arc between them.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub from: Point,
    pub to: Point,
}

/// A point this close to an edge, in radians, lies on it. This is about the width of a leaf cell (6
/// mm).
pub(crate) const TOUCH_RADIANS: f64 = 1e-9;

/// Above this many edges, an index of the edges is faster than a scan of them.
pub(crate) const INDEX_EDGES_MIN: usize = 32;

/// A line of at least two points.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub polyline: Polyline,
    bound: Rect,
}

impl Line {
    pub fn new(points: Vec<Point>) -> Line {
        let polyline = Polyline::new(points);
        let bound = widen(polyline.rect_bound());
        Line { polyline, bound }
    }

    /// Calls `run` with the line as an S2 region. Long lines get an index of their edges first.
    pub fn with_region<T>(&self, run: impl FnOnce(&dyn Region) -> T) -> T {
        if self.points().len() <= INDEX_EDGES_MIN {
            return run(&self.polyline);
        }
        let mut index = ShapeIndex::new();
        index.add(Box::new(self.polyline.clone()));
        index.build();
        run(&ShapeIndexRegion::new(&index))
    }

    pub fn points(&self) -> &[Point] {
        self.polyline.vertices_vec()
    }

    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        let next = self.points().iter().skip(1);
        let pairs = self.points().iter().zip(next);
        pairs.map(|(&from, &to)| Edge { from, to })
    }

    pub fn bound(&self) -> Rect {
        self.bound
    }

    pub fn touches(&self, point: Point) -> bool {
        self.bound.contains_point(point) && touches_edge(self.edges(), point)
    }

    /// Returns the distance to the nearest point of the line, in radians.
    pub fn distance(&self, point: Point) -> f64 {
        distance_to(self.edges(), point)
    }
}

/// A bound that includes the points that touch its edge, see [`TOUCH_RADIANS`].
pub(crate) fn widen(bound: Rect) -> Rect {
    bound.expanded_by_distance(Angle::from_radians(TOUCH_RADIANS))
}

pub(crate) fn touches_edge(mut edges: impl Iterator<Item = Edge>, point: Point) -> bool {
    let limit = ChordAngle::from_radians(TOUCH_RADIANS);
    edges.any(|edge| is_distance_less(point, edge.from, edge.to, limit))
}

/// Returns the distance to the nearest edge, in radians.
pub(crate) fn distance_to(edges: impl Iterator<Item = Edge>, point: Point) -> f64 {
    edges
        .map(|edge| distance_from_segment(point, edge.from, edge.to).radians())
        .fold(f64::INFINITY, f64::min)
}

/// Returns `true` if the edge crosses an edge of `others` at an interior point of both.
pub(crate) fn crosses_inside(edge: Edge, mut others: impl Iterator<Item = Edge>) -> bool {
    let crosses = |other: Edge| crossing_sign(edge.from, edge.to, other.from, other.to);
    others.any(|other| crosses(other) == Crossing::Cross)
}

/// The midpoint of an edge.
pub(crate) fn midpoint(edge: Edge) -> Point {
    Point((edge.from.vector() + edge.to.vector()).normalize())
}
