//! Index bounds: the part of an index that contains the documents of a filter.
//!
//! [`predicates`] splits the filter's conjunction into conditions. [`IndexBounds::new`] computes
//! the intervals of each field of an index from the conditions on it. If a path contains an array,
//! different elements can satisfy different conditions. Such conditions restrict an index together
//! only if they are in the same `$elemMatch`.
//!
//! Reading order: `arrays`, [`interval`], [`leaf`], [`geo`], `predicate`, this file,
//! [`key_ends`], [`partial`], [`wildcard`], [`range`].

mod arrays;
pub mod geo;
pub mod interval;
pub mod key_ends;
pub mod leaf;
pub mod partial;
mod predicate;
pub mod range;
pub mod wildcard;

use windrow_document::path::Path;
use windrow_index::KeyKind;
use windrow_mql::filter::Node;

use crate::source::SourceIndex;
pub use arrays::{common_parts, parts_with_arrays};
use interval::Intervals;
use leaf::Certainty;
pub use predicate::{Predicate, Predicates, predicates};

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
        let mut chosen: Vec<ChosenPredicate<'_>> = Vec::new();
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
                let candidate = ChosenPredicate {
                    field: number,
                    predicate,
                };
                if chosen.iter().all(|one| candidate.combines(one, index)) {
                    *intervals = intervals.intersection(&extent.intervals);
                    chosen.push(candidate);
                }
            }
        }
        let is_hashed = |number: usize| {
            let field = index.definition.fields.get(number);
            field.is_some_and(|field| field.kind == KeyKind::Hashed)
        };
        let certainty = |ChosenPredicate { field, predicate }: &ChosenPredicate<'_>| {
            match parts_with_arrays(index, *field) {
                _ if is_hashed(*field) => Certainty::Document,
                0 => predicate.extent.certainty,
                // Array elements that are not documents have the entry null, but no value at a path
                // through them.
                _ if predicate.is_negated || predicate.accepts_missing => Certainty::Document,
                _ if predicate.extent.certainty == Certainty::Exact => Certainty::Exact,
                _ => Certainty::Document,
            }
        };
        if predicates.is_complete && chosen.len() == predicates.list.len() {
            let certainties = chosen.iter().map(certainty);
            bounds.certainty = certainties.min().unwrap_or(Certainty::Exact);
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

/// A condition that restricts a field of an index.
struct ChosenPredicate<'p> {
    /// The position of the field in the index.
    field: usize,
    predicate: &'p Predicate,
}

impl ChosenPredicate<'_> {
    /// Returns `true` if two conditions can restrict the index together. The arrays that their
    /// paths share must be bound to one element by an `$elemMatch` around both.
    fn combines(&self, other: &ChosenPredicate<'_>, index: &SourceIndex) -> bool {
        let (one, two) = (self.predicate, other.predicate);
        let arrays = parts_with_arrays(index, self.field) | parts_with_arrays(index, other.field);
        let shared = arrays & common_parts(&one.path, &two.path);
        let bindings = one.bindings.iter();
        let common = bindings.filter(|binding| two.bindings.contains(binding));
        let bound_parts = common.map(|binding| binding.depth as u32).max();
        shared.checked_shr(bound_parts.unwrap_or(0)).unwrap_or(0) == 0
    }
}

/// Returns `true` if the index contains every document that can match the filter.
pub fn has_all(index: &SourceIndex, root: &Node, predicates: &Predicates) -> bool {
    let definition = &index.definition;
    if !geo::has_all(definition, &predicates.geo_predicates)
        || !partial::admits_all(definition, root, predicates.collation.as_ref())
    {
        return false;
    }
    let requires_entry = |predicate: &Predicate| {
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
    !definition.sparse || definition.is_geo() || predicates.list.iter().any(requires_entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use windrow_document::{DocumentBuf, array, doc};
    use windrow_index::{Definition, Multikey};
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
