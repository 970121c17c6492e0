//! Parses the option `collation` of a command, an index or a collection, with MongoDB's checks.
//!
//! ```
//! use windrow_document::{ValueRef, collation::compare, doc};
//! let ignores_case = doc! { "locale": "en", "strength": 2 };
//! let collation = windrow_mql::collation::parse(ignores_case.as_document()).unwrap();
//! let (one, other) = (ValueRef::String("heron"), ValueRef::String("HERON"));
//! assert!(compare(collation.as_deref(), one, other).is_eq());
//! assert!(compare(None, one, other).is_ne());
//! ```

use std::sync::Arc;

use windrow_document::collation::CollationSettings;
use windrow_document::{Collation, Document, Type, ValueRef};

use crate::Error;

const NO_SUCH_KEY: i32 = 4;
const INCOMPATIBLE_VERSION: i32 = 161;
const NOT_IMPLEMENTED: i32 = 238;

/// Parses a collation document. Returns `None` for the empty document and for the locale "simple":
/// strings are then compared by their bytes. Null counts as absent, except for `backwards`, whose
/// default differs for some locales.
///
/// # Errors
///
/// - 4: `locale` is missing.
/// - 2: the locale is unknown, or options exclude each other.
/// - 9, 14: a field is unknown, or has a wrong value or type.
/// - 161: `version` is not the version of Windrow's tables.
pub fn parse(collation: Document<'_>) -> Result<Option<Arc<Collation>>, Error> {
    if collation.is_empty() {
        return Ok(None);
    }
    let mut settings = CollationSettings::default();
    let is_set = |(name, value): &(&str, ValueRef<'_>)| *name == "backwards" || !value.is_nullish();
    let locale = collation.get("locale");
    match locale.filter(|locale| !locale.is_nullish()) {
        Some(ValueRef::String(locale)) => settings.locale = locale.to_owned(),
        Some(other) => return Err(wrong_type("locale", other)),
        None => {
            let message = format!("Missing expected field \"locale\" in {collation}");
            return Err(Error::new(NO_SUCH_KEY, message));
        }
    }
    collation
        .iter()
        .filter(is_set)
        .try_for_each(|(name, value)| read(&mut settings, name, value))?;
    if settings.locale == "simple" {
        return check_simple(collation).map(|()| None);
    }
    if !is_locale(&settings.locale) {
        return Err(no_locale(collation));
    }
    check_strength_one(&settings)?;
    if settings.backwards == Some(true) && !settings.locale.starts_with(['f', 'e']) {
        let message = format!("'backwards' is not supported in '{}'", settings.locale);
        return Err(Error::new(NOT_IMPLEMENTED, message));
    }
    let found = Collation::new(&settings).ok_or_else(|| no_locale(collation))?;
    check_version(collation, &found)?;
    Ok(Some(Arc::new(found)))
}

/// Fails with 161 if the collation asks for another version than ours. Another version may sort
/// strings differently.
fn check_version(collation: Document<'_>, found: &Collation) -> Result<(), Error> {
    let version = |collation_document: Document<'_>| {
        collation_document
            .get("version")
            .and_then(|it| it.as_str().map(str::to_owned))
    };
    match (version(collation), version(found.specification())) {
        (Some(requested), Some(available)) if requested != available => Err(Error::new(
            INCOMPATIBLE_VERSION,
            format!(
                "Requested collation version {requested}, but the only available version is {available}"
            ),
        )),
        _ => Ok(()),
    }
}

fn no_locale(collation: Document<'_>) -> Error {
    Error::bad_value(format!("Field 'locale' is invalid in: {collation}"))
}

fn wrong_type(name: &str, value: ValueRef<'_>) -> Error {
    let found = value.type_of().name();
    Error::type_mismatch(format!(
        "BSON field 'collation.{name}' is the wrong type '{found}'"
    ))
}

fn read(settings: &mut CollationSettings, name: &str, value: ValueRef<'_>) -> Result<(), Error> {
    let one_of = |accepted: &[&str]| match value {
        ValueRef::String(text) if accepted.contains(&text) => Ok(Some(text.to_owned())),
        ValueRef::String(text) => Err(Error::failed_to_parse(format!(
            "Enumeration value '{text}' for field 'collation.{name}' is not a valid value."
        ))),
        other => Err(wrong_type(name, other)),
    };
    let flag = || match value.type_of() {
        Type::Bool => Ok(value.as_bool()),
        _ => Err(wrong_type(name, value)),
    };
    match name {
        "locale" => {}
        "version" if value.as_str().is_none() => return Err(wrong_type(name, value)),
        "version" => {}
        "strength" => match value.as_f64() {
            Some(strength) if (1.0..=5.0).contains(&strength) => {
                settings.strength = Some(strength as u8);
            }
            Some(_) => {
                return Err(Error::failed_to_parse(
                    "strength must be a number from 1 to 5",
                ));
            }
            None => return Err(wrong_type(name, value)),
        },
        "caseFirst" => settings.case_first = one_of(&["upper", "lower", "off"])?,
        "alternate" => settings.alternate = one_of(&["non-ignorable", "shifted"])?,
        "maxVariable" => settings.max_variable = one_of(&["punct", "space"])?,
        "caseLevel" => settings.case_level = flag()?,
        "numericOrdering" => settings.numeric_ordering = flag()?,
        "normalization" => settings.normalization = flag()?,
        "backwards" => settings.backwards = flag()?,
        _ => {
            let message = format!("BSON field 'collation.{name}' is an unknown field.");
            return Err(Error::failed_to_parse(message));
        }
    }
    Ok(())
}

