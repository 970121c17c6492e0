//! The options of stages that create their own documents. The rules for types, unknown fields and
//! nulls are the same for all of them.

use windrow_document::{Document, Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;

/// Parses a document of options. `path` is its name in errors.
///
/// # Errors
///
/// - 14: not a document.
/// - 40415: a field is not one of `known`.
pub fn parse<'v>(
    path: &'v str,
    value: ValueRef<'v>,
    known: &[&str],
) -> Result<Arguments<'v>, CommandError> {
    let options = Arguments::within(path, object(path, value)?);
    options.only(known)?;
    Ok(options)
}

/// Fails with 14 if the value is not a document.
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

    /// Checks the options of a stage with `parse`. `expected` is the error code.
    pub fn check(
        parse: impl Fn(ValueRef<'_>) -> Result<(), CommandError>,
        operand: &Value,
        expected: Option<i32>,
    ) {
        let found = parse(operand.as_ref())
            .err()
            .map(|error| error.code.number());
        assert_eq!(found, expected, "{operand}");
    }
}
