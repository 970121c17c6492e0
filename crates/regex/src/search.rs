//! What a search returns.

use std::ops::Range;

/// The bytes of the whole match and of each group; `None` for a group that matched nothing.
pub type Captures = Vec<Option<Range<usize>>>;
