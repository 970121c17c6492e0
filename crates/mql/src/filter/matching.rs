//! Evaluates a filter on a document.

use windrow_document::path::Path;
use windrow_document::{Collation, Document, Value, ValueRef};
use windrow_invariant::Bug;

use super::compare::{Comparison, compares};
use super::node::Node;
use super::regex::Regex;
use super::regex_list::RegexList;
use super::walk::{self, ArrayAtEnd, MatchResult};
use crate::Error;
use crate::interrupt::{self, count_work};

/// The value that a condition is evaluated on.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    /// A whole document.
    Document(Document<'a>),
    /// The value of the first component of every path. `None` is a missing field.
    Named(Option<ValueRef<'a>>),
    /// An element of an array. Paths are empty and arrays are not entered.
    Element(ValueRef<'a>),
}

/// Records the array index at which a condition was fulfilled, if the caller needs it. If several
/// conditions enter arrays, the last one counts. `$or`, `$nor` and `$not` record nothing, except
/// for a `$or` that is equivalent to a `$in`.
pub(super) struct Trace<'c> {
    is_enabled: bool,
    position: Option<usize>,
    /// The collation of string comparisons. `None` compares bytes.
    collation: Option<&'c Collation>,
}

impl<'c> Trace<'c> {
    pub(super) fn disabled(collation: Option<&'c Collation>) -> Trace<'c> {
        Trace {
            is_enabled: false,
            position: None,
            collation,
        }
    }

    pub(super) fn enabled(collation: Option<&'c Collation>) -> Trace<'c> {
        Trace {
            is_enabled: true,
            ..Trace::disabled(collation)
        }
    }

    /// Returns a trace for a condition that records nothing.
    fn disabled_copy(&self) -> Trace<'c> {
        Trace::disabled(self.collation)
    }

    pub(super) fn position(&self) -> Option<usize> {
        self.position
    }

    fn record(&mut self, position: Option<usize>) {
        if self.is_enabled && position.is_some() {
            self.position = position;
        }
    }
}

/// The work of comparing a point. The work of larger shapes is counted per vertex.
const WORK_OF_SHAPE: usize = 32;

pub(super) fn matches(node: &Node, subject: Subject<'_>, trace: &mut Trace<'_>) -> MatchResult {
    match node {
        Node::AlwaysTrue | Node::Text(_) | Node::Near { .. } => Ok(true),
        Node::AlwaysFalse => Ok(false),
        Node::Expr(condition) => match_document(subject, |document| condition.matches(document)),
        Node::Schema(schema) => match_document(subject, |document| schema.matches(document)),
        Node::And(children) => all(children, subject, trace),
        Node::Or(children) => match equalities_path(children).filter(|_| trace.is_enabled) {
            Some(path) => on_path(
                path,
                subject,
                ArrayAtEnd::Elements,
                trace,
                |value, trace| equals_any(children, value, trace.collation),
            ),
            None => any(children, subject, trace),
        },
        Node::Nor(children) => any(children, subject, trace).map(|found| !found),
        Node::Not(child) => matches(child, subject, &mut trace.disabled_copy()).map(|found| !found),
        Node::Compare {
            path,
            operator,
            value,
        } => {
            let operand = value.as_ref();
            on_path(
                path,
                subject,
                ArrayAtEnd::Elements,
                trace,
                |value, trace| Ok(compares(value, *operator, operand, trace.collation)),
            )
        }
        Node::Geo { path, condition } => {
            on_path(path, subject, ArrayAtEnd::Elements, trace, |value, _| {
                count_work(WORK_OF_SHAPE)?;
                let Some(value) = value else {
                    return Ok(false);
                };
                let matches = condition.matches_with(value, &interrupt::count);
                Ok(matches.map_err(Error::from)?)
            })
        }
        Node::ElemMatchObject { path, .. }
        | Node::ElemMatchValue { path, .. }
        | Node::Size { path, .. } => {
            on_path(path, subject, ArrayAtEnd::Whole, trace, |value, trace| {
                leaf(node, value, trace)
            })
        }
        Node::In { path, .. }
        | Node::Exists { path }
        | Node::Type { path, .. }
        | Node::Regex { path, .. }
        | Node::Mod { path, .. }
        | Node::Bits { path, .. } => on_path(
            path,
            subject,
            ArrayAtEnd::Elements,
            trace,
            |value, trace| leaf(node, value, trace),
        ),
    }
}

/// Evaluates a condition that applies to whole documents only.
fn match_document(
    subject: Subject<'_>,
    test: impl FnOnce(Document<'_>) -> MatchResult,
) -> MatchResult {
    match subject {
        Subject::Document(document) => test(document),
        Subject::Named(_) | Subject::Element(_) => Err(Box::new(Error::bad_value(
            "$expr and $jsonSchema apply to whole documents only",
        ))),
    }
}

/// Returns `true` if every child holds. Consecutive conditions with the same first path component,
/// such as those of a range, look it up once.
fn all(children: &[Node], subject: Subject<'_>, trace: &mut Trace<'_>) -> MatchResult {
    count_work(children.len())?;
    let mut found: Option<(&str, Option<ValueRef<'_>>)> = None;
    for child in children {
        let subject = match (subject, top_name(child)) {
            (Subject::Document(document), Some(name)) => {
                let value = match found {
                    Some((known, value)) if known == name => value,
                    _ => document.get(name),
                };
                found = Some((name, value));
                Subject::Named(value)
            }
            _ => subject,
        };
        if !matches(child, subject, trace)? {
            trace.position = None;
            return Ok(false);
        }
    }
    Ok(true)
}

fn any(children: &[Node], subject: Subject<'_>, trace: &Trace<'_>) -> MatchResult {
    count_work(children.len())?;
    for child in children {
        if matches(child, subject, &mut trace.disabled_copy())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the path of a disjunction that is equivalent to a `$in`: all children are equalities on
/// one path.
fn equalities_path(children: &[Node]) -> Option<&Path> {
    let path = children.first()?.path();
    let same = |child: &Node| {
        matches!(child, Node::Compare { operator, .. } if *operator == Comparison::Eq)
            && child.path() == path
    };
    path.filter(|_| children.iter().all(same))
}

/// Returns `true` if the value fulfils one of these equalities.
fn equals_any(
    equalities: &[Node],
    found: Option<ValueRef<'_>>,
    collation: Option<&Collation>,
) -> MatchResult {
    Ok(equalities.iter().any(|one| match one {
        Node::Compare {
            operator, value, ..
        } => compares(found, *operator, value.as_ref(), collation),
        _ => false,
    }))
}

/// Returns the first component of the path of a condition.
fn top_name(node: &Node) -> Option<&str> {
    Some(node.path()?.components().first()?.name())
}

/// Returns `true` if any value at the path passes the test.
#[inline]
fn on_path(
    path: &Path,
    subject: Subject<'_>,
    array_at_end: ArrayAtEnd,
    trace: &mut Trace<'_>,
    mut test: impl FnMut(Option<ValueRef<'_>>, &mut Trace<'_>) -> MatchResult,
) -> MatchResult {
    let mut visit = |value: Option<ValueRef<'_>>, array_index: Option<usize>| {
        // A single value is little work. Only an array can have many.
        if array_index.is_some() {
            count_work(1)?;
        }
        let passed = test(value, trace)?;
        if passed {
            trace.record(array_index);
        }
        Ok(passed)
    };
    let components = path.components();
    match subject {
        Subject::Document(document) => walk::any(document, components, array_at_end, &mut visit),
        Subject::Named(Some(value)) => {
            let [_, rest @ ..] = components else {
                return Err(Box::new(Bug::new("a path without a first name").into()));
            };
            walk::any_from(value, rest, array_at_end, &mut visit)
        }
        Subject::Named(None) => visit(None, None),
        Subject::Element(value) => visit(Some(value), None),
    }
}

/// Evaluates a condition on one value. `None` is a missing field.
fn leaf(node: &Node, value: Option<ValueRef<'_>>, trace: &mut Trace<'_>) -> MatchResult {
    let Some(value) = value else {
        return Ok(matches_missing(node));
    };
    let collation = trace.collation;
    match node {
        Node::In {
            values, regexes, ..
        } => Ok(contains(values, value, trace.collation) || any_regex(regexes, value)?),
        Node::Exists { .. } => Ok(true),
        Node::Type { types, .. } => Ok(types.contains(value.type_of())),
        Node::Regex { regex, .. } => regex_matches(regex, value),
        Node::Size { size, .. } => Ok(has_size(value, *size)),
        Node::Mod {
            divisor, remainder, ..
        } => Ok(dividend(value).is_some_and(|number| number.wrapping_rem(*divisor) == *remainder)),
        Node::Bits { bits, .. } => Ok(bits.test(value)),
        Node::ElemMatchObject { condition, .. } => any_element(value, trace, |element| {
            let inner = match element {
                ValueRef::Document(inner) => inner,
                ValueRef::Array(inner) => inner.as_document(),
                _ => return Ok(false),
            };
            matches(
                condition,
                Subject::Document(inner),
                &mut Trace::disabled(collation),
            )
        }),
        Node::ElemMatchValue { conditions, .. } => any_element(value, trace, |element| {
            all(
                conditions,
                Subject::Element(element),
                &mut Trace::disabled(collation),
            )
        }),
        other => matches(other, Subject::Element(value), trace),
    }
}

fn matches_missing(node: &Node) -> bool {
    match node {
        Node::In { values, .. } => values.contains(&Value::Null),
        _ => false,
    }
}

fn any_element(
    value: ValueRef<'_>,
    trace: &mut Trace<'_>,
    mut test: impl FnMut(ValueRef<'_>) -> MatchResult,
) -> MatchResult {
    let ValueRef::Array(array) = value else {
        return Ok(false);
    };
    for (index, element) in array.iter().enumerate() {
        count_work(1)?;
        if test(element)? {
            trace.record(Some(index));
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns `true` if a sorted list contains the value.
fn contains(values: &[Value], value: ValueRef<'_>, collation: Option<&Collation>) -> bool {
    // The list is sorted without collation, so a binary search would be wrong.
    if let Some(collation) = collation {
        return values
            .iter()
            .any(|one| collation.equals(one.as_ref(), value));
    }
    values
        .binary_search_by(|one| one.as_ref().compare(value))
        .is_ok()
}

fn any_regex(regexes: &RegexList, value: ValueRef<'_>) -> MatchResult {
    if let ValueRef::String(text) | ValueRef::Symbol(text) = value {
        return regexes.is_match(text).map_err(Box::new);
    }
    for regex in regexes.iter() {
        if regex_matches(regex, value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Matches strings, symbols, and the same regular expression as a value.
fn regex_matches(regex: &Regex, value: ValueRef<'_>) -> MatchResult {
    match value {
        ValueRef::String(text) | ValueRef::Symbol(text) => regex.is_match(text).map_err(Box::new),
        ValueRef::Regex { pattern, options } => {
            Ok(regex.pattern() == pattern && regex.options() == options)
        }
        _ => Ok(false),
    }
}

fn has_size(value: ValueRef<'_>, size: i64) -> bool {
    match value {
        ValueRef::Array(array) => i64::try_from(array.count()) == Ok(size),
        _ => false,
    }
}

/// Returns the integer part of a number, if it fits in 64 bits.
fn dividend(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(number) => Some(i64::from(number)),
        ValueRef::Int64(number) => Some(number),
        ValueRef::Double(number) => ValueRef::Double(number.trunc()).as_whole(),
        ValueRef::Decimal128(number) => number.to_i64_truncated().map(|(whole, _)| whole),
        _ => None,
    }
}
