//! The conditions of a filter that indexes can answer.

mod expression;

use std::borrow::Cow;
use std::sync::Arc;

use windrow_document::Collation;
use windrow_document::path::Path;
use windrow_index::{Definition, KeyKind};
use windrow_mql::filter::Node;

use super::geo::GeoPredicate;
use super::leaf::{self, Certainty, Extent};
use crate::source::SourceIndex;

/// A condition of the conjunction that an index on its path can answer.
#[derive(Clone, Debug)]
pub struct Predicate {
    /// The path.
    pub path: Path,
    /// The index entries for which the condition can be true.
    pub extent: Extent,
    pub(super) accepts_missing: bool,
    pub(super) is_negated: bool,
    /// The condition cannot be used if the path contains arrays. This is true for the negation of
    /// null: an array element that is not a document has the entry null, but no value at the path.
    /// It is also true for `$gt: MinKey` and `$lt: MaxKey`: an array satisfies them, even if its
    /// only index entry does not.
    pub(super) needs_no_arrays: bool,
    /// The condition compares strings without the collation: a regular expression.
    pub(super) is_of_texts: bool,
    /// The condition comes from `$expr`, which sees more values than a wildcard index contains.
    pub(super) is_of_expression: bool,
    /// The `$elemMatch` operators around the condition.
    pub(super) bindings: Vec<ElementBinding>,
}

/// An `$elemMatch` operator: one array element must satisfy all conditions within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ElementBinding {
    /// The number of path components up to the array.
    pub(super) depth: usize,
    /// The position of the operator among those of the filter.
    number: usize,
}

/// The conditions of a filter, as far as indexes are concerned.
#[derive(Clone, Debug, Default)]
pub struct Predicates {
    /// The conditions that ordinary indexes can answer.
    pub list: Vec<Predicate>,
    /// The conditions that geospatial indexes can answer.
    pub geo_predicates: Vec<GeoPredicate>,
    /// `true` if the list is equivalent to the filter.
    pub is_complete: bool,
    /// The collation of the query. `None`: strings are compared by their bytes.
    pub collation: Option<Arc<Collation>>,
}

/// Returns the conditions of the filter's conjunction.
pub fn predicates(root: &Node, collation: Option<&Arc<Collation>>) -> Predicates {
    let mut found = Predicates {
        list: Vec::new(),
        geo_predicates: Vec::new(),
        is_complete: true,
        collation: collation.cloned(),
    };
    let mut bindings = Bindings {
        open: Vec::new(),
        count: 0,
        apply_to_elements: false,
    };
    found.collect(root, "", &mut bindings);
    found
}

/// The `$elemMatch` operators while a filter is split into conditions.
struct Bindings {
    /// The operators around the current condition, from the outside to the inside.
    open: Vec<ElementBinding>,
    /// The number of operators found so far.
    count: usize,
    /// `true` if a condition without a path applies to the array element. Otherwise it applies to
    /// the field "".
    apply_to_elements: bool,
}

fn join(prefix: &str, path: &Path) -> String {
    let path = path.to_string();
    match (prefix.is_empty(), path.is_empty()) {
        (true, _) => path,
        (_, true) => prefix.to_owned(),
        _ => format!("{prefix}.{path}"),
    }
}

