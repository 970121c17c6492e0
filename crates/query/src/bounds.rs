//! Index bounds: the part of an index that contains the documents of a filter.
//!
//! [`predicates`] splits the filter's conjunction into conditions. [`IndexBounds::new`] computes
//! the intervals of each field of an index from the conditions on it. If a path contains an array,
//! different elements can satisfy different conditions. Such conditions restrict an index together
//! only if they are in the same `$elemMatch`.
//!
//! Reading order: `arrays`, [`interval`], [`leaf`], [`geo`], [`expression`], this file,
//! [`key_ends`], [`partial`], [`wildcard`], [`range`].

mod arrays;
pub mod expression;
pub mod geo;
pub mod interval;
pub mod key_ends;
pub mod leaf;
pub mod partial;
pub mod range;
pub mod wildcard;

use std::borrow::Cow;
use std::sync::Arc;

use windrow_document::Collation;
use windrow_document::path::Path;
use windrow_index::{Definition, KeyKind};
use windrow_mql::filter::Node;

use crate::source::SourceIndex;
pub use arrays::{common_parts, parts_with_arrays};
use geo::GeoPredicate;
use interval::Intervals;
use leaf::{Certainty, Extent};

/// A condition of the conjunction that an index on its path can answer.
#[derive(Clone, Debug)]
pub struct Predicate {
    /// The path.
    pub path: Path,
    /// The index entries for which the condition can be true.
    pub extent: Extent,
    accepts_missing: bool,
    is_negated: bool,
    /// The condition cannot be used if the path contains arrays. This is true for the negation of
    /// null: an array element that is not a document has the entry null, but no value at the path.
    /// It is also true for `$gt: MinKey` and `$lt: MaxKey`: an array satisfies them, even if its
    /// only index entry does not.
    needs_no_arrays: bool,
    /// The condition compares strings without the collation: a regular expression.
    is_of_texts: bool,
    /// The condition comes from `$expr`, which sees more values than a wildcard index contains.
    is_of_expression: bool,
    /// The `$elemMatch` operators around the condition: for each the number of path components that
    /// it binds to one element, and its number.
    bindings: Vec<(usize, usize)>,
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
        of_elements: false,
    };
    found.collect(root, "", &mut bindings);
    found
}

