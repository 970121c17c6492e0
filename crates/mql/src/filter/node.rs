//! The tree of a filter and its normal form.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use windrow_document::Value;
use windrow_document::path::Path;
use windrow_geo::{Condition, Near};

use super::bits::Bits;
use super::compare::Comparison;
use super::expr::ExprCondition;
use super::regex::Regex;
use super::regex_list::RegexList;
use super::schema::Schema;
use super::type_set::TypeSet;
use crate::Error;
use crate::expression::Dependencies;
use crate::interrupt::sort_by;

/// A condition. A condition on a path holds if any value at the path fulfils it. Arrays on the path
/// are entered. An array at the end is tested element by element and then as a whole; `Size`,
/// `ElemMatchObject` and `ElemMatchValue` test it as a whole only.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Matches every document.
    AlwaysTrue,
    /// Matches no document.
    AlwaysFalse,
    /// All children match.
    And(Vec<Node>),
    /// At least one child matches.
    Or(Vec<Node>),
    /// No child matches.
    Nor(Vec<Node>),
    /// The child does not match.
    Not(Box<Node>),
    /// The value has the type of the operand (or both are numbers) and compares as the operator
    /// says.
    Compare {
        /// The path.
        path: Path,
        /// The comparison.
        operator: Comparison,
        /// The operand.
        value: Value,
    },
    /// The value equals one of `values` (sorted, distinct) or matches one of `regexes`.
    In {
        /// The path.
        path: Path,
        /// The sorted distinct values.
        values: Vec<Value>,
        /// The regular expressions.
        regexes: RegexList,
    },
    /// The path exists.
    Exists {
        /// The path.
        path: Path,
    },
    /// The value has one of the types.
    Type {
        /// The path.
        path: Path,
        /// The types.
        types: TypeSet,
    },
    /// The value matches a regular expression.
    Regex {
        /// The path.
        path: Path,
        /// The regular expression.
        regex: Regex,
    },
    /// An array with a matching element. The element is a document, or an array that is read as a
    /// document with the indexes as field names.
    ElemMatchObject {
        /// The path.
        path: Path,
        /// The condition on an element.
        condition: Box<Node>,
    },
    /// An array with an element that fulfils all conditions. Their paths are empty.
    ElemMatchValue {
        /// The path.
        path: Path,
        /// The conditions on an element.
        conditions: Vec<Node>,
    },
    /// An array with this many elements.
    Size {
        /// The path.
        path: Path,
        /// The number of elements.
        size: i64,
    },
    /// A number whose integer part leaves this remainder.
    Mod {
        /// The path.
        path: Path,
        /// The divisor, not 0.
        divisor: i64,
        /// The remainder, with the sign of the dividend.
        remainder: i64,
    },
    /// A number or binary data with these bits.
    Bits {
        /// The path.
        path: Path,
        /// The test.
        bits: Bits,
    },
    /// `$geoWithin` or `$geoIntersects`.
    Geo {
        /// The path.
        path: Path,
        /// The geometric condition.
        condition: Arc<Condition>,
    },
    /// `$near` or `$nearSphere`. It is allowed at the top level only. The query engine evaluates
    /// it.
    Near {
        /// The path.
        path: Path,
        /// The point and the distances.
        near: Arc<Near>,
    },
    /// `$text`. The query engine evaluates it.
    Text(TextQuery),
    /// An aggregation expression that evaluates to a true value.
    Expr(ExprCondition),
    /// `$jsonSchema`.
    Schema(Schema),
}

/// The operand of `$text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQuery {
    /// The search string.
    pub search: String,
    /// The language. `None` is the default language of the index.
    pub language: Option<String>,
    /// `true` if upper and lower case are different.
    pub case_sensitive: bool,
    /// `true` if letters with and without diacritics are different.
    pub diacritic_sensitive: bool,
}

