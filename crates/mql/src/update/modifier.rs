//! The trait of update operators: the effect of one operator on one field.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt::Debug;

use windrow_document::{Collation, Document, Timestamp, Value, ValueRef, collation};

use super::description::DescriptionBuilder;
use crate::Error;
use crate::memory::{LiveBytes, heap_bytes};

/// The inputs of the application of an update to one document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution<'a> {
    /// The document before the update.
    pub root: Document<'a>,
    pub now_millis: i64,
    pub timestamp: Timestamp,
    /// `true` if zero timestamps in replacements are stored as they are.
    pub keeps_zero_timestamps: bool,
    /// `true` if an upsert creates the document, so that `$setOnInsert` applies.
    pub is_insert: bool,
    /// The collation of string comparisons. `None` compares bytes.
    pub collation: Option<&'a Collation>,
    /// Records the changed paths.
    pub description_builder: &'a RefCell<DescriptionBuilder>,
}

impl Execution<'_> {
    pub fn compare(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
        collation::compare(self.collation, one, other)
    }

    pub fn equals(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
        self.compare(one, other).is_eq()
    }
}

/// The field to which an operator is applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldTarget<'a> {
    pub execution: &'a Execution<'a>,
    /// The path as written in the update.
    pub path: &'a str,
    /// `true` if an array is on the path before the last name.
    pub in_array: bool,
}

/// A new value: borrowed from the update or the document, or computed.
#[derive(Clone, Debug)]
pub(super) enum NewValue<'a> {
    Borrowed(ValueRef<'a>),
    /// The live bytes of the value, because every element of an array may get a value before they
    /// are written.
    Owned(Value, LiveBytes),
}

impl NewValue<'_> {
    pub fn owned(value: impl Into<Value>) -> NewValue<'static> {
        let value = value.into();
        let live = LiveBytes::new(heap_bytes(value.as_ref()));
        NewValue::Owned(value, live)
    }

    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            NewValue::Borrowed(value) => *value,
            NewValue::Owned(value, _) => value.as_ref(),
        }
    }
}

/// The change of an existing field.
#[derive(Clone, Debug)]
pub(super) enum Change<'a> {
    Keep,
    Remove,
    Set(NewValue<'a>),
}

impl<'a> Change<'a> {
    pub fn borrowed(value: ValueRef<'a>) -> Change<'a> {
        Change::Set(NewValue::Borrowed(value))
    }

    pub fn owned(value: impl Into<Value>) -> Change<'a> {
        Change::Set(NewValue::owned(value))
    }

    pub fn is_keep(&self) -> bool {
        matches!(self, Change::Keep)
    }

    /// Returns the same change without borrows.
    pub fn into_owned(self) -> Change<'static> {
        match self {
            Change::Keep => Change::Keep,
            Change::Remove => Change::Remove,
            Change::Set(NewValue::Borrowed(value)) => Change::owned(value),
            Change::Set(NewValue::Owned(value, live)) => Change::Set(NewValue::Owned(value, live)),
        }
    }
}

/// An operator with its operand for one field.
pub(super) trait Modifier: Debug + Send + Sync {
    /// Returns the change of an existing value. `Keep` means that the update has no effect here.
    /// Putting an equal value counts as a modification.
    fn change<'a>(
        &'a self,
        current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error>;

    /// Returns the value of a missing field, or `None` if the operator creates none.
    fn create<'a>(&'a self, _at: &FieldTarget<'a>) -> Result<Option<NewValue<'a>>, Error> {
        Ok(None)
    }

    /// Returns `true` if a change of this value only appends array elements.
    fn only_appends(&self, _current: ValueRef<'_>) -> bool {
        false
    }

    /// Returns `true` if the operator ignores a path that cannot exist, for example through a
    /// number.
    fn ignores_blocked_path(&self) -> bool {
        false
    }
}

/// Returns `true` if two values have the same type and bytes: -0 is different from 0, NaN equals
/// itself.
pub(super) fn same_bytes(one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
    match (one, other) {
        (ValueRef::Double(one), ValueRef::Double(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}
