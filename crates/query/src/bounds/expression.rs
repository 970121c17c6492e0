//! What `$expr` says to indexes: comparisons of fields with values.
//!
//! Expressions compare values of all types in one order, and what is missing stands below null, under
//! which an index has it. Of arrays an index has the elements, and expressions compare them as a whole.

use windrow_document::Value;
use windrow_document::path::Path;
use windrow_mql::filter::{Comparison, ExprCondition, FieldComparison};

use super::Predicate;
use super::interval::{Interval, Intervals};
use super::leaf::{Certainty, Extent};

/// The comparisons that indexes can help with.
pub fn predicates(condition: &ExprCondition) -> Vec<Predicate> {
    let all = condition.comparisons().into_iter();
    all.filter_map(predicate).collect()
}

fn predicate(one: FieldComparison) -> Option<Predicate> {
    let path = Path::parse(&one.path);
    let by_place = path.components().iter().any(|part| part.index().is_some());
    let says_nothing = matches!(
        one.value,
        Value::Array(_) | Value::Undefined | Value::MinKey | Value::MaxKey
    );
    if by_place || says_nothing {
        return None;
    }
    let extent = Extent {
        intervals: Intervals::of(interval(one.operator, one.value)),
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
        pins: Vec::new(),
    })
}

fn interval(operator: Comparison, value: Value) -> Interval {
    match operator {
        Comparison::Eq => Interval::point(value),
        Comparison::Gt => Interval::new(value, false, Value::MaxKey, true),
        Comparison::Gte => Interval::new(value, true, Value::MaxKey, true),
        // What is missing is below null.
        Comparison::Lt if value != Value::Null => Interval::new(Value::MinKey, true, value, false),
        Comparison::Lt | Comparison::Lte => Interval::new(Value::MinKey, true, value, true),
    }
}
