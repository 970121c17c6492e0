//! Moves a filter from after a stage to before it.
//!
//! Some conditions hold for the input document exactly if they hold for the output. Others hold for
//! the input at least if they hold for the output. The parsed filter decides how much of it can
//! move. The paths are rewritten in the query document, because explain shows that document. Only
//! paths and expressions made of comparisons are rewritten, because they mean the same everywhere.

use std::cell::Cell;
use std::collections::BTreeSet;

use windrow_document::path::Path;
use windrow_document::{ArrayBuf, Document, DocumentBuf, Type, Value, ValueRef};

use super::Filter;
use super::expr::ExprCondition;
use super::matching::{self, Subject, Trace};
use super::node::Node;
use crate::Error;
use crate::field_lineage::{FieldLineage, ValueDifference};

/// The part of a filter after a stage that can run before the stage.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterPushdown {
    /// The unchanged filter. Nothing remains after the stage.
    Same,
    /// This rewritten filter. Nothing remains after the stage.
    Whole(DocumentBuf),
    /// This rewritten filter, which also matches other documents. The original filter remains
    /// after the stage.
    Part(DocumentBuf),
    /// Nothing can move.
    Nothing,
}

/// How much of a condition can run before the stage, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    Nothing,
    Part,
    Whole,
}

/// Returns the lineage of a path in a stage, or `None` if it has none.
pub type LineageOf<'f> = &'f dyn Fn(&Path) -> Option<FieldLineage>;

/// Returns the pushdown of a filter that was parsed from `document`. Fails if a condition that is
/// evaluated on a sample value fails.
pub(super) fn pushdown(
    filter: &Filter,
    document: Document<'_>,
    lineage: LineageOf<'_>,
) -> Result<FilterPushdown, Error> {
    let analysis = PushdownAnalysis {
        lineage,
        is_collated: filter.collation().is_some(),
        is_rewritten: Cell::new(false),
    };
    let extent = analysis.extent(filter.root())?;
    let rewritten = || {
        if analysis.is_rewritten.get() {
            rewritten(document, lineage)
        } else {
            Some(document.to_buf())
        }
    };
    Ok(match extent {
        Extent::Nothing => FilterPushdown::Nothing,
        Extent::Whole if !analysis.is_rewritten.get() => FilterPushdown::Same,
        Extent::Whole => rewritten().map_or(FilterPushdown::Nothing, FilterPushdown::Whole),
        Extent::Part => rewritten().map_or(FilterPushdown::Nothing, FilterPushdown::Part),
    })
}

struct PushdownAnalysis<'f> {
    lineage: LineageOf<'f>,
    is_collated: bool,
    /// `true` if a path has another name before the stage.
    is_rewritten: Cell<bool>,
}

