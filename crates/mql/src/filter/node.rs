//! The tree of a filter, and its normal form.

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

/// One condition. A condition on a path holds if any value that the path leads to fulfils it:
/// arrays on the way are entered, an array at the end is tried element by element and then as a
/// whole (`Size` and the `ElemMatch`es: as a whole only).
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    AlwaysTrue,
    AlwaysFalse,
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    Not(Box<Node>),
    /// The value is of the operand's type (or both are numbers) and compares so.
    Compare {
        path: Path,
        operator: Comparison,
        value: Value,
    },
    /// Equal to one of `values` (sorted, no two equal) or matched by one of `regexes`.
    In {
        path: Path,
        values: Vec<Value>,
        regexes: RegexList,
    },
    Exists {
        path: Path,
    },
    Type {
        path: Path,
        types: TypeSet,
    },
    Regex {
        path: Path,
        regex: Regex,
    },
    /// An array that has a document (or an array, as document of positions) which matches.
    ElemMatchObject {
        path: Path,
        condition: Box<Node>,
    },
    /// An array that has an element which fulfils all conditions; their paths are empty.
    ElemMatchValue {
        path: Path,
        conditions: Vec<Node>,
    },
    Size {
        path: Path,
        size: i64,
    },
    Mod {
        path: Path,
        divisor: i64,
        remainder: i64,
    },
    Bits {
        path: Path,
        bits: Bits,
    },
    /// `$geoWithin` or `$geoIntersects`.
    Geo {
        path: Path,
        condition: Arc<Condition>,
    },
    /// `$near` or `$nearSphere`: at the top only, and answered by the query engine.
    Near {
        path: Path,
        near: Arc<Near>,
    },
    Text(TextQuery),
    /// An aggregation expression that is true.
    Expr(ExprCondition),
    /// `$jsonSchema`.
    Schema(Schema),
}

/// `$text`: what is searched for, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQuery {
    pub search: String,
    /// None: the default language of the index.
    pub language: Option<String>,
    pub case_sensitive: bool,
    pub diacritic_sensitive: bool,
}

impl Node {
    /// The path of a condition on one path.
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

    /// The conditions below.
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
            Node::Expr(condition) => dependencies.extend(condition.expression.paths()),
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

    pub(super) fn text(&self) -> Option<&TextQuery> {
        match self {
            Node::Text(query) => Some(query),
            _ => self.children().iter().find_map(Node::text),
        }
    }

    /// The `$near` of the conjunction.
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

    pub(super) fn near_count(&self) -> usize {
        let own = usize::from(matches!(self, Node::Near { .. }));
        own + self.children().iter().map(Node::near_count).sum::<usize>()
    }

    pub(super) fn text_count(&self) -> usize {
        let own = usize::from(matches!(self, Node::Text(_)));
        own + self.children().iter().map(Node::text_count).sum::<usize>()
    }

    /// The same with the children of every `$and`, `$or` and `$nor` in canonical order.
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

    /// The conditions that all have to hold.
    pub(super) fn conditions(&self) -> &[Node] {
        match self {
            Node::And(children) => children,
            Node::AlwaysTrue => &[],
            one => std::slice::from_ref(one),
        }
    }

    /// All of them; conjunctions among them are taken apart.
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

    /// Any of them; disjunctions among them are taken apart.
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

    /// Equal to one of the values or matched by one of the expressions.
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

    /// What it is equal to, where the list of an `$in` could say the same.
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

    /// MongoDB's order of conditions: by kind, then by path. It decides which of several arrays
    /// the positional `$` refers to (the last one's), and how explain prints.
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

/// So few branches of a `$or` are tried one by one.
const EQUALITIES_FEW: usize = 16;

/// The branches of a `$or`, with one `$in` in the place of all equalities on a path: a value is found in
/// its list without comparing all.
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
