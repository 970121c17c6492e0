//! The result of an expression: missing, borrowed from the document or the expression, or owned.

use windrow_document::{Array, Document, Type, Value, ValueRef};

use crate::memory::{LiveBytes, heap_bytes};

/// The result of an expression. `Missing` means that the field does not exist; an object leaves
/// such a field out.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprValue<'a> {
    /// No value.
    Missing,
    /// A value within the document, a variable or the expression.
    Borrowed(ValueRef<'a>),
    /// A new value.
    Owned(OwnedValue),
}

/// A value that an expression created. Its memory counts as live on this thread.
#[derive(Clone, Debug)]
pub struct OwnedValue {
    value: Value,
    _live: LiveBytes,
}

impl OwnedValue {
    /// Returns the value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        self.value.as_ref()
    }
}

impl PartialEq for OwnedValue {
    fn eq(&self, other: &OwnedValue) -> bool {
        self.value == other.value
    }
}

impl<'a> ExprValue<'a> {
    /// The value null.
    pub const NULL: ExprValue<'static> = ExprValue::Borrowed(ValueRef::Null);

    /// Returns the value, borrowed, or `None` if it is missing.
    pub fn as_ref(&self) -> Option<ValueRef<'_>> {
        match self {
            ExprValue::Missing => None,
            ExprValue::Borrowed(value) => Some(*value),
            ExprValue::Owned(owned) => Some(owned.as_ref()),
        }
    }

    /// Returns the value, borrowed, with missing as null, as in arrays.
    pub fn or_null(&self) -> ValueRef<'_> {
        self.as_ref().unwrap_or(ValueRef::Null)
    }

    /// Returns a copy of the value, or `None` if it is missing.
    pub fn to_value(&self) -> Option<Value> {
        self.as_ref().map(ValueRef::to_value)
    }

    /// Returns the value, or `None` if it is missing. An owned value is not copied.
    pub fn into_value(self) -> Option<Value> {
        match self {
            ExprValue::Missing => None,
            ExprValue::Borrowed(value) => Some(value.to_value()),
            ExprValue::Owned(owned) => Some(owned.value),
        }
    }

    /// Returns the same result without borrows. Scalars are not copied to the heap.
    pub fn into_owned(self) -> ExprValue<'static> {
        match self {
            ExprValue::Missing => ExprValue::Missing,
            ExprValue::Borrowed(value) => ExprValue::from(value.to_value()),
            ExprValue::Owned(owned) => ExprValue::Owned(owned),
        }
    }

    /// Returns `true` for a missing value.
    pub fn is_missing(&self) -> bool {
        matches!(self, ExprValue::Missing)
    }

    /// Returns `true` for missing, null and undefined.
    pub fn is_nullish(&self) -> bool {
        self.as_ref().is_none_or(ValueRef::is_nullish)
    }

    /// Returns `true` for values that conditions treat as true. Missing is false.
    pub fn is_truthy(&self) -> bool {
        self.as_ref().is_some_and(ValueRef::is_truthy)
    }

    /// Returns the type, or `None` if the value is missing.
    pub fn type_of(&self) -> Option<Type> {
        self.as_ref().map(ValueRef::type_of)
    }

    /// Returns the type name in messages and in the result of `$type`. It is "missing" for a
    /// missing value.
    pub fn type_name(&self) -> &'static str {
        self.type_of().map_or("missing", Type::name)
    }

    /// Returns the string, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        self.as_ref()?.as_str()
    }

    /// Returns the array, if the value is one.
    pub fn as_array(&self) -> Option<Array<'_>> {
        self.as_ref()?.as_array()
    }

    /// Returns the document, if the value is one.
    pub fn as_document(&self) -> Option<Document<'_>> {
        self.as_ref()?.as_document()
    }
}

impl<'a> From<ValueRef<'a>> for ExprValue<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        ExprValue::Borrowed(value)
    }
}

impl<'a> From<Option<ValueRef<'a>>> for ExprValue<'a> {
    fn from(value: Option<ValueRef<'a>>) -> Self {
        value.map_or(ExprValue::Missing, ExprValue::Borrowed)
    }
}

impl From<Value> for ExprValue<'_> {
    fn from(value: Value) -> Self {
        let _live = LiveBytes::new(heap_bytes(value.as_ref()));
        ExprValue::Owned(OwnedValue { value, _live })
    }
}

macro_rules! expr_value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for ExprValue<'_> {
            fn from(value: $from) -> Self { ExprValue::Borrowed(ValueRef::$variant(value)) }
        })*
    };
}

expr_value_from! {
    bool => Bool,
    i32 => Int32,
    i64 => Int64,
    f64 => Double,
    windrow_document::Decimal128 => Decimal128,
    windrow_document::ObjectId => ObjectId,
}

macro_rules! expr_value_from_owned {
    ($($from:ty),* $(,)?) => {
        $(impl From<$from> for ExprValue<'_> {
            fn from(value: $from) -> Self { ExprValue::from(Value::from(value)) }
        })*
    };
}

expr_value_from_owned!(
    String,
    windrow_document::DocumentBuf,
    windrow_document::ArrayBuf
);
