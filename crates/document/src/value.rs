//! Values, borrowed ([`ValueRef`]) and owned ([`Value`]), and their types.

use crate::{Array, ArrayBuf, Decimal128, Document, DocumentBuf, ObjectId};

/// BSON's types. The discriminant is the type byte in BSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    /// `double`, a 64-bit float.
    Double = 0x01,
    /// `string`.
    String = 0x02,
    /// `object`.
    Document = 0x03,
    /// `array`.
    Array = 0x04,
    /// `binData`.
    Binary = 0x05,
    /// `undefined`, deprecated.
    Undefined = 0x06,
    /// `objectId`.
    ObjectId = 0x07,
    /// `bool`.
    Bool = 0x08,
    /// `date`.
    DateTime = 0x09,
    /// `null`.
    Null = 0x0A,
    /// `regex`.
    Regex = 0x0B,
    /// `dbPointer`, deprecated.
    DbPointer = 0x0C,
    /// `javascript`.
    JavaScript = 0x0D,
    /// `symbol`, deprecated.
    Symbol = 0x0E,
    /// `javascriptWithScope`, deprecated.
    JavaScriptWithScope = 0x0F,
    /// `int`.
    Int32 = 0x10,
    /// `timestamp`.
    Timestamp = 0x11,
    /// `long`.
    Int64 = 0x12,
    /// `decimal`.
    Decimal128 = 0x13,
    /// `maxKey`, greater than all other values.
    MaxKey = 0x7F,
    /// `minKey`, less than all other values.
    MinKey = 0xFF,
}

impl Type {
    /// All types in the order of their bytes.
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

    /// Returns the type with this type byte.
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

    /// The number of the type in `$type`: -1 for MinKey, otherwise the type byte.
    pub fn number(self) -> i32 {
        i32::from(self as u8 as i8)
    }

    /// The name of the type in `$type`.
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

    /// The position of the type in MongoDB's order. Types that compare by value have the same rank.
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

    /// Returns the type with this name in `$type`.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|type_of| type_of.name() == name)
    }

    /// Returns `true` for the four number types.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128
        )
    }
}

/// BSON's internal timestamp. The order is that of the seconds, then of the increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: u32,
    /// A counter of operations within the second.
    pub increment: u32,
}

impl Timestamp {
    /// Splits a timestamp as BSON encodes it.
    pub fn from_bits(bits: u64) -> Timestamp {
        Timestamp {
            seconds: (bits >> 32) as u32,
            increment: bits as u32,
        }
    }

    /// The timestamp as BSON encodes it: the seconds in the upper 32 bits.
    pub fn bits(self) -> u64 {
        u64::from(self.seconds) << 32 | u64::from(self.increment)
    }
}