impl PushdownAnalysis<'_> {
    fn extent(&self, node: &Node) -> Result<Extent, Error> {
        Ok(match node {
            Node::AlwaysTrue | Node::AlwaysFalse => Extent::Whole,
            Node::And(children) | Node::Or(children) => self.least(children)?,
            // If a condition matches fewer values, its negation matches more.
            Node::Nor(children) => whole_or_nothing(self.least(children)?),
            Node::Not(child) => whole_or_nothing(self.extent(child)?),
            Node::Expr(condition) => self.extent_of_expression(condition),
            Node::Text(_) | Node::Schema(_) | Node::Near { .. } => Extent::Nothing,
            leaf => match leaf.path().and_then(|path| self.difference(path)) {
                Some(difference) => self.extent_of_leaf(leaf, difference)?,
                None => Extent::Nothing,
            },
        })
    }

    /// Returns the least extent of the conditions.
    fn least(&self, conditions: &[Node]) -> Result<Extent, Error> {
        let mut least = Extent::Whole;
        for condition in conditions {
            least = least.min(self.extent(condition)?);
            if least == Extent::Nothing {
                break;
            }
        }
        Ok(least)
    }

    fn difference(&self, path: &Path) -> Option<ValueDifference> {
        let lineage = (self.lineage)(path)?;
        if lineage.path != *path {
            self.is_rewritten.set(true);
        }
        Some(lineage.difference)
    }

    fn extent_of_expression(&self, condition: &ExprCondition) -> Extent {
        if condition.redefines_current() {
            return Extent::Nothing;
        }
        let read = condition.expression.dependencies();
        let is_same = |path: &String| {
            let difference = self.difference(&Path::parse(path));
            difference.is_some_and(reads_same_value)
        };
        if !read.whole && !read.random && read.paths.iter().all(is_same) {
            Extent::Whole
        } else {
            Extent::Nothing
        }
    }

    fn extent_of_leaf(&self, leaf: &Node, difference: ValueDifference) -> Result<Extent, Error> {
        let accepts_missing = accepts(leaf, None)?;
        let is_lossy = (difference.may_be_missing && accepts_missing)
            || (difference.is_null_for_missing
                && accepts_missing != accepts(leaf, Some(ValueRef::Null))?)
            || (difference.is_equal_only && !self.treats_equal_values_alike(leaf))
            || (difference.is_gathered && !tests_single_values(leaf));
        Ok(if is_lossy {
            Extent::Nothing
        } else if difference.may_lose_values || difference.is_gathered {
            Extent::Part
        } else {
            Extent::Whole
        })
    }

    /// Returns `true` if the condition gives the same result for values that compare equal: for
    /// numbers of different types, and for strings that are equal under a collation.
    fn treats_equal_values_alike(&self, node: &Node) -> bool {
        match node {
            Node::Compare { .. } | Node::Size { .. } => true,
            Node::In { regexes, .. } => !self.is_collated || regexes.iter().next().is_none(),
            Node::Regex { .. } => !self.is_collated,
            Node::Exists { .. } | Node::AlwaysTrue | Node::AlwaysFalse => true,
            Node::And(_)
            | Node::Or(_)
            | Node::Nor(_)
            | Node::Not(_)
            | Node::ElemMatchObject { .. }
            | Node::ElemMatchValue { .. } => {
                let mut children = node.children().iter();
                children.all(|child| self.treats_equal_values_alike(child))
            }
            _ => false,
        }
    }
}

fn whole_or_nothing(extent: Extent) -> Extent {
    match extent {
        Extent::Whole => Extent::Whole,
        _ => Extent::Nothing,
    }
}

/// Returns `true` if an expression reads the same value at both paths. A value that may be missing
/// is missing at both paths. Values of several documents in an array are collected in the same way
/// when an expression reads the input path.
fn reads_same_value(difference: ValueDifference) -> bool {
    let is_other = difference.differs_in_expressions
        || difference.may_lose_values
        || difference.is_equal_only
        || difference.is_null_for_missing;
    !is_other
}

/// Returns `true` if a condition on one path matches this value. `None` is a missing value.
fn accepts(leaf: &Node, value: Option<ValueRef<'_>>) -> Result<bool, Error> {
    let subject = match value {
        Some(value) => Subject::Element(value),
        None => Subject::Named(None),
    };
    matching::matches(leaf, subject, &mut Trace::disabled(None)).map_err(|error| *error)
}

/// Returns `true` if only values that are not arrays fulfil the condition, and no array as a whole.
fn tests_single_values(leaf: &Node) -> bool {
    let is_one = |value: &Value| {
        let type_of = value.as_ref().type_of();
        !matches!(
            type_of,
            Type::Array | Type::MinKey | Type::MaxKey | Type::Undefined
        )
    };
    match leaf {
        Node::Compare { value, .. } => is_one(value),
        Node::In { values, .. } => values.iter().all(is_one),
        Node::Regex { .. } | Node::Mod { .. } | Node::Bits { .. } => true,
        Node::Type { types, .. } => !types.contains(Type::Array),
        _ => false,
    }
}

/// Returns the query document with the paths as before the stage, or `None` if it cannot be
/// rewritten.
fn rewritten(document: Document<'_>, lineage: LineageOf<'_>) -> Option<DocumentBuf> {
    let conditions = document.iter().map(|(name, value)| {
        let mut one = DocumentBuf::new();
        let (name, value) = rewritten_condition(name, value, lineage)?;
        one.push(&name, value);
        Some(one)
    });
    let conditions: Vec<DocumentBuf> = conditions.collect::<Option<_>>()?;
    let (mut joined, mut names) = (DocumentBuf::new(), BTreeSet::new());
    for (name, value) in conditions.iter().flat_map(DocumentBuf::iter) {
        // Two paths may have the same path before the stage.
        if !names.insert(name) {
            let list: ArrayBuf = conditions.into_iter().map(Value::Document).collect();
            let mut all = DocumentBuf::new();
            all.push("$and", list);
            return Some(all);
        }
        joined.push(name, value.to_value());
    }
    Some(joined)
}

