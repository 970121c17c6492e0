//! Collations: checked as MongoDB does, and refused where they ask for anything but the order of
//! bytes, which is the only one there is.

use windrow_document::{Document, Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

/// Fails where the collation is wrong, or not "simple".
pub fn check(collation: Option<Document<'_>>) -> Result<(), CommandError> {
    let Some(collation) = collation.filter(|collation| !collation.is_empty()) else {
        return Ok(());
    };
    let locale = match collation.get("locale") {
        Some(ValueRef::String(locale)) => locale,
        Some(other) => return Err(wrong_type("locale", other)),
        None => {
            let message = format!("Missing expected field \"locale\" in {collation}");
            return Err(CommandError::new(ErrorCode::NoSuchKey, message));
        }
    };
    collation
        .iter()
        .try_for_each(|(name, value)| check_field(name, value))?;
    if locale == "simple" {
        return check_simple(collation);
    }
    if !is_locale(locale) {
        let message = format!("Field 'locale' is invalid in: {collation}");
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    check_strength_one(collation)?;
    Err(CommandError::new(
        ErrorCode::NotImplemented,
        format!("collations are not supported yet; 'locale' is '{locale}', not 'simple'"),
    ))
}

fn failed(message: String) -> CommandError {
    CommandError::new(ErrorCode::FailedToParse, message)
}

fn wrong_type(name: &str, value: ValueRef<'_>) -> CommandError {
    let found = value.type_of().name();
    let message = format!("BSON field 'collation.{name}' is the wrong type '{found}'");
    CommandError::new(ErrorCode::TypeMismatch, message)
}

fn check_field(name: &str, value: ValueRef<'_>) -> Result<(), CommandError> {
    let one_of = |accepted: &[&str]| match value {
        ValueRef::String(text) if accepted.contains(&text) => Ok(()),
        ValueRef::String(text) => Err(failed(format!("Field '{name}' cannot be '{text}'"))),
        other => Err(wrong_type(name, other)),
    };
    match name {
        "locale" | "version" => Ok(()),
        "strength" => match value.as_f64() {
            Some(strength) if (1.0..=5.0).contains(&strength) => Ok(()),
            Some(_) => Err(failed("strength must be a number from 1 to 5".to_owned())),
            None => Err(wrong_type(name, value)),
        },
        "caseFirst" => one_of(&["upper", "lower", "off"]),
        "alternate" => one_of(&["non-ignorable", "shifted"]),
        "maxVariable" => one_of(&["punct", "space"]),
        "caseLevel" | "numericOrdering" | "normalization" | "backwards" => match value.type_of() {
            Type::Bool => Ok(()),
            _ => Err(wrong_type(name, value)),
        },
        _ => Err(failed(format!("Collation has no field '{name}'"))),
    }
}

/// The simple collation has no options.
fn check_simple(collation: Document<'_>) -> Result<(), CommandError> {
    match collation.iter().find(|(name, _)| *name != "locale") {
        Some((name, _)) => Err(failed(format!(
            "'{name}' must not be given with the locale 'simple'"
        ))),
        None => Ok(()),
    }
}

/// At the first level there is no case and no accent whose order could be chosen.
fn check_strength_one(collation: Document<'_>) -> Result<(), CommandError> {
    let is_one = collation.get("strength").and_then(ValueRef::as_f64) == Some(1.0);
    let has_case_level = collation.get("caseLevel") == Some(ValueRef::Bool(true));
    let case_first = collation.get("caseFirst").and_then(ValueRef::as_str);
    let orders_case = case_first.is_some_and(|order| order != "off") && !has_case_level;
    let is_backwards = collation.get("backwards") == Some(ValueRef::Bool(true));
    if is_one && (orders_case || is_backwards) {
        let message = "'caseFirst' and 'backwards' are invalid with 'strength' 1";
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    Ok(())
}

/// Languages that the Unicode project has orders for.
const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bs", "ca", "chr", "cs", "cy", "da", "de",
    "dsb", "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl",
    "gu", "ha", "haw", "he", "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka",
    "kk", "kl", "km", "kn", "ko", "kok", "ky", "lb", "lkt", "ln", "lo", "lt", "lv", "mk", "ml",
    "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "om", "or", "pa", "pl", "ps", "pt", "ro",
    "ru", "se", "si", "sk", "sl", "smn", "sq", "sr", "sv", "sw", "ta", "te", "th", "to", "tr",
    "ug", "uk", "ur", "uz", "vi", "wae", "yi", "yo", "zh", "zu",
];

/// Whether it is one of the languages, perhaps with a country, a script, a variant.
fn is_locale(name: &str) -> bool {
    let language = name.split(['_', '@']).next().unwrap_or_default();
    LANGUAGES.contains(&language)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    #[test]
    fn only_the_order_of_bytes_is_there() {
        let check = |collation: DocumentBuf, code: i32| {
            let found = check(Some(collation.as_document()));
            let found = found.map_or_else(|error| error.code.number(), |()| 0);
            assert_eq!(found, code, "{collation}");
        };
        check(doc! {}, 0);
        check(doc! { "locale": "simple" }, 0);
        check(doc! { "locale": "simple", "strength": 1 }, 9);
        check(doc! { "locale": "en" }, 238);
        check(doc! { "locale": "de_AT@collation=phonebook" }, 238);
        check(doc! { "locale": "zz" }, 2);
        check(doc! { "locale": 5 }, 14);
        check(doc! { "strength": 2 }, 4);
        check(doc! { "locale": "en", "strength": 6 }, 9);
        check(doc! { "locale": "en", "strength": "x" }, 14);
        check(doc! { "locale": "en", "bogus": 1 }, 9);
        check(doc! { "locale": "en", "caseLevel": 1 }, 14);
        check(doc! { "locale": "en", "caseFirst": "x" }, 9);
        check(
            doc! { "locale": "en", "strength": 1, "caseFirst": "upper" },
            2,
        );
        check(doc! { "locale": "en", "strength": 1, "backwards": true }, 2);
    }
}
