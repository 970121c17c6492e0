//! Finds the edges of a polygon that cross each other or share a vertex that they must not share.
//!
//! The cells of the polygon's index contain few edges each, unless many long edges lie close to
//! each other. The edges of a cell are compared in pairs, so such a polygon takes quadratic time.
//! The search therefore ends with the first error, stores nothing, and can be stopped.

use s2rst::s2::edge_crosser::EdgeCrosser;
use s2rst::s2::edge_crossings::Crossing;
use s2rst::s2::shape::{Edge, Shape};
use s2rst::s2::shape_index::{ShapeIndex, ShapeIndexCell};
use s2rst::s2::wedge_relations::{WedgeRel, wedge_relation};
use windrow_interrupt::WorkCounter;

use crate::Error;

/// An edge of the polygon with its number.
struct NumberedEdge {
    number: usize,
    edge: Edge,
}

/// Fails with code 2 if two edges of the index's only shape cross, if a ring has a vertex twice, or
/// if two rings share an edge. Fails if `count_work` does.
pub(crate) fn check_crossings(
    index: &ShapeIndex,
    count_work: WorkCounter<'_>,
) -> Result<(), Error> {
    let Some(polygon) = index.shape(0) else {
        return Ok(());
    };
    for (_, cell) in index.iter() {
        let edges = edges_of(polygon, cell);
        for (place, edge) in edges.iter().enumerate() {
            let others = edges.get(place + 1..).unwrap_or_default();
            count_work(others.len() + 1)?;
            check_edge(polygon, edge, others)?;
        }
    }
    Ok(())
}

fn edges_of(polygon: &dyn Shape, cell: &ShapeIndexCell) -> Vec<NumberedEdge> {
    let numbers = cell.shapes.iter().flat_map(|clipped| &clipped.edges);
    let numbers = numbers.map(|number| number.cast_unsigned() as usize);
    numbers
        .map(|number| NumberedEdge {
            number,
            edge: polygon.edge(number),
        })
        .collect()
}

fn check_edge(
    polygon: &dyn Shape,
    one: &NumberedEdge,
    others: &[NumberedEdge],
) -> Result<(), Error> {
    let mut crosser = EdgeCrosser::new(one.edge.v0, one.edge.v1);
    let mut end = None;
    for other in others {
        if end != Some(other.edge.v0) {
            crosser.restart_at(other.edge.v0);
        }
        end = Some(other.edge.v1);
        let problem = match crosser.chain_crossing_sign(other.edge.v1) {
            Crossing::DoNotCross => None,
            Crossing::Cross => Some("crosses"),
            Crossing::MaybeCross => problem_at_vertex(polygon, one, other),
        };
        if let Some(problem) = problem {
            return Err(invalid(polygon, one.number, problem, other.number));
        }
    }
    Ok(())
}

/// Returns what is wrong with two edges that have a vertex in common. Rings may touch at a vertex.
/// Each vertex is looked at once, as the end of both edges.
fn problem_at_vertex(
    polygon: &dyn Shape,
    one: &NumberedEdge,
    other: &NumberedEdge,
) -> Option<&'static str> {
    let (number, other_number) = (one.number, other.number);
    let (edge, other) = (&one.edge, &other.edge);
    if edge.v1 != other.v1 {
        return None;
    }
    if polygon.chain_position(number).chain_id == polygon.chain_position(other_number).chain_id {
        return Some("has duplicate vertex with");
    }
    let (next, other_next) = (after(polygon, number), after(polygon, other_number));
    if edge.v0 == other.v0 || edge.v0 == other_next {
        return Some("has duplicate near");
    }
    let overlap = |from, to| {
        let relation = wedge_relation(edge.v0, edge.v1, next, from, to);
        relation == WedgeRel::ProperlyOverlaps
    };
    // The interior of a ring may be on either side, so the rings cross only if the wedges overlap
    // for both directions of the other ring.
    let crosses = overlap(other.v0, other_next) && overlap(other_next, other.v0);
    crosses.then_some("crosses")
}

/// The end of the edge that follows an edge in its ring.
fn after(polygon: &dyn Shape, number: usize) -> s2rst::s2::Point {
    let position = polygon.chain_position(number);
    let length = polygon.chain(position.chain_id).length;
    let next = (position.offset + 1) % length;
    polygon.chain_edge(position.chain_id, next).v1
}

#[cold]
fn invalid(polygon: &dyn Shape, one: usize, problem: &str, other: usize) -> Error {
    let [one, other] = [one, other].map(|number| polygon.chain_position(number));
    Error::bad_value(format!(
        "Polygon isn't valid: Loop {} edge {} {problem} loop {} edge {}",
        one.chain_id, one.offset, other.chain_id, other.offset
    ))
}