fn rewritten_condition(
    name: &str,
    value: ValueRef<'_>,
    lineage: LineageOf<'_>,
) -> Option<(String, Value)> {
    match name {
        "$and" | "$or" | "$nor" => {
            let list = value.as_array()?.iter();
            let rewritten =
                list.map(|one| rewritten(one.as_document()?, lineage).map(Value::Document));
            let rewritten: ArrayBuf = rewritten.collect::<Option<_>>()?;
            Some((name.to_owned(), Value::Array(rewritten)))
        }
        "$expr" => Some((name.to_owned(), rewritten_expression(value, lineage)?)),
        "$comment" | "$alwaysTrue" | "$alwaysFalse" => Some((name.to_owned(), value.to_value())),
        name if name.starts_with('$') => None,
        path => Some((
            lineage(&Path::parse(path))?.path.to_string(),
            value.to_value(),
        )),
    }
}

/// Operators whose operands are expressions only, and which fail for no operand.
const INFALLIBLE_OPERATORS: [&str; 10] = [
    "$and", "$cmp", "$eq", "$gt", "$gte", "$lt", "$lte", "$ne", "$not", "$or",
];

/// Returns `true` if a filter may fail for a document that an earlier condition would exclude.
pub fn may_fail(document: Document<'_>) -> bool {
    document.iter().any(|(name, value)| match (name, value) {
        ("$expr", value) => {
            rewritten_expression(value, &|path| Some(FieldLineage::unchanged(path))).is_none()
        }
        ("$and" | "$or" | "$nor", ValueRef::Array(list)) => {
            let mut filters = list.iter().filter_map(ValueRef::as_document);
            filters.any(may_fail)
        }
        _ => false,
    })
}

/// Rewrites an expression that consists of comparisons only.
fn rewritten_expression(value: ValueRef<'_>, lineage: LineageOf<'_>) -> Option<Value> {
    match value {
        ValueRef::String(text) if text.starts_with('$') => rewritten_reference(text, lineage),
        ValueRef::Array(list) => {
            let rewritten = list.iter().map(|one| rewritten_expression(one, lineage));
            Some(Value::Array(rewritten.collect::<Option<ArrayBuf>>()?))
        }
        ValueRef::Document(document) => {
            let (name, operand) = document.first().filter(|_| document.count() == 1)?;
            let operand = match name {
                "$literal" => operand.to_value(),
                name if INFALLIBLE_OPERATORS.contains(&name) => {
                    rewritten_expression(operand, lineage)?
                }
                _ => return None,
            };
            let mut rewritten = DocumentBuf::new();
            rewritten.push(name, operand);
            Some(Value::Document(rewritten))
        }
        constant => Some(constant.to_value()),
    }
}

