//! Sorted distinct values, for operators that compare each array element with several values.

use windrow_document::{Value, ValueRef};

use super::modifier::Execution;

/// Sorted distinct values.
pub(super) struct Distinct<'v, 'r> {
    /// The values with their indexes in the operand. Of equal values the first one is previous.
    values: Vec<(usize, ValueRef<'v>)>,
    execution: &'r Execution<'r>,
}

impl<'v, 'r> Distinct<'v, 'r> {
    pub fn new(values: &'v [Value], execution: &'r Execution<'r>) -> Distinct<'v, 'r> {
        let mut values: Vec<_> = values.iter().map(Value::as_ref).enumerate().collect();
        // The sort is stable, so the first of equal values is previous.
        values.sort_by(|(_, one), (_, other)| execution.compare(*one, *other));
        values.dedup_by(|(_, next), (_, previous)| execution.equals(*next, *previous));
        Distinct { values, execution }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the index of the equal value, in sort order.
    pub fn find(&self, value: ValueRef<'_>) -> Option<usize> {
        self.values
            .binary_search_by(|(_, one)| self.execution.compare(*one, value))
            .ok()
    }

    pub fn contains(&self, value: ValueRef<'_>) -> bool {
        self.find(value).is_some()
    }

    /// Returns the chosen values, in the order of the operand.
    pub fn in_original_order(&self, chosen: &[bool]) -> Vec<ValueRef<'v>> {
        let chosen = self
            .values
            .iter()
            .zip(chosen)
            .filter(|(_, chosen)| **chosen);
        let mut chosen: Vec<(usize, ValueRef<'v>)> = chosen.map(|(value, _)| *value).collect();
        chosen.sort_unstable_by_key(|(index, _)| *index);
        chosen.into_iter().map(|(_, value)| value).collect()
    }
}
