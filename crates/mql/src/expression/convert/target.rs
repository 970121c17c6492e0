//! What `$convert` converts to: a type's name or number, for binary data with a subtype.

use windrow_document::{Type, ValueRef};

use crate::Error;
use crate::expression::Computed;

/// A type, with what conversions of binary data need besides.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub kind: Type,
    pub subtype: u8,
    pub format: Option<String>,
    pub is_big_endian: bool,
}

impl Target {
    /// `"int"`, `16`, or `{type: "binData", subtype: 4}`. 2 for an unknown name, 9 for an unknown number
    /// or what is neither.
    pub fn parse(value: &Computed<'_>, operator: &str) -> Result<Target, Error> {
        let subtype = if operator == "$toUUID" { 4 } else { 0 };
        let (value, subtype) = match value.or_null() {
            ValueRef::Document(document) => {
                let subtype = document
                    .get("subtype")
                    .and_then(ValueRef::as_whole)
                    .unwrap_or(0);
                (
                    document.get("type").unwrap_or(ValueRef::Null),
                    subtype as u8,
                )
            }
            value => (value, subtype),
        };
        let target = |kind| Target {
            kind,
            subtype,
            format: None,
            is_big_endian: false,
        };
        match value {
            ValueRef::String(name) => Type::from_name(name)
                .map(target)
                .ok_or_else(|| Error::bad_value(format!("Unknown type name: {name}"))),
            number if number.is_number() => by_number(number).map(target),
            other => {
                let found = other.type_of().name();
                let message =
                    format!("$convert's 'to' argument must be a string or number, but is {found}");
                Err(Error::failed_to_parse(message))
            }
        }
    }
}

fn by_number(value: ValueRef<'_>) -> Result<Type, Error> {
    let Some(number) = value.as_whole() else {
        let message = "In $convert, numeric 'to' argument is not an integer";
        return Err(Error::failed_to_parse(message));
    };
    let found = Type::ALL
        .into_iter()
        .find(|kind| i64::from(kind.number()) == number);
    found.ok_or_else(|| {
        let message = format!(
            "In $convert, numeric value for 'to' does not correspond to a BSON type: {number}"
        );
        Error::failed_to_parse(message)
    })
}
