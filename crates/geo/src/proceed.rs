//! How parsing a large shape learns that it must stop.

use crate::Error;

/// Returns an error if parsing must stop. It is called for some of the vertices and between the steps
/// that build and check a polygon, of which each may take 100 ms.
pub type Proceed<'p> = &'p dyn Fn() -> Result<(), Error>;

pub(crate) const NEVER_STOPPED: Proceed<'static> = &|| Ok(());