/// Fails if the simple collation has options.
fn check_simple(collation: Document<'_>) -> Result<(), Error> {
    let is_option = |name: &str, value: ValueRef<'_>| name != "locale" && !value.is_nullish();
    match collation
        .iter()
        .find(|(name, value)| is_option(name, *value))
    {
        Some((name, _)) => Err(Error::failed_to_parse(format!(
            "'{name}' must not be given with the locale 'simple'"
        ))),
        None => Ok(()),
    }
}

/// Fails if an option orders case or accents at strength 1, which ignores both.
fn check_strength_one(settings: &CollationSettings) -> Result<(), Error> {
    let orders_case = settings.case_first.as_deref().is_some_and(|it| it != "off")
        && settings.case_level != Some(true);
    if settings.strength == Some(1) && (orders_case || settings.backwards == Some(true)) {
        return Err(Error::bad_value(
            "'caseFirst' and 'backwards' are invalid with 'strength' 1",
        ));
    }
    Ok(())
}

/// Languages for which the Unicode CLDR has sort orders.
const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bs", "ca", "chr", "cs", "cy", "da", "de",
    "dsb", "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl",
    "gu", "ha", "haw", "he", "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka",
    "kk", "kl", "km", "kn", "ko", "kok", "ky", "lb", "lkt", "ln", "lo", "lt", "lv", "mk", "ml",
    "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "om", "or", "pa", "pl", "ps", "pt", "ro",
    "ru", "se", "si", "sk", "sl", "smn", "sq", "sr", "sv", "sw", "ta", "te", "th", "to", "tr",
    "ug", "uk", "ur", "uz", "vi", "wae", "yi", "yo", "zh", "zu",
];

/// Returns `true` for one of the languages, also with a country, a script or a variant.
fn is_locale(name: &str) -> bool {
    let language = name.split_once(['_', '@']).map_or(name, |(first, _)| first);
    LANGUAGES.contains(&language)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    #[test]
    fn invalid_collations_are_refused() {
        let check = |collation: DocumentBuf, expected: Result<bool, i32>| {
            let found = parse(collation.as_document());
            let found = found.map(|it| it.is_some()).map_err(|error| error.code);
            assert_eq!(found, expected, "{collation}");
        };
        check(doc! {}, Ok(false));
        check(doc! { "locale": "simple" }, Ok(false));
        check(doc! { "locale": "simple", "strength": 1 }, Err(9));
        check(doc! { "locale": "en" }, Ok(true));
        check(doc! { "locale": "de_AT@collation=phonebook" }, Ok(true));
        check(doc! { "locale": "fr", "backwards": true }, Ok(true));
        check(doc! { "locale": "de", "backwards": true }, Err(238));
        check(doc! { "locale": "zz" }, Err(2));
        check(doc! { "locale": 5 }, Err(14));
        check(doc! { "strength": 2 }, Err(4));
        check(doc! { "locale": null, "strength": 2 }, Err(4));
        check(doc! { "locale": "en", "strength": 6 }, Err(9));
        check(doc! { "locale": "en", "strength": "x" }, Err(14));
        check(doc! { "locale": "en", "bogus": 1 }, Err(9));
        check(doc! { "locale": "en", "caseLevel": 1 }, Err(14));
        check(doc! { "locale": "en", "version": 1 }, Err(14));
        check(doc! { "locale": "en", "version": "57.1" }, Ok(true));
        check(doc! { "locale": "en", "version": "58" }, Err(161));
        check(doc! { "locale": "en", "strength": null }, Ok(true));
        check(doc! { "locale": "simple", "strength": null }, Ok(false));
        check(doc! { "locale": "en", "backwards": null }, Err(14));
        check(doc! { "locale": "en", "caseFirst": "x" }, Err(9));
        let upper = doc! { "locale": "en", "strength": 1, "caseFirst": "upper" };
        check(upper, Err(2));
        let backwards = doc! { "locale": "en", "strength": 1, "backwards": true };
        check(backwards, Err(2));
    }
}
