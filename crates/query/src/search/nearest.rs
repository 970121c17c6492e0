//! The nearest points of a `near`, without the distances of all points.

use windrow_interrupt::Interrupt;
use windrow_search::{BestOptions, Nearness, Scores, best};

use super::{BestRecords, OpenSearch};
use crate::Error;

/// The radius of the circle in which the nearest points are sought first. The next circles have four
/// times the radius of the one before, so all of them together cost little more than the last.
const FIRST_RADIUS_METERS: f64 = 100.0;
const RADIUS_FACTOR: f64 = 4.0;
/// After a circle of at least this radius, all points are read.
const LAST_RADIUS_METERS: f64 = 4e6;

impl OpenSearch {
    /// Returns the best records of a `near` with a point and this pivot: those in a small circle
    /// around the origin if there are enough, otherwise those in larger circles.
    pub(super) fn nearest(
        &self,
        options: &BestOptions,
        pivot: f64,
        interrupt: &dyn Interrupt,
    ) -> Result<BestRecords, Error> {
        let nearness = Nearness { origin: 0.0, pivot };
        let mut radius = FIRST_RADIUS_METERS;
        loop {
            let best = self.run_within(radius, interrupt, Scores::Wanted, |node| {
                best(node, options, interrupt)
            })?;
            // A record outside of the circle may have the same score as one at its edge.
            let worst = best.hits.get(options.k.saturating_sub(1));
            let is_complete = worst.is_some_and(|hit| hit.score > nearness.score(radius));
            if is_complete || radius == f64::INFINITY {
                return Ok(BestRecords { best, total: None });
            }
            radius = if radius < LAST_RADIUS_METERS {
                radius * RADIUS_FACTOR
            } else {
                f64::INFINITY
            };
        }
    }
}
