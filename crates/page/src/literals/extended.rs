//! Extended JSON: documents that represent values of other types, such as `{ "$oid": "…" }`.

use windrow_document::{Document, DocumentBuf, Value, ValueRef};

use super::constructors::{binary, decimal, double, int, long, object_id, regex, timestamp, uuid};
use super::date::parse_date;

/// Returns the value that a document represents, or the document itself. Fails with a message if
/// its contents are invalid for its type.
pub fn read_extended(document: DocumentBuf) -> Result<Value, String> {
    let fields = document.as_document();
    let Some((name, value)) = fields.first().filter(|(name, _)| name.starts_with('$')) else {
        return Ok(Value::Document(document));
    };
    let read = match fields.count() {
        1 => read_single(name, value),
        2 => read_pair(fields, name, value),
        _ => None,
    };
    match read {
        Some(read) => read,
        None => Ok(Value::Document(document)),
    }
}

/// Converts a document with one field. `None` if it is an ordinary document.
fn read_single(name: &str, value: ValueRef<'_>) -> Option<Result<Value, String>> {
    let owned = value.to_value();
    Some(match (name, value) {
        ("$oid", ValueRef::String(text)) => object_id(text),
        ("$date", ValueRef::String(text)) => parse_date(text).map(Value::DateTime),
        ("$date", _) => long(&owned).map(Value::DateTime),
        ("$numberInt", _) => int(&owned),
        ("$numberLong", _) => long(&owned).map(Value::Int64),
        ("$numberDouble", _) => double(&owned),
        ("$numberDecimal", _) => decimal(&owned),
        ("$uuid", ValueRef::String(text)) => uuid(text),
        ("$binary", ValueRef::Document(parts)) => read_binary(parts),
        ("$timestamp", ValueRef::Document(_)) => timestamp(&[owned]),
        ("$regularExpression", ValueRef::Document(parts)) => {
            let text = |name: &str| parts.get(name).and_then(ValueRef::as_str);
            match (text("pattern"), text("options").unwrap_or_default()) {
                (Some(pattern), options) => regex(pattern, options),
                _ => Err("$regularExpression has a pattern".to_owned()),
            }
        }
        ("$minKey", ValueRef::Int32(1)) => Ok(Value::MinKey),
        ("$maxKey", ValueRef::Int32(1)) => Ok(Value::MaxKey),
        ("$undefined", ValueRef::Bool(true)) => Ok(Value::Undefined),
        ("$symbol", ValueRef::String(text)) => Ok(Value::Symbol(text.to_owned())),
        ("$code", ValueRef::String(code)) => Ok(Value::JavaScript(code.to_owned())),
        ("$dbPointer", ValueRef::Document(parts)) => read_pointer(parts),
        _ => return None,
    })
}

/// Converts a document with two fields. `None` if it is an ordinary document.
fn read_pair(
    fields: Document<'_>,
    name: &str,
    value: ValueRef<'_>,
) -> Option<Result<Value, String>> {
    match (name, value) {
        ("$code", ValueRef::String(code)) => {
            let scope = fields.get("$scope")?.as_document()?;
            Some(Ok(Value::JavaScriptWithScope {
                code: code.to_owned(),
                scope: scope.to_buf(),
            }))
        }
        // Version 1 of Extended JSON.
        ("$binary", ValueRef::String(text)) => {
            let subtype = i64::from_str_radix(fields.get("$type")?.as_str()?, 16).ok()?;
            Some(binary(subtype, text))
        }
        _ => None,
    }
}

fn read_binary(parts: Document<'_>) -> Result<Value, String> {
    let text = |name: &str| parts.get(name).and_then(ValueRef::as_str);
    let (Some(bytes), Some(subtype)) = (text("base64"), text("subType")) else {
        return Err("$binary has base64 and subType".to_owned());
    };
    let subtype = i64::from_str_radix(subtype, 16);
    let subtype = subtype.map_err(|_| "subType has two hexadecimal digits".to_owned())?;
    binary(subtype, bytes)
}

fn read_pointer(parts: Document<'_>) -> Result<Value, String> {
    let namespace = parts.get("$ref").and_then(ValueRef::as_str);
    let id = parts.get("$id").map(ValueRef::to_value);
    match (namespace, id) {
        (Some(namespace), Some(Value::ObjectId(id))) => Ok(Value::DbPointer {
            namespace: namespace.to_owned(),
            id,
        }),
        _ => Err("$dbPointer has $ref and $id".to_owned()),
    }
}
