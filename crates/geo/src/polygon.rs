//! Polygons on the sphere: an outer ring with holes.

use s2rst::s2::shape_index_region::ShapeIndexRegion;
use s2rst::s2::{Cell, CellId, Loop, Point, Rect, Region};
use windrow_interrupt::WorkCounter;

use crate::Error;
use crate::crossing::check_crossings;
use crate::line::{Edge, INDEX_EDGES_MIN, distance_to, touches_edge, widen};
use crate::work::UNITS_PER_VERTEX;

/// Which side of a ring is the interior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Winding {
    /// The smaller side, whatever the order of the vertices is.
    Any,
    /// The left side, so a polygon can be larger than a hemisphere.
    Strict,
}

/// A valid polygon.
#[derive(Clone, Debug)]
pub(crate) struct Polygon {
    inner: s2rst::s2::Polygon,
    bound: Rect,
}

impl Polygon {
    /// Creates a polygon from closed rings, the outer ring first. Fails with code 2 if a ring is
    /// not closed, intersects itself or has too few vertices, or if a hole is not inside the outer
    /// ring. Fails if `count_work` does.
    pub fn new(
        rings: Vec<Vec<Point>>,
        winding: Winding,
        count_work: WorkCounter<'_>,
    ) -> Result<Polygon, Error> {
        if rings.is_empty() {
            return Err(Error::bad_value("Polygon has no loops."));
        }
        if winding == Winding::Strict && rings.len() > 1 {
            return Err(Error::bad_value(
                "Only one simple loop is allowed in a big polygon",
            ));
        }
        let loops = rings
            .into_iter()
            .map(|ring| {
                count_work(UNITS_PER_VERTEX * ring.len())?;
                parse_ring(ring, winding)
            })
            .collect::<Result<Vec<Loop>, Error>>()?;
        let count = loops.len();
        check_holes(&loops, count_work)?;
        let vertices: usize = loops.iter().map(Loop::num_vertices).sum();
        count_work(UNITS_PER_VERTEX * vertices)?;
        let inner = s2rst::s2::Polygon::from_loops(loops);
        count_work(UNITS_PER_VERTEX * vertices)?;
        check_crossings(inner.shape_index(), count_work)?;
        let is_nested = inner.loops().iter().all(|ring| ring.depth() <= 1);
        if inner.num_loops() != count || !is_nested {
            return Err(Error::bad_value("Polygon interior is not connected"));
        }
        let bound = widen(inner.bound());
        Ok(Polygon { inner, bound })
    }

    /// Calls `run` with the polygon as an S2 region.
    pub fn with_region<T>(&self, run: impl FnOnce(&dyn Region) -> T) -> T {
        run(&ShapeIndexRegion::new(self.inner.shape_index()))
    }

    pub fn contains_point(&self, point: Point) -> bool {
        self.inner.contains_point(&point)
    }

    fn is_on_boundary(&self, point: Point) -> bool {
        if self.inner.num_vertices() > INDEX_EDGES_MIN && !self.contains_point(point) {
            // The index of edges is only usable for a point outside: the leaf cell of an interior
            // point intersects the polygon, whether or not it touches the boundary.
            let cell = Cell::from_cell_id(CellId::from_point(&point));
            self.with_region(|region| region.intersects_cell(&cell))
        } else {
            touches_edge(self.edges(), point)
        }
    }

    pub fn edges(&self) -> impl Iterator<Item = Edge> + Clone + '_ {
        self.inner.loops().iter().flat_map(|ring| {
            let next = ring.vertices().iter().cycle().skip(1);
            let pairs = ring.vertices().iter().zip(next);
            pairs.map(|(&from, &to)| Edge { from, to })
        })
    }

    pub fn edge_count(&self) -> usize {
        self.inner.num_vertices()
    }

    pub fn points(&self) -> impl Iterator<Item = Point> + '_ {
        self.edges().map(|edge| edge.from)
    }

    pub fn bound(&self) -> Rect {
        self.bound
    }

    /// Returns `true` if the point is inside or on the boundary.
    pub fn touches(&self, point: Point) -> bool {
        self.bound.contains_point(point)
            && (self.contains_point(point) || self.is_on_boundary(point))
    }

    /// Returns `true` if the point is inside and not on the boundary.
    pub fn contains_interior(&self, point: Point) -> bool {
        self.contains_point(point) && !self.is_on_boundary(point)
    }

    /// Returns the distance to the nearest point of the polygon, in radians.
    pub fn distance(&self, point: Point) -> f64 {
        if self.contains_point(point) {
            0.0
        } else {
            distance_to(self.edges(), point)
        }
    }
}

fn parse_ring(ring: Vec<Point>, winding: Winding) -> Result<Loop, Error> {
    if ring.len() < 4 || ring.first() != ring.last() {
        return Err(Error::bad_value(
            "Loop is not closed, first vertex does not equal last vertex",
        ));
    }
    let mut points = ring;
    points.dedup();
    points.pop();
    if points.len() < 3 {
        return Err(Error::bad_value(
            "Loop must have at least 3 different vertices",
        ));
    }
    let mut found = Loop::new(points);
    found
        .validate()
        .map_err(|problem| Error::bad_value(format!("Loop is not valid: {problem}")))?;
    if winding == Winding::Any {
        found.normalize();
    }
    Ok(found)
}

fn check_holes(loops: &[Loop], count_work: WorkCounter<'_>) -> Result<(), Error> {
    let Some((shell, holes)) = loops.split_first() else {
        return Ok(());
    };
    for hole in holes {
        count_work(UNITS_PER_VERTEX * hole.num_vertices())?;
        if !shell.contains_loop(hole) {
            return Err(Error::bad_value(
                "Secondary loops not contained by first exterior loop - secondary loops must be \
                 holes",
            ));
        }
    }
    Ok(())
}
