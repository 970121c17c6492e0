//! What the stages take that make documents of their own: a document of options, whose rules about
//! types, unknown fields and nulls are one for all of them.

use windrow_document::{Document, Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;

/// The options within a document; `path` is what errors call it. Errors: 14 for what is no document,
/// 40415 for a field that is none of `known`.
pub fn parse<'v>(
    path: &'v str,
    value: ValueRef<'v>,
    known: &[&str],
) -> Result<Arguments<'v>, CommandError> {
    let options = Arguments::within(path, object(path, value)?);
    options.only(known)?;
    Ok(options)
}

/// Error 14 for what is no document.
pub fn object<'v>(path: &str, value: ValueRef<'v>) -> Result<Document<'v>, CommandError> {
    value.as_document().ok_or_else(|| {
        let found = value.type_of().name();
        CommandError::new(
            ErrorCode::TypeMismatch,
            format!(
                "BSON field '{path}' is the wrong type '{found}', expected type '{}'",
                Type::Document.name()
            ),
        )
    })
}

#[cfg(test)]
pub(super) mod tests {
    use windrow_document::Value;

    use super::*;

    /// `parse` reads the options of a stage; `expected`: the code with which it fails.
    pub fn check(
        parse: impl Fn(ValueRef<'_>) -> Result<(), CommandError>,
        wanted: &Value,
        expected: Option<i32>,
    ) {
        let found = parse(wanted.as_ref())
            .err()
            .map(|error| error.code.number());
        assert_eq!(found, expected, "{wanted}");
    }
}
