//! What one operator does to one field: the trait that each operator implements.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt::Debug;

use windrow_document::{Collation, Document, Timestamp, Value, ValueRef, collation};

use super::description::Trace;
use crate::Error;
use crate::memory::{LiveBytes, heap_bytes};

/// What holds for one run of an update over one document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    /// The document before the update.
    pub root: Document<'a>,
    pub now_millis: i64,
    pub timestamp: Timestamp,
    /// Zero timestamps in replacements stay what they are.
    pub keeps_zero_timestamps: bool,
    /// Whether an upsert makes a new document, so that `$setOnInsert` counts.
    pub is_insert: bool,
    /// How strings are compared; None: by their bytes.
    pub collation: Option<&'a Collation>,
    /// What changes, for those who are told of it.
    pub trace: &'a RefCell<Trace>,
}

impl Run<'_> {
    pub fn compare(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
        collation::compare(self.collation, one, other)
    }

    pub fn equals(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
        self.compare(one, other).is_eq()
    }
}

/// Where an operator meets a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    pub run: &'a Run<'a>,
    /// The path as the update gives it.
    pub path: &'a str,
    /// Whether a part of the path before the last leads into an array.
    pub in_array: bool,
}

/// A value to be stored: the update's own, or one that was computed.
#[derive(Clone, Debug)]
pub(super) enum Put<'a> {
    Borrowed(ValueRef<'a>),
    /// With what lives of it: of an array every element may get one before they are written.
    Owned(Value, LiveBytes),
}

impl Put<'_> {
    pub fn owned(value: impl Into<Value>) -> Put<'static> {
        let value = value.into();
        let live = LiveBytes::of(heap_bytes(value.as_ref()));
        Put::Owned(value, live)
    }

    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Put::Borrowed(value) => *value,
            Put::Owned(value, _) => value.as_ref(),
        }
    }
}

/// What becomes of a field that is there.
#[derive(Clone, Debug)]
pub(super) enum Change<'a> {
    Keep,
    Remove,
    Put(Put<'a>),
}

impl<'a> Change<'a> {
    pub fn borrowed(value: ValueRef<'a>) -> Change<'a> {
        Change::Put(Put::Borrowed(value))
    }

    pub fn owned(value: impl Into<Value>) -> Change<'a> {
        Change::Put(Put::owned(value))
    }

    pub fn is_keep(&self) -> bool {
        matches!(self, Change::Keep)
    }

    /// The same change, no longer bound to the tree that made it.
    pub fn into_owned(self) -> Change<'static> {
        match self {
            Change::Keep => Change::Keep,
            Change::Remove => Change::Remove,
            Change::Put(Put::Borrowed(value)) => Change::owned(value),
            Change::Put(Put::Owned(value, live)) => Change::Put(Put::Owned(value, live)),
        }
    }
}

/// One operator with its operand, for one field.
pub(super) trait Modifier: Debug + Send + Sync {
    /// What becomes of the field's value. `Keep` says that the update has no effect here; an equal
    /// value that is put all the same counts as a modification.
    fn change<'a>(&'a self, current: ValueRef<'a>, at: &At<'a>) -> Result<Change<'a>, Error>;

    /// The value of a field that is not there. None: the operator creates none.
    fn create<'a>(&'a self, _at: &At<'a>) -> Result<Option<Put<'a>>, Error> {
        Ok(None)
    }

    /// Whether a change of this value only adds elements behind those that are there.
    fn only_appends(&self, _current: ValueRef<'_>) -> bool {
        false
    }

    /// Whether the operator passes over a path that could not be created (through a number, say).
    fn forgives_blocked_path(&self) -> bool {
        false
    }
}

/// Whether two values are the same bytes of the same type: -0 is not 0, NaN is itself.
pub(super) fn same_bytes(one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
    match (one, other) {
        (ValueRef::Double(one), ValueRef::Double(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}
