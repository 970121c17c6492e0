//! Collations: language-specific order and equality of strings.
//!
//! A collation applies to strings at any depth of a value. Field names are compared by their bytes.
//! A string's *sort key* is a byte sequence whose plain order is the collation's order (Unicode
//! Technical Standard #10). See <https://www.mongodb.com/docs/manual/reference/collation/>.

use std::cmp::Ordering;
use std::fmt;

use icu_collator::options::{
    AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, ResolvedCollatorOptions, Strength,
};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;

use crate::{Array, Document, DocumentBuf, ValueRef, doc};

/// The options of a collation. `None` stands for the locale's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollationSettings {
    /// An ICU locale: "de_AT", "de@collation=phonebook".
    pub locale: String,
    /// The level of comparison, from 1 (base characters only) to 5 (code points).
    pub strength: Option<u8>,
    /// Whether case is compared at strengths 1 and 2.
    pub case_level: Option<bool>,
    /// Which case sorts first: "upper", "lower" or "off".
    pub case_first: Option<String>,
    /// Whether digits are compared as numbers.
    pub numeric_ordering: Option<bool>,
    /// Whether white space and punctuation are compared: "non-ignorable" or "shifted".
    pub alternate: Option<String>,
    /// Which characters "shifted" ignores: "punct" or "space".
    pub max_variable: Option<String>,
    /// Accepted and reported, but without effect: ICU4X always normalizes.
    pub normalization: Option<bool>,
    /// Whether accents are compared from the end of the string, as in Canadian French.
    pub backwards: Option<bool>,
}

/// A collation, ready for use.
///
/// ```
/// use std::cmp::Ordering;
/// use windrow_document::collation::{Collation, CollationSettings};
///
/// let settings = CollationSettings {
///     locale: "en".to_owned(),
///     strength: Some(1),
///     ..CollationSettings::default()
/// };
/// let collation = Collation::new(&settings).unwrap();
/// assert_eq!(collation.compare_strings("cafe", "CAFÉ"), Ordering::Equal);
/// ```
pub struct Collation {
    collator: CollatorBorrowed<'static>,
    specification: DocumentBuf,
}

/// Collations with equal specifications are equal.
impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.specification == other.specification
    }
}

impl fmt::Debug for Collation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.specification.fmt(formatter)
    }
}

/// The version that MongoDB reports. Drivers compare it as part of the specification.
const VERSION: &str = "57.1";

/// Collation types in ICU locale keywords and in Unicode locale identifiers.
const COLLATION_TYPES: &[(&str, &str)] = &[
    ("dictionary", "dict"),
    ("phonebook", "phonebk"),
    ("traditional", "trad"),
];

impl Collation {
    /// Creates a collation. Returns `None` if the locale or the combination of options is not
    /// supported.
    pub fn new(settings: &CollationSettings) -> Option<Collation> {
        let locale = locale(settings)?;
        let mut preferences = CollatorPreferences::from(&locale);
        preferences.case_first = settings.case_first.as_deref().map(|order| match order {
            "upper" => CollationCaseFirst::Upper,
            "lower" => CollationCaseFirst::Lower,
            _ => CollationCaseFirst::False,
        });
        preferences.numeric_ordering = settings.numeric_ordering.map(|on| {
            if on {
                CollationNumericOrdering::True
            } else {
                CollationNumericOrdering::False
            }
        });
        let mut options = CollatorOptions::default();
        options.strength = settings.strength.map(|strength| match strength {
            1 => Strength::Primary,
            2 => Strength::Secondary,
            4 => Strength::Quaternary,
            5 => Strength::Identical,
            _ => Strength::Tertiary,
        });
        options.case_level = settings
            .case_level
            .map(|on| if on { CaseLevel::On } else { CaseLevel::Off });
        let shifted = |text: &str| match text {
            "shifted" => AlternateHandling::Shifted,
            _ => AlternateHandling::NonIgnorable,
        };
        options.alternate_handling = settings.alternate.as_deref().map(shifted);
        let variable = |text: &str| match text {
            "space" => MaxVariable::Space,
            _ => MaxVariable::Punctuation,
        };
        options.max_variable = settings.max_variable.as_deref().map(variable);
        let collator = Collator::try_new(preferences, options).ok()?;
        let specification = specification(settings, collator.resolved_options());
        Some(Collation {
            collator,
            specification,
        })
    }

    /// The specification with all of its fields, as MongoDB stores it.
    pub fn specification(&self) -> Document<'_> {
        self.specification.as_document()
    }

    /// Compares two strings.
    pub fn compare_strings(&self, one: &str, other: &str) -> Ordering {
        self.collator.compare(one, other)
    }

    /// Appends the sort key of a string.
    pub fn append_sort_key(&self, key: &mut Vec<u8>, text: &str) {
        let Ok(()) = self.collator.write_sort_key_to(text, key);
    }

    /// Compares two values in MongoDB's order, with strings compared by the collation.
    pub fn compare(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
        match (one, other) {
            (
                ValueRef::String(one) | ValueRef::Symbol(one),
                ValueRef::String(other) | ValueRef::Symbol(other),
            ) => self.compare_strings(one, other),
            (ValueRef::Document(one), ValueRef::Document(other)) => {
                self.compare_documents(one, other)
            }
            (ValueRef::Array(one), ValueRef::Array(other)) => self.compare_arrays(one, other),
            _ => one.compare(other),
        }
    }

    /// Returns `true` if two values compare equal.
    pub fn equals(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
        self.compare(one, other).is_eq()
    }

    fn compare_documents(&self, one: Document<'_>, other: Document<'_>) -> Ordering {
        let mut others = other.iter();
        for (name, value) in one {
            let Some((other_name, other_value)) = others.next() else {
                return Ordering::Greater;
            };
            let rank = |value: ValueRef<'_>| value.type_of().rank();
            let order = rank(value)
                .cmp(&rank(other_value))
                .then_with(|| name.cmp(other_name))
                .then_with(|| self.compare(value, other_value));
            if order.is_ne() {
                return order;
            }
        }
        match others.next() {
            Some(_) => Ordering::Less,
            None => Ordering::Equal,
        }
    }

    fn compare_arrays(&self, one: Array<'_>, other: Array<'_>) -> Ordering {
        let pairs = one.iter().zip(other.iter());
        let mut orders = pairs.map(|(one, other)| self.compare(one, other));
        orders
            .find(|order| order.is_ne())
            .unwrap_or_else(|| one.count().cmp(&other.count()))
    }
}

