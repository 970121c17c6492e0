//! Tests of parsing and formatting.

use windrow_document::{Decimal128, ObjectId, Timestamp, Value, array, doc};

use super::*;

fn id() -> Value {
    Value::ObjectId(ObjectId::parse("65a1b2c3d4e5f60718293a4b").unwrap())
}

fn binary(subtype: u8, bytes: &[u8]) -> Value {
    Value::Binary {
        subtype,
        bytes: bytes.to_vec(),
    }
}

/// Checks the values of texts.
fn check_values(cases: Vec<(&str, Value)>) {
    for (text, expected) in cases {
        assert_eq!(parse_value(text).unwrap(), expected, "{text}");
    }
}

fn regex(pattern: &str, options: &str) -> Value {
    Value::Regex {
        pattern: pattern.to_owned(),
        options: options.to_owned(),
    }
}

#[test]
fn values_are_read() {
    check_values(vec![
        ("1", Value::Int32(1)),
        ("-2147483649", Value::Int64(-2_147_483_649)),
        ("1.0", Value::Double(1.0)),
        (".5e-1", Value::Double(0.05)),
        ("0x1F", Value::Int32(31)),
        ("99999999999999999999", Value::Double(1e20)),
        ("-Infinity", Value::Double(f64::NEG_INFINITY)),
        ("true", Value::Bool(true)),
        ("null // nothing", Value::Null),
        ("/* a */ 'it\\'s'", Value::from("it's")),
        (r#""\u00e4\uD83D\uDE00\x41\n""#, Value::from("ä😀A\n")),
        ("`a`", Value::from("a")),
        ("[1, 'a', ]", array![1, "a"].into()),
        (
            "{a: 1, 'b.c': {}, $d: [], \"e f\": null,}",
            doc! { "a": 1, "b.c": {}, "$d": [], "e f": null }.into(),
        ),
    ]);
}

#[test]
fn constructors_are_read() {
    check_values(vec![
        ("ObjectId('65a1b2c3d4e5f60718293a4b')", id()),
        ("{\"$oid\": \"65a1b2c3d4e5f60718293a4b\"}", id()),
        ("ISODate(\"1970-01-02\")", Value::DateTime(86_400_000)),
        (
            "new Date('1970-01-01T01:00:00.5+01:00')",
            Value::DateTime(500),
        ),
        ("new Date(7)", Value::DateTime(7)),
        ("{$date: {$numberLong: '-7'}}", Value::DateTime(-7)),
        ("{$date: '1970-01-01T00:00:01Z'}", Value::DateTime(1000)),
        ("NumberLong('9223372036854775807')", Value::Int64(i64::MAX)),
        ("NumberInt(5)", Value::Int32(5)),
        (
            "NumberDecimal('1.10')",
            Value::Decimal128(Decimal128::parse("1.10").unwrap()),
        ),
        (
            "Decimal128.fromString('1')",
            Value::Decimal128(Decimal128::parse("1").unwrap()),
        ),
        ("/a\\/b[/]\\d/mi", regex("a/b[/]\\d", "im")),
        (
            "{$regularExpression: {pattern: '^a', options: ''}}",
            regex("^a", ""),
        ),
        ("{$regex: '^a'}", doc! { "$regex": "^a" }.into()),
        ("RegExp('a', 'i')", regex("a", "i")),
        ("BinData(0, 'aGVsbG8=')", binary(0, b"hello")),
        (
            "{$binary: {base64: 'aGVsbG8', subType: '80'}}",
            binary(0x80, b"hello"),
        ),
        ("{$binary: 'aGVsbG8=', $type: '00'}", binary(0, b"hello")),
        (
            "UUID('00000000-0000-0000-0000-000000000001')",
            binary(4, &1u128.to_be_bytes()),
        ),
        ("HexData(0, '00fF')", binary(0, &[0, 255])),
        (
            "Timestamp(1, 2)",
            Value::Timestamp(Timestamp {
                seconds: 1,
                increment: 2,
            }),
        ),
        (
            "{$timestamp: {t: 1, i: 2}}",
            Value::Timestamp(Timestamp {
                seconds: 1,
                increment: 2,
            }),
        ),
        ("MinKey", Value::MinKey),
        ("{$maxKey: 1}", Value::MaxKey),
        ("DBRef('c', 1)", doc! { "$ref": "c", "$id": 1 }.into()),
        (
            "Code('f', {a: 1})",
            Value::JavaScriptWithScope {
                code: "f".to_owned(),
                scope: doc! { "a": 1 },
            },
        ),
    ]);
}

#[test]
fn errors_have_a_place() {
    let cases = [
        ("{", 1, 2),
        ("{a 1}", 1, 4),
        ("{a: 1 b: 2}", 1, 7),
        ("{\n  a: hello\n}", 2, 6),
        ("{a: 1, a: 2}", 1, 8),
        ("[1 2]", 1, 4),
        ("'abc", 1, 1),
        ("ObjectId('1')", 1, 1),
        ("{ä: ObjectId(7)}", 1, 5),
        ("Nothing()", 1, 1),
        ("1 2", 1, 3),
        ("{$date: 'today'}", 1, 1),
        ("'\\ud800'", 1, 8),
        ("1e", 1, 1),
        ("-", 1, 1),
        ("/a", 1, 2),
        ("'a\\u{110000}'", 1, 12),
        ("{'a\\0b': 1}", 1, 2),
    ];
    for (text, line, column) in cases {
        let error = parse_value(text).unwrap_err();
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{text}: {error}"
        );
    }
    let deep = "[".repeat(100_000);
    assert!(parse_value(&deep).unwrap_err().message.contains("nested"));
    assert!(parse_document("[]").is_err() && parse_array("{}").is_err());
    assert!(parse_document("  ").unwrap().as_document().is_empty());
}

