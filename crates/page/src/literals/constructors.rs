//! The constructors of mongosh, such as `ObjectId("…")`.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use windrow_document::object_id::ObjectIdSource;
use windrow_document::{Decimal128, DocumentBuf, ObjectId, Timestamp, Value};

use super::date::parse_date;

/// Evaluates a constructor. Fails with a message without a position.
pub fn construct(name: &str, arguments: &[Value]) -> Result<Value, String> {
    match (name, arguments) {
        ("ObjectId" | "ObjectID", []) => Ok(Value::ObjectId(new_object_id())),
        ("ObjectId" | "ObjectID", [Value::String(text)]) => object_id(text),
        ("ISODate" | "Date", []) => Ok(Value::DateTime(now())),
        ("ISODate" | "Date", [Value::String(text)]) => parse_date(text).map(Value::DateTime),
        ("ISODate" | "Date", [number]) => long(number).map(Value::DateTime),
        ("NumberLong" | "Long" | "Int64", [argument]) => long(argument).map(Value::Int64),
        ("NumberInt" | "Int32", [argument]) => int(argument),
        ("NumberDecimal" | "Decimal128", [argument]) => decimal(argument),
        ("Double" | "Number", [argument]) => double(argument),
        ("UUID", [Value::String(text)]) => uuid(text),
        ("BinData", [subtype, Value::String(text)]) => binary(long(subtype)?, text),
        ("HexData", [subtype, Value::String(text)]) => {
            let bytes = hexadecimal(text).ok_or("HexData has other characters than digits")?;
            Ok(Value::Binary {
                subtype: binary_subtype(long(subtype)?)?,
                bytes,
            })
        }
        ("Timestamp", _) => timestamp(arguments),
        ("MinKey", []) => Ok(Value::MinKey),
        ("MaxKey", []) => Ok(Value::MaxKey),
        ("RegExp", [Value::String(pattern)]) => regex(pattern, ""),
        ("RegExp", [Value::String(pattern), Value::String(options)]) => regex(pattern, options),
        ("Code", [Value::String(code)]) => Ok(Value::JavaScript(code.clone())),
        ("Code", [Value::String(code), Value::Document(scope)]) => Ok(Value::JavaScriptWithScope {
            code: code.clone(),
            scope: scope.clone(),
        }),
        ("Symbol" | "BSONSymbol", [Value::String(text)]) => Ok(Value::Symbol(text.clone())),
        ("DBRef", [Value::String(collection), id]) => Ok(reference(collection, id, None)),
        ("DBRef", [Value::String(collection), id, Value::String(database)]) => {
            Ok(reference(collection, id, Some(database)))
        }
        (known, _) if KNOWN.contains(&known) => Err(format!("{known} has other arguments")),
        (unknown, _) => Err(format!("the function \"{unknown}\" is unknown")),
    }
}

const KNOWN: [&str; 24] = [
    "ObjectId",
    "ObjectID",
    "ISODate",
    "Date",
    "NumberLong",
    "Long",
    "Int64",
    "NumberInt",
    "Int32",
    "NumberDecimal",
    "Decimal128",
    "Double",
    "Number",
    "UUID",
    "BinData",
    "HexData",
    "MinKey",
    "MaxKey",
    "RegExp",
    "Code",
    "Symbol",
    "BSONSymbol",
    "DBRef",
    "Timestamp",
];

fn new_object_id() -> ObjectId {
    static SOURCE: OnceLock<ObjectIdSource> = OnceLock::new();
    let source = SOURCE.get_or_init(|| {
        // Without random numbers, the ids are still unique by their time.
        let seed = getrandom::u64().unwrap_or_else(|_| now().unsigned_abs());
        ObjectIdSource::new(seed)
    });
    source.next_now()
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX))
}

/// Parses an ObjectId.
pub fn object_id(text: &str) -> Result<Value, String> {
    let id = ObjectId::parse(text).map(Value::ObjectId);
    id.ok_or_else(|| format!("\"{text}\" is no ObjectId: it has 24 hexadecimal digits"))
}

/// Converts an integer or a string with an integer.
pub fn long(value: &Value) -> Result<i64, String> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_ref().as_whole(),
    };
    number.ok_or_else(|| format!("{value} is no whole number of 64 bits"))
}

