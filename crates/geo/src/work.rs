//! The amounts of work that are counted, so that an interrupt can stop the work on a large shape.

/// The work of parsing a vertex, and of each step that builds or compares a polygon, by vertex.
pub(crate) const UNITS_PER_VERTEX: usize = 20;