/// A value that borrows its bytes. `==` requires the same type and the same encoding.
/// [`ValueRef::compare`] and [`ValueRef::equals`] follow MongoDB's rules, where 1 equals 1.0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// A 64-bit float.
    Double(f64),
    /// A string.
    String(&'a str),
    /// A document.
    Document(Document<'a>),
    /// An array.
    Array(Array<'a>),
    /// Binary data.
    Binary {
        /// The kind of data, see <https://bsonspec.org/spec.html>.
        subtype: u8,
        /// The content.
        bytes: &'a [u8],
    },
    /// Undefined, deprecated.
    Undefined,
    /// An ObjectId.
    ObjectId(ObjectId),
    /// A boolean.
    Bool(bool),
    /// Milliseconds since 1970-01-01 UTC.
    DateTime(i64),
    /// Null.
    Null,
    /// A regular expression.
    Regex {
        /// The pattern.
        pattern: &'a str,
        /// The options.
        options: &'a str,
    },
    /// A DBPointer, deprecated.
    DbPointer {
        /// The namespace.
        namespace: &'a str,
        /// The `_id` of the referenced document.
        id: ObjectId,
    },
    /// JavaScript code.
    JavaScript(&'a str),
    /// A symbol, deprecated. Compares like a string.
    Symbol(&'a str),
    /// JavaScript code with variables, deprecated.
    JavaScriptWithScope {
        /// The code.
        code: &'a str,
        /// The variables.
        scope: Document<'a>,
    },
    /// A 32-bit integer.
    Int32(i32),
    /// An internal timestamp.
    Timestamp(Timestamp),
    /// A 64-bit integer.
    Int64(i64),
    /// A decimal.
    Decimal128(Decimal128),
    /// Less than all other values.
    MinKey,
    /// Greater than all other values.
    MaxKey,
}

/// A value that owns its bytes. [`Value::as_ref`] borrows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A 64-bit float.
    Double(f64),
    /// A string.
    String(String),
    /// A document.
    Document(DocumentBuf),
    /// An array.
    Array(ArrayBuf),
    /// Binary data.
    Binary {
        /// The kind of data, see <https://bsonspec.org/spec.html>.
        subtype: u8,
        /// The content.
        bytes: Vec<u8>,
    },
    /// Undefined, deprecated.
    Undefined,
    /// An ObjectId.
    ObjectId(ObjectId),
    /// A boolean.
    Bool(bool),
    /// Milliseconds since 1970-01-01 UTC.
    DateTime(i64),
    /// Null.
    Null,
    /// A regular expression.
    Regex {
        /// The pattern.
        pattern: String,
        /// The options.
        options: String,
    },
    /// A DBPointer, deprecated.
    DbPointer {
        /// The namespace.
        namespace: String,
        /// The `_id` of the referenced document.
        id: ObjectId,
    },
    /// JavaScript code.
    JavaScript(String),
    /// A symbol, deprecated. Compares like a string.
    Symbol(String),
    /// JavaScript code with variables, deprecated.
    JavaScriptWithScope {
        /// The code.
        code: String,
        /// The variables.
        scope: DocumentBuf,
    },
    /// A 32-bit integer.
    Int32(i32),
    /// An internal timestamp.
    Timestamp(Timestamp),
    /// A 64-bit integer.
    Int64(i64),
    /// A decimal.
    Decimal128(Decimal128),
    /// Less than all other values.
    MinKey,
    /// Greater than all other values.
    MaxKey,
}

impl Value {
    /// Returns an integer of the smallest type that holds it.
    pub fn whole(number: i64) -> Value {
        i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
    }

    /// Borrows the value.
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

    /// The type.
    pub fn type_of(&self) -> Type {
        self.as_ref().type_of()
    }
}

impl<'a> ValueRef<'a> {
    /// Returns an owned copy.
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

    /// The type.
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

    /// Returns `true` for the four number types.
    pub fn is_number(self) -> bool {
        self.type_of().is_number()
    }

    /// Returns `true` for null and undefined, which most of MongoDB treats like a missing field.
    pub fn is_nullish(self) -> bool {
        matches!(self, ValueRef::Null | ValueRef::Undefined)
    }

    /// Returns the text of a string.
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            ValueRef::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value as a document, if it is one.
    pub fn as_document(self) -> Option<Document<'a>> {
        match self {
            ValueRef::Document(document) => Some(document),
            _ => None,
        }
    }

    /// Returns the value as an array, if it is one.
    pub fn as_array(self) -> Option<Array<'a>> {
        match self {
            ValueRef::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Returns the value as a boolean, if it is one.
    pub fn as_bool(self) -> Option<bool> {
        match self {
            ValueRef::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// Returns the double nearest to a number, or `None` if the value is not a number.
    pub fn as_f64(self) -> Option<f64> {
        Some(match self {
            ValueRef::Double(number) => number,
            ValueRef::Int32(number) => f64::from(number),
            ValueRef::Int64(number) => number as f64,
            ValueRef::Decimal128(number) => number.to_f64(),
            _ => return None,
        })
    }

    /// Returns a number as an integer, or `None` if it has a fraction, does not fit, or is not a
    /// number.
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

    /// Returns `true` unless the value is false, null, undefined or zero, as expressions and
    /// options require.
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