#[test]
fn documents_are_read_one_after_the_other() {
    let cases: [(&str, Option<usize>); 9] = [
        ("", Some(0)),
        ("{a: 1}\n{a: 2}\n", Some(2)),
        ("[{a: 1}, {a: 2},]", Some(2)),
        ("[]", Some(0)),
        ("{}, {}", Some(2)),
        ("[{a: 1}", None),
        ("[{}] {}", None),
        ("{} 1", None),
        ("{$oid: '65a1b2c3d4e5f60718293a4b'}", None),
    ];
    for (text, expected) in cases {
        let read: Result<Vec<_>, _> = DocumentReader::new(text).collect();
        assert_eq!(read.ok().map(|it| it.len()), expected, "{text}");
    }
}

/// Returns documents with values of every type.
fn all_types() -> windrow_document::DocumentBuf {
    let text = r#"{ _id: ObjectId("65a1b2c3d4e5f60718293a4b"), "a b": 1, long: NumberLong("5"),
        double: 1.0, nan: NaN, low: -Infinity, huge: 1e300, decimal: NumberDecimal("1.10"), flag: true,
        none: null, lost: undefined, at: ISODate("2026-01-31T10:20:30.5Z"), far: new Date(9000000000000000),
        data: BinData(0, "AAH/"), id: UUID("00112233445566778899aabbccddeeff"),
        low_key: MinKey(), high_key: MaxKey(), re: /a\/b\d/i, odd: RegExp("[/]\n"), empty: RegExp(""),
        star: RegExp("*"), when: Timestamp(4294967295, 1), code: Code("f"), scoped: Code("f", {a: 1}),
        symbol: Symbol("s"), nested: { list: [1, [2, { x: [] }]], none: {} },
        text: "\u202e<script>\"'\\\n\u0000", $pointer: {$dbPointer: {$ref: "a.b", $id: {$oid: "65a1b2c3d4e5f60718293a4b"}}} }"#;
    parse_document(text).unwrap()
}

#[test]
fn what_is_written_can_be_read() {
    let document = all_types();
    let value = Value::Document(document);
    let written = [
        shell_text(value.as_ref()),
        shell_line(value.as_ref()),
        extended_json(value.as_ref(), JsonFormat::Canonical),
    ];
    for text in written {
        let read = parse_value(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(shell_line(read.as_ref()), shell_line(value.as_ref()));
    }
    assert!(!shell_text(value.as_ref()).contains('\u{202e}'));
}

#[test]
fn values_are_written_for_people() {
    let document =
        doc! { "a": 1, "b c": [1, 2.5], "d": { "e": (Value::Int64(7)) }, "f": [{ "g": 1 }] };
    let expected = "{\n  a: 1,\n  \"b c\": [ 1, 2.5 ],\n  d: {\n    e: NumberLong(\"7\")\n  },\n  f: [\n    {\n      g: 1\n    }\n  ]\n}";
    let value = Value::Document(document);
    assert_eq!(shell_text(value.as_ref()), expected);
    let relaxed = extended_json(Value::DateTime(0).as_ref(), JsonFormat::Relaxed);
    assert_eq!(relaxed, "{\"$date\":\"1970-01-01T00:00:00.000Z\"}");
    let canonical = extended_json(Value::Int32(1).as_ref(), JsonFormat::Canonical);
    assert_eq!(canonical, "{\"$numberInt\":\"1\"}");
}

/// Damages literals and Extended JSON in many ways.
#[test]
fn damaged_texts_do_no_harm() {
    let text = shell_text(Value::Document(all_types()).as_ref());
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "'",
        "/",
        "\\",
        "\\u",
        ",",
        ":",
        "-",
        "0x",
        "e",
        ".",
        "$date",
        "$oid",
        "new ",
        "//",
        "/*",
        "NaN",
        "\u{0}",
        "ä",
        "\u{202e}",
        "99999999999999999999",
        "NumberLong",
    ];
    let mut failures = 0;
    for _ in 0..10_000 {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=random(4) {
            let at = random(characters.len());
            match random(3) {
                0 => drop(characters.drain(at..(at + random(20)).min(characters.len()))),
                1 => drop(characters.splice(at..at, pieces[random(pieces.len())].chars())),
                _ => characters.truncate(at.max(1)),
            }
        }
        let damaged: String = characters.into_iter().collect();
        failures += usize::from(parse_value(&damaged).is_err());
        for read in DocumentReader::new(&damaged).take(10) {
            drop(read);
        }
    }
    assert!(failures > 5_000, "{failures}");
}
