//! Canonical Extended JSON to values: what the recorded conversations are written in.

use serde_json::Value as Json;
use windrow_document::{Decimal128, Document, DocumentBuf, ObjectId, Timestamp, Value};

/// The value that the text stands for.
pub fn parse(text: &str) -> Value {
    value(&serde_json::from_str(text).expect("JSON"))
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => Value::Int32(number.as_i64().expect("a small number") as i32),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(values) => Value::Array(values.iter().map(value).collect()),
        Json::Object(fields) => {
            let mut document = DocumentBuf::new();
            fields
                .iter()
                .for_each(|(name, inner)| document.push(name, value(inner)));
            unwrapped(document.as_document()).unwrap_or(Value::Document(document))
        }
    }
}

/// The value that a wrapper like {"$numberInt": "1"} stands for.
fn unwrapped(document: Document<'_>) -> Option<Value> {
    let (name, value) = document.first()?;
    let text = || value.as_str();
    let inner = |name| value.as_document()?.get(name);
    Some(match (document.count(), name) {
        (1, "$numberInt") => Value::Int32(text()?.parse().ok()?),
        (1, "$numberLong") => Value::Int64(text()?.parse().ok()?),
        (1, "$numberDouble") => Value::Double(text()?.parse().ok()?),
        (1, "$numberDecimal") => Value::Decimal128(Decimal128::parse(text()?)?),
        (1, "$oid") => Value::ObjectId(ObjectId::parse(text()?)?),
        (1, "$date") => Value::DateTime(value.as_whole()?),
        (1, "$minKey") => Value::MinKey,
        (1, "$maxKey") => Value::MaxKey,
        (1, "$undefined") => Value::Undefined,
        (1, "$symbol") => Value::Symbol(text()?.to_owned()),
        (1, "$code") => Value::JavaScript(text()?.to_owned()),
        (1, "$timestamp") => {
            let part = |name| u32::try_from(inner(name)?.as_whole()?).ok();
            Value::Timestamp(Timestamp {
                seconds: part("t")?,
                increment: part("i")?,
            })
        }
        (1, "$regularExpression") => {
            let part = |name| inner(name)?.as_str().map(str::to_owned);
            Value::Regex {
                pattern: part("pattern")?,
                options: part("options")?,
            }
        }
        (1, "$binary") => {
            let subtype = u8::from_str_radix(inner("subType")?.as_str()?, 16).ok()?;
            Value::Binary {
                subtype,
                bytes: base64(inner("base64")?.as_str()?),
            }
        }
        _ => return None,
    })
}

fn base64(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        let six = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
