//! Conversions of binary data, and of strings to numbers.

use super::{check, refuse};

#[test]
fn text_and_numbers_are_converted() {
    check(&[
        (
            r#"{"$convert": {"input": "7", "to": {"type": "int", "more": 1}}}"#,
            "7",
        ),
        (r#"{"$toDecimal": 0.0}"#, r#"{"$numberDecimal": "0"}"#),
        (r#"{"$toDecimal": -0.0}"#, r#"{"$numberDecimal": "-0"}"#),
        (
            r#"{"$convert": {"input": "7", "to": "missing", "onError": "$text"}}"#,
            r#""mongo""#,
        ),
        (
            r#"{"$convert": {"input": "x", "to": "int", "onError": "$text"}}"#,
            r#""mongo""#,
        ),
        (
            r#"{"$convert": {"input": "$missing", "to": "int", "onNull": 0}}"#,
            "0",
        ),
        (r#"{"$toInt": "0012"}"#, "12"),
    ]);
    refuse(&[(r#"{"$toInt": "1.5"}"#, 241)]);
}

#[test]
fn binary_data_is_converted() {
    check(&[
        (
            r#"{"$toUUID": "00112233-4455-6677-8899-aabbccddeeff"}"#,
            r#"{"$binary": {"base64": "ABEiM0RVZneImaq7zN3u/w==", "subType": "04"}}"#,
        ),
        (
            r#"{"$convert": {"input": "aGk=", "to": "binData", "format": "base64"}}"#,
            r#"{"$binary": {"base64": "aGk=", "subType": "00"}}"#,
        ),
        (
            r#"{"$convert": {"input": {"$binary": {"base64": "aGk=", "subType": "00"}}, "to": "string", "format": "hex"}}"#,
            r#""6869""#,
        ),
        (
            r#"{"$toString": {"$binary": {"base64": "aGk=", "subType": "00"}}}"#,
            r#""aGk=""#,
        ),
        (
            r#"{"$toString": {"$binary": {"base64": "ABEiM0RVZneImaq7zN3u/w==", "subType": "04"}}}"#,
            r#""00112233-4455-6677-8899-aabbccddeeff""#,
        ),
        (
            r#"{"$toString": {"$binary": {"base64": "aGk=", "subType": "04"}}}"#,
            r#""aGk=""#,
        ),
        (
            r#"{"$convert": {"input": "$null", "to": {"type": "binData", "subtype": "x"}}}"#,
            "null",
        ),
        (
            r#"{"$convert": {"input": {"$binary": {"base64": "AQA=", "subType": "00"}}, "to": "int"}}"#,
            "1",
        ),
        (
            r#"{"$convert": {"input": 258, "to": {"type": "binData", "subtype": 0}, "byteOrder": "big"}}"#,
            r#"{"$binary": {"base64": "AAABAg==", "subType": "00"}}"#,
        ),
    ]);
}

#[test]
fn invalid_conversions_of_binary_data_are_refused() {
    refuse(&[
        (
            r#"{"$convert": {"input": "aGk=", "to": "binData"}}"#,
            4341115,
        ),
        (
            r#"{"$convert": {"input": "aGk=", "to": "binData", "format": 1}}"#,
            4341114,
        ),
        (
            r#"{"$convert": {"input": "aGk=", "to": "binData", "format": "x"}}"#,
            4341125,
        ),
        (
            r#"{"$convert": {"input": "aGk=", "to": "binData", "format": "auto"}}"#,
            241,
        ),
        (
            r#"{"$convert": {"input": "aGk", "to": "binData", "format": "base64"}}"#,
            241,
        ),
        (
            r#"{"$convert": {"input": "00112233-4455-6677-8899-aabbccddeeff", "to": "binData", "format": "uuid"}}"#,
            241,
        ),
        (
            r#"{"$convert": {"input": "aGk=", "to": {"type": "binData", "subtype": 127}, "format": "base64"}}"#,
            4341107,
        ),
        (
            r#"{"$convert": {"input": "aGk=", "to": {"type": "binData", "subtype": 1.5}, "format": "base64"}}"#,
            4341106,
        ),
        (
            r#"{"$convert": {"input": "aGk=", "to": {"type": "binData", "subtype": "a"}, "format": "base64"}}"#,
            4341108,
        ),
        (
            r#"{"$convert": {"input": 1, "to": "binData", "byteOrder": 1}}"#,
            9130001,
        ),
        (
            r#"{"$convert": {"input": 1, "to": "binData", "byteOrder": "x"}}"#,
            9130002,
        ),
        (r#"{"$toUUID": "0011"}"#, 241),
    ]);
}

/// Digits after the 34th used to be rounded half to even. MongoDB cuts them off.
#[test]
fn digits_of_decimals_are_cut_off() {
    let nines = "9".repeat(34);
    let cut = format!(r#"{{"$numberDecimal": "{nines}"}}"#);
    check(&[
        (&format!(r#"{{"$toDecimal": "{nines}.9"}}"#), &cut),
        (
            &format!(r#"{{"$convert": {{"input": "{nines}.9", "to": "decimal"}}}}"#),
            &cut,
        ),
    ]);
}