struct Bindings {
    open: Vec<(usize, usize)>,
    count: usize,
    /// `true` if a condition without a path applies to the array element. Otherwise it applies to
    /// the field "".
    of_elements: bool,
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
                let before = std::mem::replace(&mut bindings.of_elements, false);
                self.within(
                    &join(prefix, path),
                    std::slice::from_ref(condition),
                    bindings,
                );
                bindings.of_elements = before;
            }
            Node::ElemMatchValue { path, conditions } => {
                let before = std::mem::replace(&mut bindings.of_elements, true);
                self.within(&join(prefix, path), conditions, bindings);
                bindings.of_elements = before;
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
        bindings
            .open
            .push((path.split('.').count(), bindings.count));
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
        if path.to_string().is_empty() && !bindings.of_elements && !prefix.is_empty() {
            self.is_complete = false;
            return;
        }
        let path = Path::parse(&join(prefix, path));
        let by_place = path.components().iter().any(|part| part.index().is_some());
        let is_negated = matches!(node, Node::Not(_));
        let accepts_missing = leaf::accepts_missing(node);
        if by_place {
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
    fn is_known_to(&self, definition: &Definition) -> bool {
        !self.is_of_expression || definition.path_place().is_none()
    }

    /// Returns the extent of the condition in the keys of the index. `None` if the index cannot
    /// answer it.
    fn extent_in(
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

/// The part of an index that has to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexBounds {
    /// The intervals of each field of the index.
    pub fields: Vec<Intervals>,
    /// What an entry within the bounds implies for the complete filter.
    pub certainty: Certainty,
}

impl IndexBounds {
    /// Bounds that contain all entries.
    pub fn full(index: &SourceIndex) -> IndexBounds {
        let fields = index
            .definition
            .fields
            .iter()
            .map(|_| Intervals::full())
            .collect();
        IndexBounds {
            fields,
            certainty: Certainty::Document,
        }
    }

    /// Returns the tightest bounds that the conditions allow.
    pub fn new(index: &SourceIndex, predicates: &Predicates) -> IndexBounds {
        let mut chosen: Vec<(usize, &Predicate)> = Vec::new();
        let mut bounds = IndexBounds::full(index);
        for (number, (field, intervals)) in index
            .definition
            .fields
            .iter()
            .zip(&mut bounds.fields)
            .enumerate()
        {
            if field.kind.is_geo() {
                let found = geo::intervals_of(&index.definition, field, &predicates.geo_predicates);
                *intervals = found.unwrap_or_else(Intervals::full);
                continue;
            }
            let has_arrays = parts_with_arrays(index, number) != 0;
            // A sparse index has no entries for the array elements that lack the field. The
            // document is still in the index by its other elements.
            let misses_elements = has_arrays && index.definition.sparse;
            for predicate in on_path(predicates, &field.path) {
                let asks_for_the_missing = predicate.accepts_missing && !predicate.is_negated;
                if has_arrays && predicate.needs_no_arrays
                    || misses_elements && asks_for_the_missing
                {
                    continue;
                }
                let Some(extent) = predicate.extent_in(index, predicates, field.kind) else {
                    continue;
                };
                if chosen
                    .iter()
                    .all(|(other, one)| can_combine(index, number, predicate, *other, one))
                {
                    *intervals = intervals.intersection(&extent.intervals);
                    chosen.push((number, predicate));
                }
            }
        }
        let is_hashed = |number: usize| {
            let field = index.definition.fields.get(number);
            field.is_some_and(|field| field.kind == KeyKind::Hashed)
        };
        let says =
            |(number, predicate): &(usize, &Predicate)| match parts_with_arrays(index, *number) {
                _ if is_hashed(*number) => Certainty::Document,
                0 => predicate.extent.certainty,
                // Array elements that are not documents have the entry null, but no value at a path
                // through them.
                _ if predicate.is_negated || predicate.accepts_missing => Certainty::Document,
                _ if predicate.extent.certainty == Certainty::Exact => Certainty::Exact,
                _ => Certainty::Document,
            };
        if predicates.is_complete && chosen.len() == predicates.list.len() {
            bounds.certainty = chosen.iter().map(says).min().unwrap_or(Certainty::Exact);
        }
        bounds
    }

    /// Returns `true` if the first field is restricted. Otherwise the whole index is read.
    pub fn restricts(&self) -> bool {
        self.fields.first().is_some_and(|first| !first.is_full())
    }

    /// Returns `true` if all entries within the bounds have the same key.
    pub fn is_one_key(&self) -> bool {
        self.fields
            .iter()
            .all(|intervals| matches!(intervals.as_slice(), [one] if one.is_point()))
    }
}

/// Returns the conditions on a path, equalities first.
fn on_path<'p>(predicates: &'p Predicates, path: &Path) -> Vec<&'p Predicate> {
    let mut found: Vec<_> = predicates
        .list
        .iter()
        .filter(|one| one.path == *path)
        .collect();
    found.reverse();
    found.sort_by_key(|one| !one.extent.intervals.are_points());
    found
}

/// Returns `true` if two conditions can restrict the index together. The arrays that their paths
/// share must be bound to one element by an `$elemMatch` around both.
fn can_combine(
    index: &SourceIndex,
    field: usize,
    predicate: &Predicate,
    other_field: usize,
    other: &Predicate,
) -> bool {
    let arrays = parts_with_arrays(index, field) | parts_with_arrays(index, other_field);
    let shared = arrays & common_parts(&predicate.path, &other.path);
    let pinned = predicate
        .bindings
        .iter()
        .filter(|binding| other.bindings.contains(binding))
        .map(|(depth, _)| *depth as u32)
        .max()
        .unwrap_or(0);
    shared.checked_shr(pinned).unwrap_or(0) == 0
}

