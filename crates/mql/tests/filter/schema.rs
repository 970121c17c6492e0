//! `$jsonSchema` as a condition.

use windrow_document::{DocumentBuf, Value, doc};
use windrow_mql::filter::Filter;

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

/// `$jsonSchema` within `$elemMatch` used to be refused with 2.
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

/// Drivers encrypt values. `encrypt` accepts no others.
#[test]
fn a_schema_requires_encrypted_values() {
    let binary = |subtype, bytes: Vec<u8>| Value::Binary { subtype, bytes };
    let encrypted = |algorithm, type_byte| {
        let mut bytes = vec![algorithm];
        bytes.extend([7; 16]);
        bytes.extend([type_byte, 1, 2]);
        binary(6, bytes)
    };
    let (string, int) = (0x02, 0x10);
    let within = |rule: DocumentBuf| doc! { "$jsonSchema": { "properties": { "a": rule } } };
    let rule = doc! { "encrypt": {
        "bsonType": ["string", "date"], "keyId": "/key",
        "algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Random",
    } };
    check(
        within(rule),
        &[
            doc! { "a": (encrypted(1, string)) },
            doc! { "a": (encrypted(2, string)) },
            doc! {},
        ],
        &[
            doc! { "a": "text" },
            doc! { "a": (encrypted(1, int)) },
            doc! { "a": (encrypted(1, 0x7E)) },
            doc! { "a": (encrypted(3, string)) },
            doc! { "a": (binary(6, vec![1, 2])) },
            doc! { "a": (binary(6, vec![])) },
            doc! { "a": (binary(0, vec![1; 30])) },
        ],
    );
    check(
        within(doc! { "encrypt": {} }),
        &[
            doc! { "a": (encrypted(3, int)) },
            doc! { "a": (binary(6, vec![])) },
        ],
        &[doc! { "a": null }, doc! { "a": (binary(4, vec![1; 16])) }],
    );
    for (schema, code) in [
        (doc! { "encrypt": 1 }, 14),
        (doc! { "encrypt": {}, "bsonType": "binData" }, 9),
        (
            doc! { "encrypt": {}, "encryptMetadata": { "keyId": "/a" } },
            9,
        ),
        (doc! { "encrypt": { "cipher": 1 } }, 40_415),
        (doc! { "encrypt": { "algorithm": "AES" } }, 2),
        (doc! { "encrypt": { "algorithm": 1 } }, 14),
        (doc! { "encrypt": { "bsonType": "text" } }, 2),
        (doc! { "encrypt": { "keyId": 1 } }, 51_085),
        (doc! { "encrypt": { "keyId": ["a"] } }, 51_088),
        (
            doc! { "encrypt": { "keyId": [(binary(0, vec![1; 16]))] } },
            51_084,
        ),
        (
            doc! { "encrypt": { "keyId": [(binary(4, vec![1; 15]))] } },
            207,
        ),
        (doc! { "encryptMetadata": {} }, 9),
        (doc! { "encryptMetadata": { "bsonType": "int" } }, 40_415),
    ] {
        check_refused(doc! { "$jsonSchema": schema }, code);
    }
}

#[test]
fn encryption_is_found_at_every_depth() {
    let encrypt = || doc! { "encrypt": {} };
    let has = |schema: DocumentBuf| {
        let filter = doc! { "$or": [{ "x": 1 }, { "$jsonSchema": schema }] };
        Filter::parse(filter.as_document())
            .unwrap()
            .has_encryption()
    };
    for schema in [
        encrypt(),
        doc! { "encryptMetadata": { "keyId": "/a" } },
        doc! { "properties": { "a": (encrypt()) } },
        doc! { "patternProperties": { "a": (encrypt()) } },
        doc! { "additionalProperties": (encrypt()) },
        doc! { "dependencies": { "a": (encrypt()) } },
        doc! { "items": (encrypt()) },
        doc! { "items": [(encrypt())] },
        doc! { "items": [{}], "additionalItems": (encrypt()) },
        doc! { "allOf": [(encrypt())] },
        doc! { "anyOf": [{}, (encrypt())] },
        doc! { "oneOf": [(encrypt())] },
        doc! { "not": { "properties": { "a": (encrypt()) } } },
    ] {
        assert!(has(schema.clone()), "{schema}");
    }
    assert!(!has(
        doc! { "properties": { "encrypt": { "bsonType": "int" } }, "required": ["encrypt"] }
    ));
}
