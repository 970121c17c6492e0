//! Paths of projections and sorts.

use windrow_document::path::Path;

use crate::Error;
use crate::expression::check_name;

/// Parses a dotted path.
///
/// # Errors
///
/// - 40352: the path is empty.
/// - 40353: it ends with a dot.
/// - 15998: a name is empty.
/// - 16410: a name starts with a dollar sign.
/// - 16411: a name contains a null byte.
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
