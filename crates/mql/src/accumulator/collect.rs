//! `$push` and `$addToSet`, and `$concatArrays` and `$setUnion`, which add the elements of arrays.

use std::collections::HashSet;

use windrow_document::{ArrayBuf, ArrayBuilder, Collation, Value, key};

use super::bytes::value_bytes;
use crate::expression::ExprValue;

/// All values, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(crate) struct PushedValues(ArrayBuilder);

impl PushedValues {
    /// Adds a value. Missing values are ignored.
    pub fn add(&mut self, value: &ExprValue<'_>) {
        if let Some(value) = value.as_ref() {
            self.0.push(value);
        }
    }

    pub fn merge(&mut self, other: PushedValues) {
        other.0.finish().iter().for_each(|value| self.0.push(value));
    }

    pub fn finish(self) -> Value {
        Value::Array(self.0.finish())
    }

    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Distinct values, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(crate) struct DistinctValues {
    keys: HashSet<Box<[u8]>>,
    values: Vec<Value>,
    key_bytes: usize,
    value_bytes: usize,
}

impl DistinctValues {
    pub fn add(&mut self, value: ExprValue<'_>, collation: Option<&Collation>) {
        let Some(found) = value.as_ref() else {
            return;
        };
        let mut bytes = Vec::new();
        key::append_with_collation(&mut bytes, found, false, collation);
        let (key_bytes, value_bytes) = (bytes.len(), value_bytes(found));
        if self.keys.insert(bytes.into()) {
            self.key_bytes += key_bytes;
            self.value_bytes += value_bytes;
            self.values.extend(value.into_value());
        }
    }

    pub fn merge(&mut self, other: DistinctValues, collation: Option<&Collation>) {
        other
            .values
            .into_iter()
            .for_each(|value| self.add(ExprValue::from(value), collation));
    }

    pub fn finish(self) -> Value {
        Value::Array(self.values.into_iter().collect::<ArrayBuf>())
    }

    pub fn bytes(&self) -> usize {
        self.key_bytes + self.value_bytes
    }

    /// Returns the bytes of the values without the keys. MongoDB limits these.
    pub fn value_bytes(&self) -> usize {
        self.value_bytes
    }
}