impl Node {
    /// Returns the path of a condition on one path. `None` for other nodes.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Node::Compare { path, .. }
            | Node::In { path, .. }
            | Node::Exists { path }
            | Node::Type { path, .. }
            | Node::Regex { path, .. }
            | Node::ElemMatchObject { path, .. }
            | Node::ElemMatchValue { path, .. }
            | Node::Size { path, .. }
            | Node::Mod { path, .. }
            | Node::Geo { path, .. }
            | Node::Near { path, .. }
            | Node::Bits { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the child conditions.
    pub fn children(&self) -> &[Node] {
        match self {
            Node::And(children) | Node::Or(children) | Node::Nor(children) => children,
            Node::ElemMatchValue { conditions, .. } => conditions,
            Node::Not(child) => std::slice::from_ref(child),
            Node::ElemMatchObject { condition, .. } => std::slice::from_ref(condition),
            _ => &[],
        }
    }

    pub(super) fn add_dependencies(&self, dependencies: &mut Dependencies) {
        match self {
            Node::Expr(condition) => dependencies.extend(condition.expression.dependencies()),
            Node::Schema(_) => dependencies.whole = true,
            node => match node.path() {
                Some(path) => dependencies.add(&path.to_string()),
                None => node
                    .children()
                    .iter()
                    .for_each(|child| child.add_dependencies(dependencies)),
            },
        }
    }

    /// Returns the first `$text` of the condition and of the conditions within it.
    pub fn text(&self) -> Option<&TextQuery> {
        match self {
            Node::Text(query) => Some(query),
            _ => self.children().iter().find_map(Node::text),
        }
    }

    /// Returns the `$near` of a conjunction.
    pub(super) fn near(&self) -> Option<(&Path, &Arc<Near>)> {
        match self {
            Node::Near { path, near } => Some((path, near)),
            Node::And(children) => children.iter().find_map(Node::near),
            _ => None,
        }
    }

    pub(super) fn has_schema(&self) -> bool {
        matches!(self, Node::Schema(_)) || self.children().iter().any(Node::has_schema)
    }

    pub(super) fn has_encryption(&self) -> bool {
        matches!(self, Node::Schema(schema) if schema.has_encryption())
            || self.children().iter().any(Node::has_encryption)
    }

    pub(super) fn near_count(&self) -> usize {
        let own = usize::from(matches!(self, Node::Near { .. }));
        own + self.children().iter().map(Node::near_count).sum::<usize>()
    }

    pub(super) fn text_count(&self) -> usize {
        let own = usize::from(matches!(self, Node::Text(_)));
        own + self.children().iter().map(Node::text_count).sum::<usize>()
    }

    /// Returns the tree with the children of every `$and`, `$or` and `$nor` in canonical order.
    pub(super) fn sorted(self) -> Node {
        let sort = |children: Vec<Node>| {
            let mut children: Vec<Node> = children.into_iter().map(Node::sorted).collect();
            children.sort_by(Node::canonical_order);
            children
        };
        match self {
            Node::And(children) => Node::And(sort(children)),
            Node::Or(children) => Node::Or(sort(children)),
            Node::Nor(children) => Node::Nor(sort(children)),
            Node::Not(child) => Node::Not(Box::new(child.sorted())),
            Node::ElemMatchObject { path, condition } => Node::ElemMatchObject {
                path,
                condition: Box::new(condition.sorted()),
            },
            Node::ElemMatchValue { path, conditions } => Node::ElemMatchValue {
                path,
                conditions: sort(conditions),
            },
            leaf => leaf,
        }
    }

    /// Returns the conditions of a conjunction. A single condition is a conjunction of one.
    pub(super) fn conditions(&self) -> &[Node] {
        match self {
            Node::And(children) => children,
            Node::AlwaysTrue => &[],
            one => std::slice::from_ref(one),
        }
    }

    /// Returns the conjunction of the conditions. Nested conjunctions are flattened.
    pub(super) fn and(conditions: Vec<Node>) -> Node {
        let mut flat = Vec::with_capacity(conditions.len());
        for condition in conditions {
            match condition {
                Node::And(children) => flat.extend(children),
                Node::AlwaysTrue => {}
                other => flat.push(other),
            }
        }
        if flat.iter().any(|node| matches!(node, Node::AlwaysFalse)) {
            return Node::AlwaysFalse;
        }
        match <[Node; 1]>::try_from(flat) {
            Ok([only]) => only,
            Err(none) if none.is_empty() => Node::AlwaysTrue,
            Err(several) => Node::And(several),
        }
    }

    /// Returns the disjunction of the conditions. Nested disjunctions are flattened.
    pub(super) fn or(conditions: Vec<Node>) -> Result<Node, Error> {
        let mut flat = Vec::with_capacity(conditions.len());
        for condition in conditions {
            match condition {
                Node::Or(children) => flat.extend(children),
                Node::AlwaysFalse => {}
                other => flat.push(other),
            }
        }
        if flat.iter().any(|node| matches!(node, Node::AlwaysTrue)) {
            return Ok(Node::AlwaysTrue);
        }
        if flat.len() > EQUALITIES_FEW {
            flat = with_lists(flat)?;
        }
        Ok(match <[Node; 1]>::try_from(flat) {
            Ok([only]) => only,
            Err(none) if none.is_empty() => Node::AlwaysFalse,
            Err(several) => Node::Or(several),
        })
    }

    pub(super) fn not(condition: Node) -> Node {
        match condition {
            Node::AlwaysTrue => Node::AlwaysFalse,
            Node::AlwaysFalse => Node::AlwaysTrue,
            other => Node::Not(Box::new(other)),
        }
    }

    /// Returns a condition that one of the values is equal or one of the regular expressions
    /// matches.
    pub(super) fn any_of(
        path: Path,
        mut values: Vec<Value>,
        mut regexes: Vec<Regex>,
    ) -> Result<Node, Error> {
        sort_by(&mut values, |one, other| {
            one.as_ref().compare(other.as_ref())
        })?;
        values.dedup_by(|one, other| one.as_ref().equals(other.as_ref()));
        if values.len() + regexes.len() > 1 {
            return Ok(Node::In {
                path,
                values,
                regexes: RegexList::new(regexes)?,
            });
        }
        Ok(match (values.pop(), regexes.pop()) {
            (Some(value), _) => Node::Compare {
                path,
                operator: Comparison::Eq,
                value,
            },
            (None, Some(regex)) => Node::Regex { path, regex },
            (None, None) => Node::AlwaysFalse,
        })
    }

    /// Returns the path and the value of an equality that a `$in` could express.
    fn listed(&self) -> Option<(&Path, &Value)> {
        match self {
            Node::Compare {
                path,
                operator: Comparison::Eq,
                value,
            } if !matches!(value, Value::Null | Value::Undefined | Value::Regex { .. }) => {
                Some((path, value))
            }
            _ => None,
        }
    }

    /// MongoDB's canonical order: by kind, then by path. It decides which array the positional `$`
    /// refers to (that of the last condition), and the order in explain.
    fn canonical_order(&self, other: &Node) -> Ordering {
        let ranks = self.rank().cmp(&other.rank());
        ranks.then_with(|| {
            let text = |node: &Node| node.path().map(Path::to_string).unwrap_or_default();
            text(self).cmp(&text(other))
        })
    }

    fn rank(&self) -> u8 {
        match self {
            Node::And(_) => 0,
            Node::Or(_) => 1,
            Node::ElemMatchObject { .. } => 2,
            Node::ElemMatchValue { .. } => 3,
            Node::Size { .. } => 4,
            Node::Compare { operator, .. } => match operator {
                Comparison::Eq => 5,
                Comparison::Lte => 6,
                Comparison::Lt => 7,
                Comparison::Gt => 8,
                Comparison::Gte => 9,
            },
            Node::Regex { .. } => 10,
            Node::Mod { .. } => 11,
            Node::Exists { .. } => 12,
            Node::In { .. } => 13,
            Node::Bits { .. } => 14,
            Node::Not(_) => 15,
            Node::Nor(_) => 16,
            Node::Type { .. } => 17,
            Node::Geo { .. } => 18,
            Node::Expr(_) => 19,
            Node::AlwaysFalse => 20,
            Node::AlwaysTrue => 21,
            Node::Near { .. } => 22,
            Node::Text(_) => 23,
            Node::Schema(_) => 24,
        }
    }
}

/// A `$or` with up to this many branches is left as written.
const EQUALITIES_FEW: usize = 16;

/// Replaces the equalities on a path among the branches of a `$or` by one `$in`. A binary search
/// then replaces comparisons with every value.
fn with_lists(branches: Vec<Node>) -> Result<Vec<Node>, Error> {
    let mut lists: BTreeMap<String, (Path, Vec<Value>)> = BTreeMap::new();
    let mut others = Vec::new();
    for branch in branches {
        match branch.listed() {
            Some((path, value)) => {
                let list = lists.entry(path.to_string());
                let (_, values) = list.or_insert_with(|| (path.clone(), Vec::new()));
                values.push(value.clone());
            }
            None => others.push(branch),
        }
    }
    let lists = lists.into_values();
    let lists = lists.map(|(path, values)| Node::any_of(path, values, Vec::new()));
    lists.chain(others.into_iter().map(Ok)).collect()
}
