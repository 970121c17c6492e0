//! The result of a search.

use std::ops::Range;

/// The byte ranges of the text that the whole match and each group have, by group number; the whole
/// match is number 0. `None` for a group that took no part in the match.
pub type Captures = Vec<Option<Range<usize>>>;
