//! What a search takes and returns.

use std::ops::Range;

/// Asked while a search runs. The search ends with [`MatchError::Interrupted`](crate::MatchError)
/// if it returns `true`.
pub type ShouldStop<'a> = &'a dyn Fn() -> bool;

/// The bytes of the whole match and of each group; `None` for a group that matched nothing.
pub type Captures = Vec<Option<Range<usize>>>;
