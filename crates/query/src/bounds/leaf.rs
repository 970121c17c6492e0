//! Computes the intervals of an index field for which one condition can be true.

use std::ops::Bound::{Included, Unbounded};

use windrow_document::{Type, Value, ValueRef};
use windrow_index::Definition;
use windrow_mql::filter::{Comparison, Node, Regex, TypeSet};

use super::interval::{Interval, Intervals, end};

/// What an index entry within the intervals implies for the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The document has to be tested.
    Document,
    /// The values in the key decide the condition.
    Key,
    /// The condition is true.
    Exact,
}

/// The entries of an index on a field for which a condition can be true.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// The intervals that contain the entries.
    pub intervals: Intervals,
    /// What an entry within the intervals implies for the condition.
    pub certainty: Certainty,
}

impl Extent {
    /// The same extent for an index that contains hashes of values. `None` if it does not consist
    /// of points.
    pub fn hashed(&self, definition: &Definition) -> Option<Extent> {
        let hash = |one: &Interval| {
            let hash = definition.hash(one.low.as_ref());
            Interval::point(Value::Int64(hash))
        };
        let points = self.intervals.as_slice().iter().map(hash);
        self.intervals.are_points().then(|| Extent {
            intervals: Intervals::union(points),
            certainty: Certainty::Document,
        })
    }
}

fn exact(intervals: Intervals) -> Option<Extent> {
    Some(Extent {
        intervals,
        certainty: Certainty::Exact,
    })
}

fn by_key(intervals: Intervals) -> Option<Extent> {
    Some(Extent {
        intervals,
        certainty: Certainty::Key,
    })
}

fn inexact(intervals: Intervals) -> Option<Extent> {
    Some(Extent {
        intervals,
        certainty: Certainty::Document,
    })
}

/// Returns the extent of a condition on one path. `None` if an index on the path cannot answer it.
pub fn extent(node: &Node) -> Option<Extent> {
    match node {
        Node::Compare {
            operator: Comparison::Eq,
            value,
            ..
        } => Some(equality(value)),
        Node::Compare {
            operator, value, ..
        } => comparison(*operator, value),
        Node::In {
            values, regexes, ..
        } => Some(any_of(values, regexes)),
        Node::Exists { .. } => inexact(Intervals::full()),
        Node::Type { types, .. } => Some(types_extent(*types)),
        Node::Regex { regex, .. } => Some(regex_extent(regex)),
        Node::Mod { .. } => by_key(Intervals::from_interval(Interval::from_type(Type::Double))),
        Node::Not(child) => negation(child),
        Node::Or(branches) => path_of(node).and_then(|_| any_extent(branches)),
        _ => None,
    }
}

/// The extent of a disjunction.
fn any_extent(branches: &[Node]) -> Option<Extent> {
    let extents: Option<Vec<Extent>> = branches.iter().map(extent).collect();
    let extents = extents?;
    let certainty = extents.iter().map(|one| one.certainty).min()?;
    let intervals = extents.iter().flat_map(|one| one.intervals.as_slice());
    Some(Extent {
        intervals: Intervals::union(intervals.cloned()),
        certainty,
    })
}

fn equality(value: &Value) -> Extent {
    let mut found = Vec::new();
    let certainty = equal_to(value, &mut found);
    Extent {
        intervals: Intervals::union(found),
        certainty,
    }
}

/// Adds the points of the values that are equal to a value. Null is also equal to missing fields,
/// whose index entry is null, and to the deprecated type undefined.
fn equal_to(value: &Value, found: &mut Vec<Interval>) -> Certainty {
    match value {
        Value::Null => found.push(Interval::point(Value::Undefined)),
        Value::Array(array) => {
            let first = array.iter().next();
            let first = first.map_or(Value::Undefined, ValueRef::to_value);
            found.push(Interval::point(first));
        }
        _ => {}
    }
    found.push(Interval::point(value.clone()));
    match value {
        Value::Null | Value::Array(_) => Certainty::Document,
        _ => Certainty::Exact,
    }
}

fn comparison(operator: Comparison, value: &Value) -> Option<Extent> {
    match value {
        Value::Array(_) => inexact(Intervals::full()),
        Value::MinKey | Value::MaxKey => exact(Intervals::from_interval(extreme(operator, value))),
        Value::Null if operator.accepts_equal() => Some(equality(value)),
        value if is_nan(value.as_ref()) && operator.accepts_equal() => {
            exact(Intervals::from_interval(Interval::point(value.clone())))
        }
        value if is_nan(value.as_ref()) => exact(Intervals::none()),
        value => exact(Intervals::from_interval(bracketed(operator, value))),
    }
}