/// Converts a 32-bit integer.
pub fn int(value: &Value) -> Result<Value, String> {
    let number = i32::try_from(long(value)?).map(Value::Int32);
    number.map_err(|_| format!("{value} does not fit into 32 bits"))
}

/// Converts a double, or a string such as `"NaN"` or `"Infinity"`.
pub fn double(value: &Value) -> Result<Value, String> {
    let number = match value {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_ref().as_f64(),
    };
    let number = number.map(Value::Double);
    number.ok_or_else(|| format!("{value} is no number"))
}

/// Converts a decimal number.
pub fn decimal(value: &Value) -> Result<Value, String> {
    let number = match value {
        Value::String(text) => Decimal128::parse(text),
        Value::Int32(number) => Some(Decimal128::from_i64(i64::from(*number))),
        Value::Int64(number) => Some(Decimal128::from_i64(*number)),
        Value::Double(number) => Some(Decimal128::from_f64(*number)),
        _ => None,
    };
    let number = number.map(Value::Decimal128);
    number.ok_or_else(|| format!("{value} is no decimal number of 34 digits"))
}

/// Parses a UUID with or without hyphens.
pub fn uuid(text: &str) -> Result<Value, String> {
    let bytes = hexadecimal(&text.replace('-', "")).filter(|bytes| bytes.len() == 16);
    let bytes = bytes.ok_or_else(|| format!("\"{text}\" is no UUID"))?;
    Ok(Value::Binary { subtype: 4, bytes })
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|it| it.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    let bytes = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high * 16 + low).ok(),
        _ => None,
    });
    bytes.collect()
}

fn binary_subtype(subtype: i64) -> Result<u8, String> {
    u8::try_from(subtype)
        .map_err(|_| format!("{subtype} is no subtype of binary data: it has 8 bits"))
}

/// Decodes binary data in base64.
pub fn binary(subtype: i64, text: &str) -> Result<Value, String> {
    let bytes = from_base64(text).ok_or("binary data is in base64")?;
    Ok(Value::Binary {
        subtype: binary_subtype(subtype)?,
        bytes,
    })
}

/// Decodes base64 with or without padding.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let padding = DecodePaddingMode::Indifferent;
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(padding);
    GeneralPurpose::new(&alphabet::STANDARD, config)
        .decode(text)
        .ok()
}

/// `Timestamp(seconds, increment)` or `Timestamp({ t: seconds, i: increment })`.
pub fn timestamp(arguments: &[Value]) -> Result<Value, String> {
    let null = Value::Int32(0);
    let part = |value: &Value| {
        let number = long(value)?;
        u32::try_from(number)
            .map_err(|_| format!("{number} is no part of a timestamp: it has 32 bits"))
    };
    let (seconds, increment) = match arguments {
        [] => (part(&null)?, part(&null)?),
        [Value::Document(document)] if document.as_document().count() == 2 => {
            let field = |name: &str| {
                let value = document.get(name).map(|it| it.to_value());
                part(&value.ok_or_else(|| format!("a timestamp has \"{name}\""))?)
            };
            (field("t")?, field("i")?)
        }
        [seconds, increment] => (part(seconds)?, part(increment)?),
        _ => return Err("Timestamp has seconds and an increment".to_owned()),
    };
    Ok(Value::Timestamp(Timestamp { seconds, increment }))
}

/// Returns a regular expression. BSON stores its options in alphabetical order.
pub fn regex(pattern: &str, options: &str) -> Result<Value, String> {
    if pattern.contains('\0') || options.contains('\0') {
        return Err("a regular expression cannot have a zero byte".to_owned());
    }
    let mut sorted: Vec<char> = options.chars().collect();
    sorted.sort_unstable();
    Ok(Value::Regex {
        pattern: pattern.to_owned(),
        options: sorted.into_iter().collect(),
    })
}

fn reference(collection: &str, id: &Value, database: Option<&str>) -> Value {
    let mut document = DocumentBuf::new();
    document.push("$ref", collection);
    document.push("$id", id.clone());
    if let Some(database) = database {
        document.push("$db", database);
    }
    Value::Document(document)
}
