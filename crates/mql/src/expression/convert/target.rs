//! The target of `$convert`: a type by name or by number, and for binary data a subtype.

use windrow_document::{Type, ValueRef};

use crate::Error;
use crate::expression::ExprValue;

/// The string format of binary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryFormat {
    /// `Uuid` for UUIDs, otherwise `Base64`.
    Auto,
    Base64,
    Base64Url,
    Hex,
    Utf8,
    Uuid,
}

impl BinaryFormat {
    /// Parses `format`. Returns `None` if it is null or missing.
    ///
    /// # Errors
    ///
    /// - 4341114: not a string.
    /// - 4341125: an unknown name.
    pub fn parse(value: &ExprValue<'_>) -> Result<Option<BinaryFormat>, Error> {
        if value.is_nullish() {
            return Ok(None);
        }
        let Some(name) = value.as_str() else {
            let found = value.type_name();
            let message = format!("$convert requires that 'format' be a string, found: {found}");
            return Err(Error::new(4341114, message));
        };
        Ok(Some(match name {
            "auto" => BinaryFormat::Auto,
            "base64" => BinaryFormat::Base64,
            "base64url" => BinaryFormat::Base64Url,
            "hex" => BinaryFormat::Hex,
            "utf8" => BinaryFormat::Utf8,
            "uuid" => BinaryFormat::Uuid,
            _ => {
                let message = format!("Invalid 'format' argument for $convert: {name}");
                return Err(Error::new(4341125, message));
            }
        }))
    }
}

/// Parses `byteOrder`. The default is little-endian.
///
/// # Errors
///
/// - 9130001: not a string.
/// - 9130002: an unknown name.
pub(super) fn is_big_endian(value: &ExprValue<'_>) -> Result<bool, Error> {
    if value.is_nullish() {
        return Ok(false);
    }
    match value.as_str() {
        Some("little") => Ok(false),
        Some("big") => Ok(true),
        Some(name) => {
            let message = format!("Invalid 'byteOrder' argument for $convert: {name}");
            Err(Error::new(9130002, message))
        }
        None => {
            let found = value.type_name();
            let message = format!("$convert requires that 'byteOrder' be a string, found: {found}");
            Err(Error::new(9130001, message))
        }
    }
}

/// The target type, with the options of conversions of binary data.
#[derive(Clone, Debug)]
pub(super) struct ConversionTarget {
    pub kind: Type,
    pub subtype: u8,
    pub format: Option<BinaryFormat>,
    pub is_big_endian: bool,
}

impl ConversionTarget {
    /// Parses `to`: `"int"`, `16`, or `{type: "binData", …}`, of which only `type` is read here.
    ///
    /// # Errors
    ///
    /// - 2: an unknown type name.
    /// - 9: an unknown type number, or a value of another type.
    pub fn parse(value: &ExprValue<'_>, operator: &str) -> Result<ConversionTarget, Error> {
        let subtype = if operator == "$toUUID" { 4 } else { 0 };
        let value = match value.or_null() {
            ValueRef::Document(document) => document.get("type").unwrap_or(ValueRef::Null),
            value => value,
        };
        let target = |kind| ConversionTarget {
            kind,
            subtype,
            format: None,
            is_big_endian: false,
        };
        match value {
            ValueRef::String(name) => by_name(name)
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

impl ConversionTarget {
    /// Parses the subtype in `{type: "binData", subtype: 4}`. It is a separate step because a
    /// subtype is not checked if the input is null. Fails as [`parse_subtype`] does.
    pub fn take_subtype(&mut self, value: &ExprValue<'_>) -> Result<(), Error> {
        let subtype = value.as_document().and_then(|it| it.get("subtype"));
        if let Some(subtype) = subtype {
            self.subtype = parse_subtype(subtype)?;
        }
        Ok(())
    }
}

/// Returns the type with this name. "missing" is accepted like "undefined". Nothing can be
/// converted to either.
fn by_name(name: &str) -> Option<Type> {
    match name {
        "missing" => Some(Type::Undefined),
        name => Type::from_name(name),
    }
}

fn by_number(value: ValueRef<'_>) -> Result<Type, Error> {
    let Some(number) = value.as_whole() else {
        let message = "In $convert, numeric 'to' argument is not an integer";
        return Err(Error::failed_to_parse(message));
    };
    let mut types = Type::ALL.into_iter();
    let found = match number {
        0 => by_name("missing"),
        number => types.find(|kind| i64::from(kind.number()) == number),
    };
    found.ok_or_else(|| {
        let message = format!(
            "In $convert, numeric value for 'to' does not correspond to a BSON type: {number}"
        );
        Error::failed_to_parse(message)
    })
}

/// Parses a subtype.
///
/// # Errors
///
/// - 4341108: not a number.
/// - 4341106: not a whole number.
/// - 4341107: not a subtype of binary data.
fn parse_subtype(value: ValueRef<'_>) -> Result<u8, Error> {
    if !value.is_number() {
        let found = value.type_of().name();
        let message = format!("$convert's 'subtype' argument must be a number, but is {found}");
        return Err(Error::new(4341108, message));
    }
    let Some(number) = value.as_whole() else {
        let message = "In $convert, numeric 'subtype' argument is not an integer";
        return Err(Error::new(4341106, message));
    };
    match u8::try_from(number) {
        Ok(subtype @ (0..=9 | 128..=255)) => Ok(subtype),
        _ => {
            let message = format!(
                "In $convert, numeric value for 'subtype' does not correspond to a BinData type: \
                 {number}"
            );
            Err(Error::new(4341107, message))
        }
    }
}
