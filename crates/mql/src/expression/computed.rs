//! What an expression gives: nothing, a value within the document (or the expression), or a new one.

use windrow_document::{Array, Document, Type, Value, ValueRef};

use crate::memory::{LiveBytes, heap_bytes};

/// The result of an expression. `Missing` is MongoDB's "no such field": it leaves fields out.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed<'a> {
    Missing,
    Borrowed(ValueRef<'a>),
    Owned(Made),
}

/// A value that an expression made. Its memory counts as living on this thread.
#[derive(Clone, Debug)]
pub struct Made {
    value: Value,
    _live: LiveBytes,
}

impl Made {
    pub fn as_ref(&self) -> ValueRef<'_> {
        self.value.as_ref()
    }
}

impl PartialEq for Made {
    fn eq(&self, other: &Made) -> bool {
        self.value == other.value
    }
}

impl<'a> Computed<'a> {
    pub const NULL: Computed<'static> = Computed::Borrowed(ValueRef::Null);

    /// The value, borrowed; None where there is none.
    pub fn as_ref(&self) -> Option<ValueRef<'_>> {
        match self {
            Computed::Missing => None,
            Computed::Borrowed(value) => Some(*value),
            Computed::Owned(made) => Some(made.as_ref()),
        }
    }

    /// The value with missing taken as null, as it stands in arrays.
    pub fn or_null(&self) -> ValueRef<'_> {
        self.as_ref().unwrap_or(ValueRef::Null)
    }

    /// The value, owned; None where there is none.
    pub fn to_value(&self) -> Option<Value> {
        self.as_ref().map(ValueRef::to_value)
    }

    /// The value, owned, without copying what is owned already.
    pub fn into_value(self) -> Option<Value> {
        match self {
            Computed::Missing => None,
            Computed::Borrowed(value) => Some(value.to_value()),
            Computed::Owned(made) => Some(made.value),
        }
    }

    /// The same, free of what it was borrowed from. Scalars are not copied to the heap.
    pub fn into_owned(self) -> Computed<'static> {
        match self {
            Computed::Missing => Computed::Missing,
            Computed::Borrowed(value) => Computed::from(value.to_value()),
            Computed::Owned(made) => Computed::Owned(made),
        }
    }

    pub fn is_missing(&self) -> bool {
        matches!(self, Computed::Missing)
    }

    /// Missing, null or undefined.
    pub fn is_nullish(&self) -> bool {
        self.as_ref().is_none_or(ValueRef::is_nullish)
    }

    /// What conditions take as true. Missing is false.
    pub fn is_truthy(&self) -> bool {
        self.as_ref().is_some_and(ValueRef::is_truthy)
    }

    pub fn type_of(&self) -> Option<Type> {
        self.as_ref().map(ValueRef::type_of)
    }

    /// The name that messages and `$type` give it.
    pub fn type_name(&self) -> &'static str {
        self.type_of().map_or("missing", Type::name)
    }

    pub fn as_str(&self) -> Option<&str> {
        self.as_ref()?.as_str()
    }

    pub fn as_array(&self) -> Option<Array<'_>> {
        self.as_ref()?.as_array()
    }

    pub fn as_document(&self) -> Option<Document<'_>> {
        self.as_ref()?.as_document()
    }
}

impl<'a> From<ValueRef<'a>> for Computed<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        Computed::Borrowed(value)
    }
}

impl<'a> From<Option<ValueRef<'a>>> for Computed<'a> {
    fn from(value: Option<ValueRef<'a>>) -> Self {
        value.map_or(Computed::Missing, Computed::Borrowed)
    }
}

impl From<Value> for Computed<'_> {
    fn from(value: Value) -> Self {
        let _live = LiveBytes::of(heap_bytes(value.as_ref()));
        Computed::Owned(Made { value, _live })
    }
}

macro_rules! computed_from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Computed<'_> {
            fn from(value: $from) -> Self { Computed::Borrowed(ValueRef::$variant(value)) }
        })*
    };
}

computed_from! {
    bool => Bool,
    i32 => Int32,
    i64 => Int64,
    f64 => Double,
    windrow_document::Decimal128 => Decimal128,
    windrow_document::ObjectId => ObjectId,
}

macro_rules! computed_from_owned {
    ($($from:ty),* $(,)?) => {
        $(impl From<$from> for Computed<'_> {
            fn from(value: $from) -> Self { Computed::from(Value::from(value)) }
        })*
    };
}

computed_from_owned!(
    String,
    windrow_document::DocumentBuf,
    windrow_document::ArrayBuf
);