/// Returns `true` if the index contains every document that can match the filter.
pub fn has_all(index: &SourceIndex, root: &Node, predicates: &Predicates) -> bool {
    let definition = &index.definition;
    if !geo::has_all(definition, &predicates.geo_predicates)
        || !partial::admits_all(definition, root, predicates.collation.as_ref())
    {
        return false;
    }
    let demands = |predicate: &Predicate| {
        let fields = definition.fields.iter().enumerate();
        !predicate.accepts_missing
            && predicate.is_known_to(definition)
            && fields.into_iter().any(|(number, field)| {
                let has_arrays = parts_with_arrays(index, number) != 0;
                // Which documents a wildcard index contains depends only on the path.
                definition
                    .path_place()
                    .is_none_or(|path| number == path + 1)
                    && field.path == predicate.path
                    && !(has_arrays && predicate.needs_no_arrays)
            })
    };
    !definition.sparse || definition.is_geo() || predicates.list.iter().any(demands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use windrow_document::{DocumentBuf, array, doc};
    use windrow_index::Multikey;
    use windrow_mql::filter::Filter;

    fn index(key: DocumentBuf, arrays: &[u32]) -> SourceIndex {
        let specification = doc! { "key": key, "name": "i" };
        let definition = Definition::parse(specification.as_document()).unwrap();
        SourceIndex {
            number: 0,
            definition: Arc::new(definition),
            multikey: Multikey(arrays.to_vec()),
        }
    }

    fn check(index: &SourceIndex, filter: DocumentBuf, expected: &str, exact: bool) {
        let parsed = Filter::parse(filter.as_document()).unwrap();
        let bounds = IndexBounds::new(index, &predicates(parsed.root(), None));
        let field = |intervals: &Intervals| {
            let parts = intervals.as_slice().iter().map(|one| one.print(false));
            parts.collect::<Vec<_>>().join(" ")
        };
        let printed: Vec<String> = bounds.fields.iter().map(field).collect();
        assert_eq!(printed.join(" | "), expected, "{filter}");
        assert_eq!(bounds.certainty == Certainty::Exact, exact, "{filter}");
    }

    #[test]
    fn plain_fields_take_all_conditions() {
        let ab = index(doc! { "a": 1, "b": -1 }, &[0, 0]);
        check(
            &ab,
            doc! { "a": 1, "b": { "$gt": 2 } },
            "[1, 1] | (2, inf.0]",
            true,
        );
        check(
            &ab,
            doc! { "a": { "$gt": 1, "$lt": 5 } },
            "(1, 5) | [MinKey, MaxKey]",
            true,
        );
        check(&ab, doc! { "b": 1 }, "[MinKey, MaxKey] | [1, 1]", true);
        check(
            &ab,
            doc! { "a": 1, "c": 1 },
            "[1, 1] | [MinKey, MaxKey]",
            false,
        );
        check(
            &ab,
            doc! { "a": 1, "$or": [{ "b": 1 }, { "c": 1 }] },
            "[1, 1] | [MinKey, MaxKey]",
            false,
        );
        check(&ab, doc! {}, "[MinKey, MaxKey] | [MinKey, MaxKey]", true);
    }

    #[test]
    fn conditions_on_one_array_are_not_combined() {
        let tags = index(doc! { "t": 1 }, &[1]);
        check(
            &tags,
            doc! { "t": { "$gt": 1, "$lt": 5 } },
            "(1, inf.0]",
            false,
        );
        check(&tags, doc! { "t": { "$gt": 1, "$eq": 3 } }, "[3, 3]", false);
        check(
            &tags,
            doc! { "t": { "$elemMatch": { "$gt": 1, "$lt": 5 } } },
            "(1, 5)",
            false,
        );
        check(&tags, doc! { "t": 3 }, "[3, 3]", true);
        check(
            &tags,
            doc! { "t": { "$ne": 3 } },
            "[MinKey, 3) (3, MaxKey]",
            false,
        );
        let pair = index(doc! { "a.b": 1, "a.c": 1 }, &[1, 1]);
        check(
            &pair,
            doc! { "a.b": 1, "a.c": 2 },
            "[1, 1] | [MinKey, MaxKey]",
            false,
        );
        let one = doc! { "a": { "$elemMatch": { "b": 1, "c": 2 } } };
        check(&pair, one, "[1, 1] | [2, 2]", false);
        let two = doc! { "$and": [
            { "a": { "$elemMatch": { "b": 1 } } }, { "a": { "$elemMatch": { "c": 2 } } }
        ] };
        check(&pair, two, "[1, 1] | [MinKey, MaxKey]", false);
        // Only one of the paths contains the array, as its last component.
        let apart = index(doc! { "a.b": 1, "a.c": 1 }, &[2, 0]);
        check(&apart, doc! { "a.b": 1, "a.c": 2 }, "[1, 1] | [2, 2]", true);
    }

    /// `[MinKey]` is not equal to MinKey, but its index entry is MinKey.
    #[test]
    fn arrays_match_comparisons_with_min_key_and_max_key() {
        use windrow_document::Value::{MaxKey, MinKey};
        let above = || doc! { "a": { "$gt": MinKey } };
        let below = || doc! { "a": { "$lt": MaxKey } };
        let plain = index(doc! { "a": 1 }, &[0]);
        check(&plain, above(), "(MinKey, MaxKey]", true);
        check(&plain, below(), "[MinKey, MaxKey)", true);
        let arrays = index(doc! { "a": 1 }, &[1]);
        check(&arrays, above(), "[MinKey, MaxKey]", false);
        check(&arrays, below(), "[MinKey, MaxKey]", false);
    }

    #[test]
    fn array_positions_restrict_only_what_the_index_contains() {
        let place = index(doc! { "a.0": 1 }, &[0]);
        check(&place, doc! { "a.0": 1 }, "[1, 1]", false);
        // `{a: [{}]}` has null at `a.0`, because of the document in the array, and the entry `{}`.
        for condition in [
            windrow_document::Value::Null,
            doc! { "$ne": 1 }.into(),
            doc! { "$in": [(windrow_document::Value::Null), 1] }.into(),
        ] {
            check(&place, doc! { "a.0": condition }, "[MinKey, MaxKey]", false);
        }
    }

    /// The scan is in the order of the index, as in MongoDB. An update of one document therefore
    /// finds the document with the smallest value first, regardless of the order in the filter.
    #[test]
    fn a_disjunction_on_one_path_is_one_scan() {
        let a = index(doc! { "a": 1 }, &[0]);
        let or = |branches: windrow_document::ArrayBuf| doc! { "$or": branches };
        let points = array![{ "a": 6 }, { "a": 4 }];
        check(&a, or(points), "[4, 4] [6, 6]", true);
        let ranges = array![{ "a": { "$gt": 6 } }, { "a": { "$in": [1, 9] } }];
        check(&a, or(ranges), "[1, 1] (6, inf.0]", true);
        let others = [
            array![{ "a": 6 }, { "b": 4 }],
            array![{ "a": 6 }, { "a": { "$ne": 4 } }],
            array![{ "a": 6 }, { "a": 4, "b": 1 }],
        ];
        for branches in others {
            check(&a, or(branches), "[MinKey, MaxKey]", false);
        }
    }

    /// `{a: [{b: 1}, {}]}` satisfies both conditions and has one entry, for 1.
    #[test]
    fn a_sparse_index_is_not_used_for_elements_without_the_field() {
        let specification = doc! { "key": { "a.b": 1 }, "name": "i", "sparse": true };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let sparse = SourceIndex {
            number: 0,
            definition: Arc::new(definition),
            multikey: Multikey(vec![1]),
        };
        let both = doc! { "$and": [{ "a.b": { "$gte": 1 } }, { "a.b": null }] };
        check(&sparse, both, "[1, inf.0]", false);
    }

    #[test]
    fn sparse_indexes_need_a_condition_that_rejects_missing_fields() {
        let specification = doc! { "key": { "a": 1 }, "name": "i", "sparse": true };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let sparse = SourceIndex {
            number: 0,
            definition: Arc::new(definition),
            multikey: Multikey(vec![0]),
        };
        let cases = [
            (doc! { "a": 1 }, true),
            (doc! { "a": { "$exists": true } }, true),
            (
                doc! { "a": { "$ne": (windrow_document::Value::Null) } },
                true,
            ),
            (doc! { "a": (windrow_document::Value::Null) }, false),
            (doc! { "a": { "$ne": 1 } }, false),
            (doc! { "a": { "$exists": false } }, false),
            (doc! { "b": 1 }, false),
        ];
        for (filter, expected) in cases {
            let parsed = Filter::parse(filter.as_document()).unwrap();
            let found = has_all(&sparse, parsed.root(), &predicates(parsed.root(), None));
            assert_eq!(found, expected, "{filter}");
        }
    }
}