/// Compares with MinKey or MaxKey: the interval may include values of all types.
fn extreme(operator: Comparison, value: &Value) -> Interval {
    let end = end(value.clone(), operator.accepts_equal());
    match operator {
        Comparison::Lt | Comparison::Lte => Interval::new(Unbounded, end),
        _ => Interval::new(end, Unbounded),
    }
}

fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(number) => number.is_nan(),
        ValueRef::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}

/// The values of the same type on one side of the value.
fn bracketed(operator: Comparison, value: &Value) -> Interval {
    let mut bracket = Interval::from_type(value.type_of());
    if value.as_ref().is_number() {
        let (low, high) = (f64::NEG_INFINITY.into(), f64::INFINITY.into());
        bracket = Interval::new(Included(low), Included(high));
    }
    let value = end(value.clone(), operator.accepts_equal());
    match operator {
        Comparison::Lt | Comparison::Lte => Interval::new(Included(bracket.low), value),
        _ => Interval::new(value, end(bracket.high, bracket.includes_high)),
    }
}

fn any_of(values: &[Value], regexes: &[Regex]) -> Extent {
    let mut found = Vec::with_capacity(values.len());
    let mut certainty = Certainty::Exact;
    for value in values {
        certainty = certainty.min(equal_to(value, &mut found));
    }
    for regex in regexes {
        let extent = regex_extent(regex);
        certainty = certainty.min(extent.certainty);
        found.extend_from_slice(extent.intervals.as_slice());
    }
    Extent {
        intervals: Intervals::union(found),
        certainty,
    }
}

/// `$type` tests the array itself and its elements.
fn types_extent(types: TypeSet) -> Extent {
    if types.contains(Type::Array) {
        return Extent {
            intervals: Intervals::full(),
            certainty: Certainty::Document,
        };
    }
    // The entry null can be a missing field.
    let nullish = types.contains(Type::Null) || types.contains(Type::Undefined);
    let certainty = if nullish {
        Certainty::Document
    } else {
        Certainty::Key
    };
    Extent {
        intervals: Intervals::union(types.iter().map(Interval::from_type)),
        certainty,
    }
}

/// The strings that can match, and the regular expression itself as a value.
fn regex_extent(regex: &Regex) -> Extent {
    let itself = Value::Regex {
        pattern: regex.pattern().to_owned(),
        options: regex.options().to_owned(),
    };
    let (strings, certainty) = match regex.prefix() {
        Some((prefix, true)) => (Interval::from_prefix(prefix), Certainty::Exact),
        Some((prefix, false)) => (Interval::from_prefix(prefix), Certainty::Key),
        None => (Interval::from_type(Type::String), Certainty::Key),
    };
    Extent {
        intervals: Intervals::union([strings, Interval::point(itself)]),
        certainty,
    }
}

fn negation(child: &Node) -> Option<Extent> {
    match child {
        Node::Exists { .. } => inexact(Intervals::from_interval(Interval::point(Value::Null))),
        // The index entry of an empty array is undefined, and the array is not equal to null.
        Node::Compare {
            operator: Comparison::Eq,
            value: Value::Null,
            ..
        } => inexact(Intervals::from_interval(Interval::point(Value::Null)).complement()),
        Node::Compare {
            value: Value::Array(_),
            ..
        } => None,
        Node::In {
            values, regexes, ..
        } => {
            let plain = |value: &Value| !matches!(value, Value::Null | Value::Array(_));
            let usable = regexes.is_empty() && values.iter().all(plain);
            usable.then(|| complement(any_of(values, &[]))).flatten()
        }
        Node::Compare { .. } => extent(child).and_then(complement),
        _ => None,
    }
}

fn complement(extent: Extent) -> Option<Extent> {
    let is_exact = extent.certainty == Certainty::Exact;
    is_exact.then(|| Extent {
        intervals: extent.intervals.complement(),
        ..extent
    })
}

/// Returns `true` if the condition contains regular expressions.
pub fn has_regex(node: &Node) -> bool {
    match node {
        Node::Regex { .. } => true,
        Node::In { regexes, .. } => !regexes.is_empty(),
        Node::Not(child) => has_regex(child),
        Node::Or(branches) => branches.iter().any(has_regex),
        _ => false,
    }
}

