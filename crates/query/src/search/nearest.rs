//! The nearest points of a `near`, without the distances of all points.

use windrow_interrupt::Interrupt;
use windrow_search::{Best, BestOptions, CompileError, Nearness, Query, Scores, best};

use super::open_lists;
use super::source::IndexSource;
use crate::Error;

/// The radius of the circle in which the nearest points are sought first. The next circles have
/// four times the radius of the one before, so all of them together cost little more than the last.
const FIRST_RADIUS_METERS: f64 = 100.0;
const RADIUS_FACTOR: f64 = 4.0;
/// After a circle of at least this radius, all points are read.
const LAST_RADIUS_METERS: f64 = 4e6;

/// Returns the best records of a `near` with a point: those in a small circle around the origin if
/// there are enough, otherwise those in larger circles.
pub(super) fn best_of_near(
    query: &Query,
    source: &IndexSource<'_>,
    nearness: Nearness,
    options: &BestOptions,
    interrupt: &dyn Interrupt,
) -> Result<Best, CompileError<Error>> {
    let mut radius = FIRST_RADIUS_METERS;
    loop {
        let mut node = open_lists(query, &source.within(radius), Scores::Computed, interrupt)?;
        let best = best(&mut node, options, interrupt)?;
        // A record outside of the circle may have the same score as one at its edge.
        let is_inside = |score: f64| score > nearness.score(radius);
        let is_complete = best.hits.len() == options.k
            && best.hits.last().is_none_or(|worst| is_inside(worst.score));
        if is_complete || radius == f64::INFINITY {
            return Ok(best);
        }
        radius = if radius < LAST_RADIUS_METERS {
            radius * RADIUS_FACTOR
        } else {
            f64::INFINITY
        };
    }
}