impl Predicates {
    fn collect(&mut self, node: &Node, prefix: &str, bindings: &mut Bindings) {
        match node {
            Node::AlwaysTrue => {}
            Node::And(children) => {
                children
                    .iter()
                    .for_each(|child| self.collect(child, prefix, bindings));
            }
            // For an index, a nested array is a single value.
            Node::ElemMatchObject { path, .. } | Node::ElemMatchValue { path, .. }
                if path.to_string().is_empty() =>
            {
                self.is_complete = false;
            }
            Node::ElemMatchObject { path, condition } => {
                let before = std::mem::replace(&mut bindings.apply_to_elements, false);
                self.within(
                    &join(prefix, path),
                    std::slice::from_ref(condition),
                    bindings,
                );
                bindings.apply_to_elements = before;
            }
            Node::ElemMatchValue { path, conditions } => {
                let before = std::mem::replace(&mut bindings.apply_to_elements, true);
                self.within(&join(prefix, path), conditions, bindings);
                bindings.apply_to_elements = before;
            }
            Node::Geo { path, condition } => {
                self.is_complete = false;
                self.geo_predicates.push(GeoPredicate {
                    path: Path::parse(&join(prefix, path)),
                    condition: condition.clone(),
                });
            }
            Node::Schema(schema) => {
                self.is_complete = false;
                for path in schema.required() {
                    self.leaf(&Node::Exists { path }, prefix, bindings);
                }
            }
            Node::Expr(condition) => {
                self.is_complete = false;
                self.list.extend(expression::predicates(condition));
            }
            leaf => self.leaf(leaf, prefix, bindings),
        }
    }

    /// Collects the conditions of an `$elemMatch`, which one element must satisfy.
    fn within(&mut self, path: &str, conditions: &[Node], bindings: &mut Bindings) {
        self.is_complete = false;
        bindings.count += 1;
        bindings.open.push(ElementBinding {
            depth: path.split('.').count(),
            number: bindings.count,
        });
        conditions
            .iter()
            .for_each(|condition| self.collect(condition, path, bindings));
        bindings.open.pop();
    }

    fn leaf(&mut self, node: &Node, prefix: &str, bindings: &Bindings) {
        let found = leaf::path_of(node).zip(leaf::extent(node));
        let Some((path, mut extent)) = found else {
            self.is_complete = false;
            return;
        };
        if path.to_string().is_empty() && !bindings.apply_to_elements && !prefix.is_empty() {
            self.is_complete = false;
            return;
        }
        let path = Path::parse(&join(prefix, path));
        let has_position = path.components().iter().any(|part| part.index().is_some());
        let is_negated = matches!(node, Node::Not(_));
        let accepts_missing = leaf::accepts_missing(node);
        if has_position {
            // An index has an entry for the element at the position. A filter also looks for a
            // field with the number as its name in the documents of the array. The index has no
            // entry for the result of that.
            if is_negated || accepts_missing || !bindings.open.is_empty() {
                self.is_complete = false;
                return;
            }
            extent.certainty = Certainty::Document;
        }
        self.list.push(Predicate {
            path,
            extent,
            accepts_missing,
            is_negated,
            is_of_texts: leaf::has_regex(node),
            is_of_expression: false,
            needs_no_arrays: matches!(node, Node::Not(child) if leaf::accepts_missing(child))
                || leaf::is_all_but_an_end(node),
            bindings: bindings.open.clone(),
        });
    }
}

impl Predicate {
    /// Returns `true` if the index contains all values that the condition sees.
    pub(super) fn is_known_to(&self, definition: &Definition) -> bool {
        !self.is_of_expression || definition.path_place().is_none()
    }

    /// Returns the extent of the condition in the keys of the index. `None` if the index cannot
    /// answer it.
    pub(super) fn extent_in(
        &self,
        index: &SourceIndex,
        predicates: &Predicates,
        kind: KeyKind,
    ) -> Option<Cow<'_, Extent>> {
        let definition = &index.definition;
        if !self.is_known_to(definition) {
            return None;
        }
        let extent = match (&definition.collation, &predicates.collation) {
            (None, None) => Cow::Borrowed(&self.extent),
            (ours, theirs) if ours == theirs => {
                let collation = ours.as_ref().filter(|_| !self.is_of_texts)?;
                let intervals = &self.extent.intervals;
                Cow::Owned(Extent {
                    intervals: if self.is_negated {
                        intervals.complement().collated(collation).complement()
                    } else {
                        intervals.collated(collation)
                    },
                    certainty: self.extent.certainty,
                })
            }
            _ if self.extent.intervals.is_free_of_strings() => Cow::Borrowed(&self.extent),
            _ => return None,
        };
        match kind {
            KeyKind::Hashed => extent.hashed(definition).map(Cow::Owned),
            _ => Some(extent),
        }
    }
}
