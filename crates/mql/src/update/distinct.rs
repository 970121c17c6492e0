//! The values of an operator that compares each element of an array with all of them.

use windrow_document::{Value, ValueRef};

use super::modifier::Run;

/// Values in order, of which no two are equal.
pub(super) struct Distinct<'v, 'r> {
    /// With their places among all values: of equal ones the first stands for all.
    values: Vec<(usize, ValueRef<'v>)>,
    run: &'r Run<'r>,
}

impl<'v, 'r> Distinct<'v, 'r> {
    pub fn of(values: &'v [Value], run: &'r Run<'r>) -> Distinct<'v, 'r> {
        let mut values: Vec<_> = values.iter().map(Value::as_ref).enumerate().collect();
        // The sort is stable: equal values stay in the order of their places.
        values.sort_by(|(_, one), (_, other)| run.compare(*one, *other));
        values.dedup_by(|(_, next), (_, kept)| run.equals(*next, *kept));
        Distinct { values, run }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Which of the values equals this one.
    pub fn find(&self, value: ValueRef<'_>) -> Option<usize> {
        self.values
            .binary_search_by(|(_, one)| self.run.compare(*one, value))
            .ok()
    }

    pub fn contains(&self, value: ValueRef<'_>) -> bool {
        self.find(value).is_some()
    }

    /// Those that are chosen, in the order in which all values stand.
    pub fn in_their_order(&self, chosen: &[bool]) -> Vec<ValueRef<'v>> {
        let chosen = self
            .values
            .iter()
            .zip(chosen)
            .filter(|(_, chosen)| **chosen);
        let mut chosen: Vec<(usize, ValueRef<'v>)> = chosen.map(|(value, _)| *value).collect();
        chosen.sort_unstable_by_key(|(place, _)| *place);
        chosen.into_iter().map(|(_, value)| value).collect()
    }
}
