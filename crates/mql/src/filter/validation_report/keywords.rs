//! The keywords of `$jsonSchema` in reports.

/// The keywords in the order of MongoDB's reports.
pub(super) const KEYWORDS: &[&str] = &[
    "pattern",
    "maxLength",
    "minLength",
    "multipleOf",
    "maximum",
    "minimum",
    "minItems",
    "maxItems",
    "uniqueItems",
    "items",
    "additionalItems",
    "encrypt",
    "properties",
    "additionalProperties",
    "patternProperties",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "enum",
    "type",
    "bsonType",
];

/// The reason of a keyword that tests a single value.
pub(super) const REASONS: &[(&str, &str)] = &[
    ("bsonType", "type did not match"),
    ("enum", "value was not found in enum"),
    ("maxItems", "array did not match specified length"),
    ("maxLength", "specified string length was not satisfied"),
    (
        "maxProperties",
        "specified number of properties was not satisfied",
    ),
    ("maximum", "comparison failed"),
    ("minItems", "array did not match specified length"),
    ("minLength", "specified string length was not satisfied"),
    (
        "minProperties",
        "specified number of properties was not satisfied",
    ),
    ("minimum", "comparison failed"),
    (
        "multipleOf",
        "considered value is not a multiple of the specified value",
    ),
    ("not", "child expression matched"),
    ("pattern", "regular expression did not match"),
    ("type", "type did not match"),
    ("uniqueItems", "found a duplicate item"),
];
