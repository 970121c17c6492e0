//! What of an operator on dates does not change from document to document.

use super::format::Format;
use super::zone::Zone;

/// What was computed once from an operator's constant time zone and format.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants {
    pub zone: Option<Zone>,
    pub format: Option<Format>,
}
