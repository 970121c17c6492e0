//! Paths of projections and sorts: every name in them must be a plain one.

use windrow_document::path::Path;

use crate::Error;
use crate::expression::check_name;

/// Parses a dotted path. Errors: 40352 for an empty one, 40353 for one that ends with a dot, 15998
/// for an empty name in it, 16410 for a name that begins with a dollar sign, 16411 for a 0 byte.
pub(crate) fn parse_path(text: &str) -> Result<Path, Error> {
    if text.is_empty() {
        return Err(Error::new(
            40352,
            "FieldPath cannot be constructed with empty string",
        ));
    }
    if text.ends_with('.') {
        return Err(Error::new(40353, "FieldPath must not end with a '.'."));
    }
    text.split('.').try_for_each(check_name)?;
    Ok(Path::parse(text))
}