/// Returns `true` if the condition is true for documents without the path.
pub fn accepts_missing(node: &Node) -> bool {
    match node {
        Node::Compare {
            operator, value, ..
        } => match value {
            Value::Null => operator.accepts_equal(),
            Value::MinKey => matches!(operator, Comparison::Gt | Comparison::Gte),
            Value::MaxKey => matches!(operator, Comparison::Lt | Comparison::Lte),
            _ => false,
        },
        Node::In { values, .. } => values.contains(&Value::Null),
        Node::Not(child) => !accepts_missing(child),
        Node::Or(branches) => branches.iter().any(accepts_missing),
        _ => false,
    }
}

/// Returns `true` if the condition accepts all values except MinKey, or all except MaxKey.
pub fn is_all_but_an_end(node: &Node) -> bool {
    match node {
        Node::Compare {
            operator, value, ..
        } => matches!(
            (operator, value),
            (Comparison::Gt, Value::MinKey) | (Comparison::Lt, Value::MaxKey)
        ),
        Node::Or(branches) => branches.iter().any(is_all_but_an_end),
        _ => false,
    }
}

/// Returns the path of a condition on one path. The condition can be negated, or an `$or` of
/// conditions that are not negated.
pub fn path_of(node: &Node) -> Option<&windrow_document::path::Path> {
    match node {
        Node::Not(child) => child.path(),
        Node::Or(branches) => {
            let (first, others) = branches.split_first()?;
            let path = first.path()?;
            others
                .iter()
                .all(|one| one.path() == Some(path))
                .then_some(path)
        }
        other => other.path(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, array, doc};
    use windrow_mql::filter::Filter;

    fn check(condition: impl Into<Value>, expected: &str, exactly: bool) {
        let mut source = DocumentBuf::new();
        source.push("a", condition);
        let filter = Filter::parse(source.as_document()).unwrap();
        let found = extent(filter.root()).unwrap();
        let parts = found
            .intervals
            .as_slice()
            .iter()
            .map(|one| one.print(false));
        assert_eq!(parts.collect::<Vec<_>>().join(" "), expected, "{source}");
        assert_eq!(found.certainty == Certainty::Exact, exactly, "{source}");
    }

    #[test]
    fn conditions_become_intervals() {
        check(5, "[5, 5]", true);
        check(doc! { "$gt": 5 }, "(5, inf.0]", true);
        check(doc! { "$lte": 5 }, "[-inf.0, 5]", true);
        check(doc! { "$lt": "x" }, "[\"\", \"x\")", true);
        check(doc! { "$gte": "x" }, "[\"x\", {})", true);
        check(doc! { "$gte": true }, "[true, true]", true);
        check(
            doc! { "$in": [3, 1, "x"] },
            "[1, 1] [3, 3] [\"x\", \"x\"]",
            true,
        );
        check(Value::Null, "[undefined, undefined] [null, null]", false);
        check(array![1, 2], "[1, 1] [[ 1, 2 ], [ 1, 2 ]]", false);
        check(array![], "[undefined, undefined] [[], []]", false);
        check(doc! { "$ne": 5 }, "[MinKey, 5) (5, MaxKey]", true);
        check(
            doc! { "$ne": (Value::Null) },
            "[MinKey, null) (null, MaxKey]",
            false,
        );
        check(
            doc! { "$nin": [1, 2] },
            "[MinKey, 1) (1, 2) (2, MaxKey]",
            true,
        );
        check(doc! { "$exists": true }, "[MinKey, MaxKey]", false);
        check(doc! { "$exists": false }, "[null, null]", false);
        check(doc! { "$type": "string" }, "[\"\", {})", false);
        check(
            doc! { "$regex": "^ab" },
            "[\"ab\", \"ac\") [/^ab/, /^ab/]",
            true,
        );
        check(doc! { "$regex": "b" }, "[\"\", {}) [/b/, /b/]", false);
        check(doc! { "$mod": [4, 1] }, "[nan.0, inf.0]", false);
        check(doc! { "$gt": (f64::NAN) }, "", true);
        check(
            doc! { "$not": { "$gt": 5 } },
            "[MinKey, 5] (inf.0, MaxKey]",
            true,
        );
    }
}