fn rewritten_reference(text: &str, lineage: LineageOf<'_>) -> Option<Value> {
    let path = match text.strip_prefix("$$") {
        None => text.strip_prefix('$')?,
        Some(variable) => {
            let of_document = ["ROOT.", "CURRENT."];
            let mut of_document = of_document.iter();
            match of_document.find_map(|name| variable.strip_prefix(name)) {
                Some(path) => path,
                // The operators here define no variables, so it is a variable of the command.
                None => return Some(text.into()),
            }
        }
    };
    let rewritten = lineage(&Path::parse(path))?.path;
    Some(format!("${rewritten}").into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_document::doc;

    use super::*;
    use crate::expression::Scope;
    use windrow_interrupt::Interrupted;

    use crate::interrupt::{UNITS_PER_CHECK, count_work, with_interrupt};
    use crate::reshape::Reshape;

    #[track_caller]
    fn check(project: DocumentBuf, filter: DocumentBuf, expected: FilterPushdown) {
        let specification = ValueRef::Document(project.as_document());
        let project = Reshape::parse_project(specification, &Scope::new()).unwrap();
        let parsed = Filter::parse(filter.as_document()).unwrap();
        let pushdown = parsed.pushdown(filter.as_document(), &|path| project.lineage(path));
        assert_eq!(pushdown, Ok(expected), "{filter}");
    }

    /// A condition whose evaluation failed used to count as one that does not match, so that an
    /// interrupt or a bug changed which part of the filter was moved.
    #[test]
    fn an_error_of_a_sample_evaluation_is_returned() {
        let specification = doc! { "x": "$a" };
        let specification = ValueRef::Document(specification.as_document());
        let project = Reshape::parse_project(specification, &Scope::new()).unwrap();
        let filter = doc! { "x": { "$geoWithin": { "$center": [[0, 0], 1] } } };
        let parsed = Filter::parse(filter.as_document()).unwrap();
        let pushdown = || parsed.pushdown(filter.as_document(), &|path| project.lineage(path));
        // The first call resets the count, so that the next unit of work calls the interrupt.
        count_work(UNITS_PER_CHECK).unwrap();
        count_work(UNITS_PER_CHECK - 1).unwrap();
        let reason = || Interrupted::with_code(50, "time is over");
        let stopped = with_interrupt(Arc::new(move || Err(reason())), pushdown);
        assert_eq!(stopped, Err(reason().into()));
    }

    #[test]
    fn conditions_on_renamed_fields_move() {
        let project = || doc! { "x": "$a", "y": "$$ROOT.b", "all": "$$ROOT", "c": 1 };
        let whole = |filter, expected| check(project(), filter, FilterPushdown::Whole(expected));
        whole(
            doc! { "x": { "$exists": false } },
            doc! { "a": { "$exists": false } },
        );
        whole(
            doc! { "x.0.z": { "$size": 1 } },
            doc! { "a.0.z": { "$size": 1 } },
        );
        whole(doc! { "all.x.y": 1, "c.d": 2 }, doc! { "x.y": 1, "c.d": 2 });
        whole(
            doc! { "x": 1, "all.a": 2 },
            doc! { "$and": [{ "a": 1 }, { "a": 2 }] },
        );
        whole(
            doc! { "$nor": [{ "x": 1, "y": [2] }, { "_id": 3 }] },
            doc! { "$nor": [{ "a": 1, "b": [2] }, { "_id": 3 }] },
        );
        whole(
            doc! { "$expr": { "$gt": ["$x.z", { "$literal": "$x" }] } },
            doc! { "$expr": { "$gt": ["$a.z", { "$literal": "$x" }] } },
        );
        let nothing = |filter| check(project(), filter, FilterPushdown::Nothing);
        nothing(doc! { "a": 1 });
        nothing(doc! { "$or": [{ "x": 1 }, { "a": 1 }] });
        nothing(doc! { "all": { "a": 1 } });
        nothing(doc! { "$expr": { "$gt": [{ "$size": "$x" }, 1] } });
        nothing(doc! { "$jsonSchema": { "required": ["x"] } });
    }

    #[test]
    fn conditions_that_arrays_may_change_stay() {
        let project = || doc! { "x": "$a.b", "p.q": "$a", "p.r": 1 };
        let part = |filter, expected| check(project(), filter, FilterPushdown::Part(expected));
        part(doc! { "x": { "$gt": 1 } }, doc! { "a.b": { "$gt": 1 } });
        part(
            doc! { "x.c": { "$in": [1, null] } },
            doc! { "a.b.c": { "$in": [1, null] } },
        );
        part(doc! { "p.q": { "$size": 1 } }, doc! { "a": { "$size": 1 } });
        let nothing = |filter| check(project(), filter, FilterPushdown::Nothing);
        nothing(doc! { "x": [1] });
        nothing(doc! { "x": { "$ne": 1 } });
        nothing(doc! { "x": { "$exists": true } });
        nothing(doc! { "x": { "$lt": (Value::MaxKey) } });
        nothing(doc! { "x.0": 1 });
        nothing(doc! { "p.q": { "$not": { "$gt": 1 } } });
        nothing(doc! { "p.0": 1 });
        nothing(doc! { "p.r": null });
        let same = |filter: DocumentBuf| check(project(), filter, FilterPushdown::Same);
        same(doc! { "p.r": { "$ne": 1 } });
        same(doc! { "p.r": { "$exists": true } });
    }
}
