//! A value: borrowed ([`ValueRef`]) or owned ([`Value`]), and its type.

use crate::{Array, ArrayBuf, Decimal128, Document, DocumentBuf, ObjectId};

/// BSON's types. The discriminant is the type's byte in BSON (0xFF and 0x7F for the two keys).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Bool = 0x08,
    DateTime = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    JavaScript = 0x0D,
    Symbol = 0x0E,
    JavaScriptWithScope = 0x0F,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal128 = 0x13,
    MaxKey = 0x7F,
    MinKey = 0xFF,
}

impl Type {
    /// Every type, in the order of their bytes.
    pub const ALL: [Type; 21] = [
        Type::Double,
        Type::String,
        Type::Document,
        Type::Array,
        Type::Binary,
        Type::Undefined,
        Type::ObjectId,
        Type::Bool,
        Type::DateTime,
        Type::Null,
        Type::Regex,
        Type::DbPointer,
        Type::JavaScript,
        Type::Symbol,
        Type::JavaScriptWithScope,
        Type::Int32,
        Type::Timestamp,
        Type::Int64,
        Type::Decimal128,
        Type::MaxKey,
        Type::MinKey,
    ];

    /// The type of a BSON type byte.
    pub fn from_byte(byte: u8) -> Option<Type> {
        Some(match byte {
            0x01 => Type::Double,
            0x02 => Type::String,
            0x03 => Type::Document,
            0x04 => Type::Array,
            0x05 => Type::Binary,
            0x06 => Type::Undefined,
            0x07 => Type::ObjectId,
            0x08 => Type::Bool,
            0x09 => Type::DateTime,
            0x0A => Type::Null,
            0x0B => Type::Regex,
            0x0C => Type::DbPointer,
            0x0D => Type::JavaScript,
            0x0E => Type::Symbol,
            0x0F => Type::JavaScriptWithScope,
            0x10 => Type::Int32,
            0x11 => Type::Timestamp,
            0x12 => Type::Int64,
            0x13 => Type::Decimal128,
            0x7F => Type::MaxKey,
            0xFF => Type::MinKey,
            _ => return None,
        })
    }

    /// The number that `$type` knows the type by: -1 for MinKey, 127 for MaxKey, else the byte.
    pub fn number(self) -> i32 {
        i32::from(self as u8 as i8)
    }

    /// The name that `$type` knows the type by.
    pub fn name(self) -> &'static str {
        match self {
            Type::Double => "double",
            Type::String => "string",
            Type::Document => "object",
            Type::Array => "array",
            Type::Binary => "binData",
            Type::Undefined => "undefined",
            Type::ObjectId => "objectId",
            Type::Bool => "bool",
            Type::DateTime => "date",
            Type::Null => "null",
            Type::Regex => "regex",
            Type::DbPointer => "dbPointer",
            Type::JavaScript => "javascript",
            Type::Symbol => "symbol",
            Type::JavaScriptWithScope => "javascriptWithScope",
            Type::Int32 => "int",
            Type::Timestamp => "timestamp",
            Type::Int64 => "long",
            Type::Decimal128 => "decimal",
            Type::MaxKey => "maxKey",
            Type::MinKey => "minKey",
        }
    }

    /// The place of the type in MongoDB's order; equal for types that are compared by value with each
    /// other.
    pub fn rank(self) -> u8 {
        match self {
            Type::MinKey => 0,
            Type::Undefined => 1,
            Type::Null => 2,
            Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128 => 3,
            Type::String | Type::Symbol => 4,
            Type::Document => 5,
            Type::Array => 6,
            Type::Binary => 7,
            Type::ObjectId => 8,
            Type::Bool => 9,
            Type::DateTime => 10,
            Type::Timestamp => 11,
            Type::Regex => 12,
            Type::DbPointer => 13,
            Type::JavaScript => 14,
            Type::JavaScriptWithScope => 15,
            Type::MaxKey => 16,
        }
    }

    /// The type of a name that `$type` knows.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether values of the type are numbers.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128
        )
    }
}

/// BSON's internal timestamp: seconds, then a counter; ordered as one unsigned number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    pub seconds: u32,
    pub increment: u32,
}

impl Timestamp {
    pub fn from_bits(bits: u64) -> Timestamp {
        Timestamp {
            seconds: (bits >> 32) as u32,
            increment: bits as u32,
        }
    }

    pub fn bits(self) -> u64 {
        u64::from(self.seconds) << 32 | u64::from(self.increment)
    }
}

