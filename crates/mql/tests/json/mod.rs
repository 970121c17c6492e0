//! Parses Extended JSON, in which test cases are written. Plain whole numbers are ints, other plain
//! numbers doubles.

use serde_json::Value as Json;
use windrow_document::{ArrayBuf, Decimal128, DocumentBuf, ObjectId, Timestamp, Value, ValueRef};

/// Parses a text.
pub fn parse(text: &str) -> Value {
    value(&serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}")))
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match number.as_i64().and_then(|whole| i32::try_from(whole).ok()) {
            Some(int) => Value::Int32(int),
            None => Value::Double(number.as_f64().expect("a double")),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(values) => Value::Array(values.iter().map(value).collect::<ArrayBuf>()),
        Json::Object(fields) => {
            let mut document = DocumentBuf::new();
            fields
                .iter()
                .for_each(|(name, inner)| document.push(name, value(inner)));
            unwrapped(&document).unwrap_or(Value::Document(document))
        }
    }
}

/// The value of a wrapper such as `{"$numberLong": "1"}`, whose parts are already parsed.
fn unwrapped(document: &DocumentBuf) -> Option<Value> {
    let (name, inner) = document.as_document().first()?;
    let text = inner.as_str();
    let part = |name: &str| inner.as_document().and_then(|inner| inner.get(name));
    let text_part = |name: &str| part(name).and_then(ValueRef::as_str);
    let number_part = |name: &str| part(name).and_then(ValueRef::as_f64);
    Some(match name {
        "$numberInt" => Value::Int32(text?.parse().ok()?),
        "$numberLong" => Value::Int64(text?.parse().ok()?),
        "$numberDouble" => Value::Double(match text? {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            number => number.parse().ok()?,
        }),
        "$numberDecimal" => Value::Decimal128(Decimal128::parse(text?)?),
        "$oid" => Value::ObjectId(ObjectId::parse(text?)?),
        "$date" => Value::DateTime(inner.as_whole()?),
        "$timestamp" => Value::Timestamp(Timestamp {
            seconds: number_part("t")? as u32,
            increment: number_part("i")? as u32,
        }),
        "$regularExpression" => Value::Regex {
            pattern: text_part("pattern")?.to_owned(),
            options: text_part("options")?.to_owned(),
        },
        "$binary" => Value::Binary {
            subtype: u8::from_str_radix(text_part("subType")?, 16).ok()?,
            bytes: base64(text_part("base64")?),
        },
        "$dbPointer" => Value::DbPointer {
            namespace: text_part("$ref")?.to_owned(),
            id: match part("$id")? {
                ValueRef::ObjectId(id) => id,
                _ => return None,
            },
        },
        "$minKey" => Value::MinKey,
        "$maxKey" => Value::MaxKey,
        "$undefined" => Value::Undefined,
        "$symbol" => Value::Symbol(text?.to_owned()),
        "$code" => match document.get("$scope").and_then(ValueRef::as_document) {
            Some(scope) => Value::JavaScriptWithScope {
                code: text?.to_owned(),
                scope: scope.to_buf(),
            },
            None => Value::JavaScript(text?.to_owned()),
        },
        _ => return None,
    })
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text
        .chars()
        .filter_map(|digit| DIGITS.find(digit))
        .map(|digit| digit as u32);
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for digit in digits {
        bits = bits << 6 | digit;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
