//! What the meaning of a query depends on besides its text.

use crate::date::TimeContext;
use crate::mime_type::MimeTypes;
use crate::synonyms::Synonyms;

/// What the meaning of a query depends on besides its text. The default has the times of this machine and
/// neither media types nor synonyms.
#[derive(Debug, Clone)]
pub struct QueryContext {
    /// The present and the time zone.
    pub times: TimeContext,
    /// The media types that `mime:` knows.
    pub mime_types: MimeTypes,
    /// The words that count as others.
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
