//! How the work on a large shape learns that it must stop.

use crate::Error;

/// Returns an error if the work must stop. The argument is the amount of work since the last call
/// or until the next one, in units of about 30 ns. At most about 100 ms pass between two calls.
pub type Proceed<'p> = &'p dyn Fn(usize) -> Result<(), Error>;

pub(crate) const NEVER_STOPPED: Proceed<'static> = &|_| Ok(());

/// The work of parsing a vertex, and of each step that builds or compares a polygon, by vertex.
pub(crate) const UNITS_PER_VERTEX: usize = 20;