/// A value in BSON bytes, borrowed. `==` is bitwise likeness of the same type; MongoDB's order and
/// equality (1 equals 1.0) is [`ValueRef::compare`](crate::order).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    Double(f64),
    String(&'a str),
    Document(Document<'a>),
    Array(Array<'a>),
    Binary {
        subtype: u8,
        bytes: &'a [u8],
    },
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    /// Milliseconds since 1970, UTC.
    DateTime(i64),
    Null,
    Regex {
        pattern: &'a str,
        options: &'a str,
    },
    DbPointer {
        namespace: &'a str,
        id: ObjectId,
    },
    JavaScript(&'a str),
    Symbol(&'a str),
    JavaScriptWithScope {
        code: &'a str,
        scope: Document<'a>,
    },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

/// A value that owns its bytes. See [`Value::as_ref`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Double(f64),
    String(String),
    Document(DocumentBuf),
    Array(ArrayBuf),
    Binary { subtype: u8, bytes: Vec<u8> },
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    DateTime(i64),
    Null,
    Regex { pattern: String, options: String },
    DbPointer { namespace: String, id: ObjectId },
    JavaScript(String),
    Symbol(String),
    JavaScriptWithScope { code: String, scope: DocumentBuf },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

impl Value {
    /// A whole number of the smallest type that holds it.
    pub fn whole(number: i64) -> Value {
        i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
    }

    /// The same value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Double(number) => ValueRef::Double(*number),
            Value::String(text) => ValueRef::String(text),
            Value::Document(document) => ValueRef::Document(document.as_document()),
            Value::Array(array) => ValueRef::Array(array.as_array()),
            Value::Binary { subtype, bytes } => ValueRef::Binary {
                subtype: *subtype,
                bytes,
            },
            Value::Undefined => ValueRef::Undefined,
            Value::ObjectId(id) => ValueRef::ObjectId(*id),
            Value::Bool(flag) => ValueRef::Bool(*flag),
            Value::DateTime(millis) => ValueRef::DateTime(*millis),
            Value::Null => ValueRef::Null,
            Value::Regex { pattern, options } => ValueRef::Regex { pattern, options },
            Value::DbPointer { namespace, id } => ValueRef::DbPointer { namespace, id: *id },
            Value::JavaScript(code) => ValueRef::JavaScript(code),
            Value::Symbol(text) => ValueRef::Symbol(text),
            Value::JavaScriptWithScope { code, scope } => ValueRef::JavaScriptWithScope {
                code,
                scope: scope.as_document(),
            },
            Value::Int32(number) => ValueRef::Int32(*number),
            Value::Timestamp(timestamp) => ValueRef::Timestamp(*timestamp),
            Value::Int64(number) => ValueRef::Int64(*number),
            Value::Decimal128(number) => ValueRef::Decimal128(*number),
            Value::MinKey => ValueRef::MinKey,
            Value::MaxKey => ValueRef::MaxKey,
        }
    }

    pub fn type_of(&self) -> Type {
        self.as_ref().type_of()
    }
}

impl<'a> ValueRef<'a> {
    /// The same value, owned.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Double(number) => Value::Double(number),
            ValueRef::String(text) => Value::String(text.to_owned()),
            ValueRef::Document(document) => Value::Document(document.to_buf()),
            ValueRef::Array(array) => Value::Array(array.to_buf()),
            ValueRef::Binary { subtype, bytes } => Value::Binary {
                subtype,
                bytes: bytes.to_vec(),
            },
            ValueRef::Undefined => Value::Undefined,
            ValueRef::ObjectId(id) => Value::ObjectId(id),
            ValueRef::Bool(flag) => Value::Bool(flag),
            ValueRef::DateTime(millis) => Value::DateTime(millis),
            ValueRef::Null => Value::Null,
            ValueRef::Regex { pattern, options } => Value::Regex {
                pattern: pattern.to_owned(),
                options: options.to_owned(),
            },
            ValueRef::DbPointer { namespace, id } => Value::DbPointer {
                namespace: namespace.to_owned(),
                id,
            },
            ValueRef::JavaScript(code) => Value::JavaScript(code.to_owned()),
            ValueRef::Symbol(text) => Value::Symbol(text.to_owned()),
            ValueRef::JavaScriptWithScope { code, scope } => Value::JavaScriptWithScope {
                code: code.to_owned(),
                scope: scope.to_buf(),
            },
            ValueRef::Int32(number) => Value::Int32(number),
            ValueRef::Timestamp(timestamp) => Value::Timestamp(timestamp),
            ValueRef::Int64(number) => Value::Int64(number),
            ValueRef::Decimal128(number) => Value::Decimal128(number),
            ValueRef::MinKey => Value::MinKey,
            ValueRef::MaxKey => Value::MaxKey,
        }
    }

    pub fn type_of(self) -> Type {
        match self {
            ValueRef::Double(_) => Type::Double,
            ValueRef::String(_) => Type::String,
            ValueRef::Document(_) => Type::Document,
            ValueRef::Array(_) => Type::Array,
            ValueRef::Binary { .. } => Type::Binary,
            ValueRef::Undefined => Type::Undefined,
            ValueRef::ObjectId(_) => Type::ObjectId,
            ValueRef::Bool(_) => Type::Bool,
            ValueRef::DateTime(_) => Type::DateTime,
            ValueRef::Null => Type::Null,
            ValueRef::Regex { .. } => Type::Regex,
            ValueRef::DbPointer { .. } => Type::DbPointer,
            ValueRef::JavaScript(_) => Type::JavaScript,
            ValueRef::Symbol(_) => Type::Symbol,
            ValueRef::JavaScriptWithScope { .. } => Type::JavaScriptWithScope,
            ValueRef::Int32(_) => Type::Int32,
            ValueRef::Timestamp(_) => Type::Timestamp,
            ValueRef::Int64(_) => Type::Int64,
            ValueRef::Decimal128(_) => Type::Decimal128,
            ValueRef::MinKey => Type::MinKey,
            ValueRef::MaxKey => Type::MaxKey,
        }
    }

    pub fn is_number(self) -> bool {
        self.type_of().is_number()
    }

    /// Null or undefined: what a missing field is like in most of MongoDB.
    pub fn is_nullish(self) -> bool {
        matches!(self, ValueRef::Null | ValueRef::Undefined)
    }

    pub fn as_str(self) -> Option<&'a str> {
        match self {
            ValueRef::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_document(self) -> Option<Document<'a>> {
        match self {
            ValueRef::Document(document) => Some(document),
            _ => None,
        }
    }

    pub fn as_array(self) -> Option<Array<'a>> {
        match self {
            ValueRef::Array(array) => Some(array),
            _ => None,
        }
    }

    pub fn as_bool(self) -> Option<bool> {
        match self {
            ValueRef::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// The number as a double, nearest. None for what is no number.
    pub fn as_f64(self) -> Option<f64> {
        Some(match self {
            ValueRef::Double(number) => number,
            ValueRef::Int32(number) => f64::from(number),
            ValueRef::Int64(number) => number as f64,
            ValueRef::Decimal128(number) => number.to_f64(),
            _ => return None,
        })
    }

    /// The number where it is whole and fits 64 bits; None otherwise.
    pub fn as_whole(self) -> Option<i64> {
        match self {
            ValueRef::Int32(number) => Some(i64::from(number)),
            ValueRef::Int64(number) => Some(number),
            ValueRef::Double(number) => {
                let fits = (-(2f64.powi(63))..2f64.powi(63)).contains(&number);
                (fits && number.fract() == 0.0).then_some(number as i64)
            }
            ValueRef::Decimal128(number) => number.to_i64_exact(),
            _ => None,
        }
    }

    /// What counts as true in expressions and options: all but false, null, undefined and zero.
    pub fn is_truthy(self) -> bool {
        match self {
            ValueRef::Bool(flag) => flag,
            ValueRef::Null | ValueRef::Undefined => false,
            ValueRef::Int32(number) => number != 0,
            ValueRef::Int64(number) => number != 0,
            ValueRef::Double(number) => number != 0.0,
            ValueRef::Decimal128(number) => !number.is_zero(),
            _ => true,
        }
    }
}

macro_rules! value_from {
    ($($from:ty => |$name:ident| $value:expr),* $(,)?) => {
        $(impl From<$from> for Value { fn from($name: $from) -> Value { $value } })*
    };
}

value_from! {
    f64 => |number| Value::Double(number),
    i32 => |number| Value::Int32(number),
    i64 => |number| Value::Int64(number),
    bool => |flag| Value::Bool(flag),
    &str => |text| Value::String(text.to_owned()),
    String => |text| Value::String(text),
    &String => |text| Value::String(text.clone()),
    DocumentBuf => |document| Value::Document(document),
    ArrayBuf => |array| Value::Array(array),
    ObjectId => |id| Value::ObjectId(id),
    Timestamp => |timestamp| Value::Timestamp(timestamp),
    Decimal128 => |number| Value::Decimal128(number),
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Value {
        value.to_value()
    }
}

impl From<Document<'_>> for Value {
    fn from(document: Document<'_>) -> Value {
        Value::Document(document.to_buf())
    }
}

impl From<Array<'_>> for Value {
    fn from(array: Array<'_>) -> Value {
        Value::Array(array.to_buf())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::Array(values.into_iter().map(Into::into).collect())
    }
}
