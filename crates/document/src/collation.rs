//! Collations: the order of strings in a language, and which of them are the same in it.
//!
//! Only strings are compared otherwise than by their bytes, wherever in a value they stand; names of
//! fields are not. A string's *sort key* is bytes whose plain order is the collation's.

use std::cmp::Ordering;
use std::fmt;

use icu_collator::options::{
    AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, ResolvedCollatorOptions, Strength,
};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;

use crate::{Array, Document, DocumentBuf, ValueRef, doc};

/// What a collation is asked to be; what is None is as usual in the language.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// As ICU names it: "de_AT", "de@collation=phonebook".
    pub locale: String,
    /// 1 to 5.
    pub strength: Option<u8>,
    pub case_level: Option<bool>,
    /// "upper", "lower", "off".
    pub case_first: Option<String>,
    pub numeric_ordering: Option<bool>,
    /// "shifted" or "non-ignorable".
    pub alternate: Option<String>,
    /// "punct" or "space".
    pub max_variable: Option<String>,
    pub normalization: Option<bool>,
    pub backwards: Option<bool>,
}

/// See the module.
pub struct Collation {
    collator: CollatorBorrowed<'static>,
    specification: DocumentBuf,
}

/// Collations that say the same are the same.
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

/// The version of the orders that MongoDB has; drivers compare specifications with it.
const VERSION: &str = "57.1";

/// ICU's names of kinds of orders, and those of Unicode locales.
const KINDS: &[(&str, &str)] = &[
    ("dictionary", "dict"),
    ("phonebook", "phonebk"),
    ("traditional", "trad"),
];

impl Collation {
    /// None where the locale cannot be had.
    pub fn new(settings: &Settings) -> Option<Collation> {
        let locale = locale(settings)?;
        let mut preferences = CollatorPreferences::from(&locale);
        preferences.case_first = settings.case_first.as_deref().map(|order| match order {
            "upper" => CollationCaseFirst::Upper,
            "lower" => CollationCaseFirst::Lower,
            _ => CollationCaseFirst::False,
        });
        preferences.numeric_ordering = settings.numeric_ordering.map(|on| match on {
            true => CollationNumericOrdering::True,
            false => CollationNumericOrdering::False,
        });
        let mut options = CollatorOptions::default();
        options.strength = settings.strength.map(|strength| match strength {
            1 => Strength::Primary,
            2 => Strength::Secondary,
            4 => Strength::Quaternary,
            5 => Strength::Identical,
            _ => Strength::Tertiary,
        });
        options.case_level = settings.case_level.map(|on| match on {
            true => CaseLevel::On,
            false => CaseLevel::Off,
        });
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

    /// The specification with all of its fields.
    pub fn specification(&self) -> Document<'_> {
        self.specification.as_document()
    }

    pub fn compare_strings(&self, one: &str, other: &str) -> Ordering {
        self.collator.compare(one, other)
    }

    /// Appends the sort key of a string.
    pub fn append_sort_key(&self, key: &mut Vec<u8>, text: &str) {
        let Ok(()) = self.collator.write_sort_key_to(text, key);
    }

    /// MongoDB's order over values, with strings compared by the collation.
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

/// The order of values: by a collation where there is one.
pub fn compare(collation: Option<&Collation>, one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
    match collation {
        Some(collation) => collation.compare(one, other),
        None => one.compare(other),
    }
}

/// "de@collation=phonebook" as "de-u-co-phonebk". Accents count from the end in Canadian French alone.
fn locale(settings: &Settings) -> Option<Locale> {
    let (name, kind) = match settings.locale.split_once('@') {
        Some((name, keywords)) => (name, Some(keywords.strip_prefix("collation=")?)),
        None => (settings.locale.as_str(), None),
    };
    let mut tag = name.replace('_', "-");
    if settings.backwards == Some(true) {
        // Without an order of its own a language has the one that this is made of.
        tag = matches!(tag.split('-').next()?, "fr" | "en").then(|| "fr-CA".to_owned())?;
    }
    if let Some(kind) = kind {
        let known = KINDS.iter().find(|(icu, _)| *icu == kind);
        tag.push_str("-u-co-");
        tag.push_str(known.map_or(kind, |(_, unicode)| unicode));
    }
    tag.parse().ok()
}

fn specification(settings: &Settings, resolved: ResolvedCollatorOptions) -> DocumentBuf {
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

    fn of(locale: &str, strength: u8) -> Collation {
        let settings = Settings {
            locale: locale.to_owned(),
            strength: Some(strength),
            ..Settings::default()
        };
        Collation::new(&settings).unwrap()
    }

    #[test]
    fn strings_are_compared_as_in_the_language() {
        let check = |collation: &Collation, one: Value, other: Value, expected| {
            assert_eq!(collation.compare(one.as_ref(), other.as_ref()), expected);
            let bytes = |value: &Value| {
                let mut bytes = Vec::new();
                key::append_collated(&mut bytes, value.as_ref(), false, Some(collation));
                bytes
            };
            assert_eq!(bytes(&one).cmp(&bytes(&other)), expected, "{one} {other}");
        };
        let (first, second) = (of("en", 1), of("en", 2));
        check(&first, "cafe".into(), "CAFÉ".into(), Ordering::Equal);
        check(&second, "cafe".into(), "CAFE".into(), Ordering::Equal);
        check(&second, "cafe".into(), "café".into(), Ordering::Less);
        check(&of("sv", 3), "ö".into(), "z".into(), Ordering::Greater);
        check(&of("de", 3), "ö".into(), "z".into(), Ordering::Less);
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
    fn specifications_say_everything() {
        let expected = doc! {
            "locale": "en", "caseLevel": false, "caseFirst": "off", "strength": 2,
            "numericOrdering": false, "alternate": "non-ignorable", "maxVariable": "punct",
            "normalization": false, "backwards": false, "version": "57.1",
        };
        assert_eq!(of("en", 2).specification(), expected.as_document());
    }
}
