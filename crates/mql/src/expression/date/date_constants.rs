//! The precomputed constants of a date operator.

use super::format::DateFormat;
use super::zone::Zone;

/// The constant time zone and format of a call of a date operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct DateConstants {
    pub zone: Option<Zone>,
    pub format: Option<DateFormat>,
}
