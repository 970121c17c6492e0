//! `$jsonSchema` as a condition.

use windrow_document::doc;

use super::{check, check_refused};

#[test]
fn a_schema_applies_to_documents() {
    let schema = doc! { "$jsonSchema": {
        "required": ["a"],
        "properties": {
            "a": { "bsonType": "int", "minimum": 1, "exclusiveMinimum": true },
            "b": { "type": "array", "items": { "type": "string", "maxLength": 2 }, "uniqueItems": true },
        },
        "patternProperties": { "^x_": { "enum": [1, 2] } },
        "additionalProperties": false,
    } };
    check(
        schema,
        &[
            doc! { "a": 2 },
            doc! { "a": 2, "b": ["éé", "x"], "x_1": 1.0 },
        ],
        &[
            doc! {},
            doc! { "a": 1 },
            doc! { "a": 2.0 },
            doc! { "a": 2, "b": ["abc"] },
            doc! { "a": 2, "b": ["a", "a"] },
            doc! { "a": 2, "x_1": 3 },
            doc! { "a": 2, "c": 1 },
        ],
    );
    check_refused(doc! { "$jsonSchema": { "type": "integer" } }, 9);
    check_refused(doc! { "$jsonSchema": { "required": "a" } }, 14);
}

/// `$jsonSchema` within `$elemMatch` had been refused with 2.
#[test]
fn a_schema_applies_to_elements() {
    let required = doc! { "$jsonSchema": { "required": ["b"] } };
    let documents = [
        doc! { "a": [{ "b": 1 }] },
        doc! { "a": [1, { "c": 1 }, { "b": 1 }] },
    ];
    let others = [
        doc! { "a": { "b": 1 } },
        doc! { "a": [1, { "c": 1 }] },
        doc! { "b": 1 },
    ];
    check(
        doc! { "a": { "$elemMatch": (required.clone()) } },
        &documents,
        &others,
    );
    check(
        doc! { "a": { "$elemMatch": { "b": 1, "$or": [(required.clone())] } } },
        &documents,
        &others,
    );
    check(
        doc! { "a": { "$not": { "$elemMatch": (required) } } },
        &others,
        &documents,
    );
    check_refused(
        doc! { "a": { "$elemMatch": { "$jsonSchema": { "required": 1 } } } },
        14,
    );
}
