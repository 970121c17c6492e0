//! The context of a query: everything besides its text that determines its meaning.

use crate::date::TimeContext;
use crate::mime_type::MimeTypes;
use crate::synonyms::Synonyms;

/// The context of a query. The default has the time and time zone of this machine, and neither
/// media types nor synonyms.
#[derive(Debug, Clone)]
pub struct QueryContext {
    /// The current time and the time zone.
    pub times: TimeContext,
    /// The media types of the field `mime:`.
    pub mime_types: MimeTypes,
    /// The synonyms.
    pub synonyms: Synonyms,
}

impl Default for QueryContext {
    fn default() -> QueryContext {
        QueryContext {
            times: TimeContext::system(),
            mime_types: MimeTypes::default(),
            synonyms: Synonyms::default(),
        }
    }
}