/// Compares two values in MongoDB's order, with strings compared by the collation if there is one.
pub fn compare(collation: Option<&Collation>, one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
    match collation {
        Some(collation) => collation.compare(one, other),
        None => one.compare(other),
    }
}

/// Converts a locale: "de@collation=phonebook" becomes "de-u-co-phonebk". Only Canadian French
/// compares accents from the end, so `backwards` selects it for the languages that it can stand in
/// for.
fn locale(settings: &CollationSettings) -> Option<Locale> {
    let (name, kind) = match settings.locale.split_once('@') {
        Some((name, keywords)) => (name, Some(keywords.strip_prefix("collation=")?)),
        None => (settings.locale.as_str(), None),
    };
    let mut tag = name.replace('_', "-");
    if settings.backwards == Some(true) {
        // The French and English locales have no tailoring of their own, so the tailoring of
        // `fr-CA` applies.
        tag = matches!(tag.split('-').next()?, "fr" | "en").then(|| "fr-CA".to_owned())?;
    }
    if let Some(kind) = kind {
        let known = COLLATION_TYPES.iter().find(|(icu, _)| *icu == kind);
        tag.push_str("-u-co-");
        tag.push_str(known.map_or(kind, |(_, unicode)| unicode));
    }
    tag.parse().ok()
}

fn specification(settings: &CollationSettings, resolved: ResolvedCollatorOptions) -> DocumentBuf {
    let strength = match resolved.strength {
        Strength::Primary => 1,
        Strength::Secondary => 2,
        Strength::Quaternary => 4,
        Strength::Identical => 5,
        _ => 3,
    };
    let case_first = match resolved.case_first {
        CollationCaseFirst::Upper => "upper",
        CollationCaseFirst::Lower => "lower",
        _ => "off",
    };
    let alternate = match resolved.alternate_handling {
        AlternateHandling::Shifted => "shifted",
        _ => "non-ignorable",
    };
    let max_variable = match resolved.max_variable {
        MaxVariable::Space => "space",
        _ => "punct",
    };
    let backwards = settings.locale.starts_with("fr_CA");
    doc! {
        "locale": (settings.locale.as_str()),
        "caseLevel": (resolved.case_level == CaseLevel::On),
        "caseFirst": case_first,
        "strength": strength,
        "numericOrdering": (resolved.numeric == CollationNumericOrdering::True),
        "alternate": alternate,
        "maxVariable": max_variable,
        "normalization": (settings.normalization.unwrap_or(false)),
        "backwards": (settings.backwards.unwrap_or(backwards)),
        "version": VERSION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, key};

    fn collation(locale: &str, strength: u8) -> Collation {
        let settings = CollationSettings {
            locale: locale.to_owned(),
            strength: Some(strength),
            ..CollationSettings::default()
        };
        Collation::new(&settings).unwrap()
    }

    #[test]
    fn strings_are_compared_by_the_language() {
        let check = |collation: &Collation, one: Value, other: Value, expected| {
            assert_eq!(collation.compare(one.as_ref(), other.as_ref()), expected);
            let bytes = |value: &Value| {
                let mut bytes = Vec::new();
                key::append_with_collation(&mut bytes, value.as_ref(), false, Some(collation));
                bytes
            };
            assert_eq!(bytes(&one).cmp(&bytes(&other)), expected, "{one} {other}");
        };
        let (first, second) = (collation("en", 1), collation("en", 2));
        check(&first, "cafe".into(), "CAFÉ".into(), Ordering::Equal);
        check(&second, "cafe".into(), "CAFE".into(), Ordering::Equal);
        check(&second, "cafe".into(), "café".into(), Ordering::Less);
        check(
            &collation("sv", 3),
            "ö".into(),
            "z".into(),
            Ordering::Greater,
        );
        check(&collation("de", 3), "ö".into(), "z".into(), Ordering::Less);
        check(
            &second,
            doc! { "a": ["X", 1] }.into(),
            doc! { "a": ["x", 1] }.into(),
            Ordering::Equal,
        );
        check(
            &second,
            doc! { "A": 1 }.into(),
            doc! { "a": 1 }.into(),
            Ordering::Less,
        );
        check(&second, 5.into(), "a".into(), Ordering::Less);
        check(&second, "".into(), "a".into(), Ordering::Less);
    }

    #[test]
    fn specifications_contain_all_options() {
        let expected = doc! {
            "locale": "en", "caseLevel": false, "caseFirst": "off", "strength": 2,
            "numericOrdering": false, "alternate": "non-ignorable", "maxVariable": "punct",
            "normalization": false, "backwards": false, "version": "57.1",
        };
        assert_eq!(collation("en", 2).specification(), expected.as_document());
    }
}
