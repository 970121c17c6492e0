//! `$querySettings`: the settings of query shapes. No command sets any, so the result is empty.

use windrow_document::ValueRef;
use windrow_wire::{CommandError, ErrorCode};

use super::document_list::Describe;
use super::stage_options;
use crate::errors::refuse;

/// Returns no documents.
///
/// # Errors
///
/// - 73: a collection is named.
/// - 7746800, 14, 40415: invalid options.
pub fn describe(
    is_collectionless: bool,
    operand: ValueRef<'_>,
) -> Result<Describe<'static>, CommandError> {
    if !is_collectionless {
        let message = "$querySettings must be run against the database with {aggregate: 1}";
        return refuse(ErrorCode::InvalidNamespace, message);
    }
    if operand.as_document().is_none() {
        return refuse(7_746_800, "$querySettings must take a nested object");
    }
    let options = stage_options::parse("$querySettings", operand, &["showDebugQueryShape"])?;
    options.non_null_bool("showDebugQueryShape")?;
    Ok(Box::new(|| Ok(Vec::new())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc};

    #[test]
    fn options_are_checked_as_in_mongodb() {
        let check = |operand: Value, expected: Option<i32>| {
            let found = describe(true, operand.as_ref());
            assert_eq!(
                found.err().map(|error| error.code.number()),
                expected,
                "{operand}"
            );
        };
        check(doc! {}.into(), None);
        check(doc! { "showDebugQueryShape": true }.into(), None);
        check(doc! { "showDebugQueryShape": 1 }.into(), Some(14));
        check(doc! { "x": 1 }.into(), Some(40415));
        check(Value::Null, Some(7_746_800));
    }
}
