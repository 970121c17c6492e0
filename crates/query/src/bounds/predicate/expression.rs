//! Index bounds from `$expr`: comparisons of fields with constants.
//!
//! Expressions compare values of all types in one order. A missing value is less than null, but its
//! index entry is null. An index contains the elements of an array, while expressions compare the
//! whole array.

use std::ops::Bound::{Excluded, Included, Unbounded};

use windrow_document::Value;
use windrow_document::path::Path;
use windrow_mql::filter::{Comparison, ExprCondition, FieldComparison};

use super::Predicate;
use crate::bounds::interval::{Interval, Intervals};
use crate::bounds::leaf::{Certainty, Extent};

/// Returns the comparisons that an index can help with.
pub fn predicates(condition: &ExprCondition) -> Vec<Predicate> {
    let all = condition.comparisons().into_iter();
    all.filter_map(predicate).collect()
}

fn predicate(one: FieldComparison) -> Option<Predicate> {
    let path = Path::parse(&one.path);
    let has_position = path.components().iter().any(|part| part.index().is_some());
    let is_not_indexed = matches!(
        one.value,
        Value::Array(_) | Value::Undefined | Value::MinKey | Value::MaxKey
    );
    if has_position || is_not_indexed {
        return None;
    }
    let extent = Extent {
        intervals: Intervals::from_interval(interval(one.operator, one.value)),
        certainty: Certainty::Document,
    };
    Some(Predicate {
        path,
        extent,
        accepts_missing: matches!(one.operator, Comparison::Lt | Comparison::Lte),
        is_negated: false,
        needs_no_arrays: true,
        is_of_texts: false,
        is_of_expression: true,
        bindings: Vec::new(),
    })
}

fn interval(operator: Comparison, value: Value) -> Interval {
    match operator {
        Comparison::Eq => Interval::point(value),
        Comparison::Gt => Interval::new(Excluded(value), Unbounded),
        Comparison::Gte => Interval::new(Included(value), Unbounded),
        // A missing value is less than null, but its index entry is null.
        Comparison::Lt if value != Value::Null => Interval::new(Unbounded, Excluded(value)),
        Comparison::Lt | Comparison::Lte => Interval::new(Unbounded, Included(value)),
    }
}
