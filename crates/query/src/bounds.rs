//! From a filter to the part of an index in which its documents lie.
//!
//! [`predicates`] takes the conjunction apart, [`IndexBounds::of`] gives each field of an index the
//! intervals of the conditions on it. Conditions through the same array may be fulfilled by
//! different elements, so they restrict an index together only where one `$elemMatch` holds them.
//!
//! Reading order: [`interval`], [`leaf`], [`place`], [`expression`], this file, [`ends`], [`partial`], [`wildcard`], [`range`].

pub mod ends;
pub mod expression;
pub mod interval;
pub mod leaf;
pub mod partial;
pub mod place;
pub mod range;
pub mod wildcard;

use std::borrow::Cow;
use std::sync::Arc;

use windrow_document::Collation;
use windrow_document::path::Path;
use windrow_index::{Definition, KeyKind};
use windrow_mql::filter::Node;

use crate::source::SourceIndex;
use interval::Intervals;
use leaf::{Certainty, Extent};
use place::Place;

/// A condition of the conjunction that an index on its path can answer.
#[derive(Clone, Debug)]
pub struct Predicate {
    pub path: Path,
    pub extent: Extent,
    accepts_missing: bool,
    is_negated: bool,
    /// The negation of null: an element that is no document has null in the index, and nothing at the
    /// path. Or above MinKey, or below MaxKey: an array is, of which the index may have the one element
    /// that is not.
    needs_no_arrays: bool,
    /// It looks at strings as such, whatever the collation: a regular expression.
    is_of_texts: bool,
    /// It is of an expression, which sees more values than a wildcard index has.
    is_of_expression: bool,
    /// The `$elemMatch`es around it: how many parts of the path each pins to one element, and its
    /// number.
    pins: Vec<(usize, usize)>,
}

/// What a filter says to indexes.
#[derive(Clone, Debug, Default)]
pub struct Predicates {
    pub list: Vec<Predicate>,
    /// Conditions on places.
    pub places: Vec<Place>,
    /// Whether the list says all that the filter says.
    pub is_complete: bool,
    /// How the query compares strings; None: by their bytes.
    pub collation: Option<Arc<Collation>>,
}

/// The conditions of the filter's conjunction.
pub fn predicates(root: &Node, collation: Option<&Arc<Collation>>) -> Predicates {
    let mut found = Predicates {
        list: Vec::new(),
        places: Vec::new(),
        is_complete: true,
        collation: collation.cloned(),
    };
    let mut pins = Pins {
        open: Vec::new(),
        count: 0,
        of_elements: false,
    };
    found.collect(root, "", &mut pins);
    found
}

struct Pins {
    open: Vec<(usize, usize)>,
    count: usize,
    /// Whether a condition without a path is one on the element; else it is one on the field "".
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
    fn collect(&mut self, node: &Node, prefix: &str, pins: &mut Pins) {
        match node {
            Node::AlwaysTrue => {}
            Node::And(children) => {
                children
                    .iter()
                    .for_each(|child| self.collect(child, prefix, pins));
            }
            // Arrays within arrays are whole values to an index.
            Node::ElemMatchObject { path, .. } | Node::ElemMatchValue { path, .. }
                if path.to_string().is_empty() =>
            {
                self.is_complete = false;
            }
            Node::ElemMatchObject { path, condition } => {
                let before = std::mem::replace(&mut pins.of_elements, false);
                self.within(&join(prefix, path), std::slice::from_ref(condition), pins);
                pins.of_elements = before;
            }
            Node::ElemMatchValue { path, conditions } => {
                let before = std::mem::replace(&mut pins.of_elements, true);
                self.within(&join(prefix, path), conditions, pins);
                pins.of_elements = before;
            }
            Node::Geo { path, condition } => {
                self.is_complete = false;
                self.places.push(Place {
                    path: Path::parse(&join(prefix, path)),
                    condition: condition.clone(),
                });
            }
            Node::Schema(schema) => {
                self.is_complete = false;
                for path in schema.required() {
                    self.leaf(&Node::Exists { path }, prefix, pins);
                }
            }
            Node::Expr(condition) => {
                self.is_complete = false;
                self.list.extend(expression::predicates(condition));
            }
            leaf => self.leaf(leaf, prefix, pins),
        }
    }

    /// The conditions that one element must fulfil.
    fn within(&mut self, path: &str, conditions: &[Node], pins: &mut Pins) {
        self.is_complete = false;
        pins.count += 1;
        pins.open.push((path.split('.').count(), pins.count));
        conditions
            .iter()
            .for_each(|condition| self.collect(condition, path, pins));
        pins.open.pop();
    }

    fn leaf(&mut self, node: &Node, prefix: &str, pins: &Pins) {
        let found = leaf::path_of(node).zip(leaf::extent(node));
        let Some((path, mut extent)) = found else {
            self.is_complete = false;
            return;
        };
        if path.to_string().is_empty() && !pins.of_elements && !prefix.is_empty() {
            self.is_complete = false;
            return;
        }
        let path = Path::parse(&join(prefix, path));
        let by_place = path.components().iter().any(|part| part.index().is_some());
        let is_negated = matches!(node, Node::Not(_));
        let accepts_missing = leaf::accepts_missing(node);
        if by_place {
            // An index has the element at the place. A filter looks for the number as a name in the
            // documents of the array too, mostly in vain: what it finds or does not find there, an index
            // does not hold.
            if is_negated || accepts_missing || !pins.open.is_empty() {
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
            pins: pins.open.clone(),
        });
    }
}

impl Predicate {
    /// Whether an index may have all values that it sees.
    fn is_known_to(&self, definition: &Definition) -> bool {
        !self.is_of_expression || definition.path_place().is_none()
    }

    /// The extent in terms of the index's keys; None where they say nothing about the condition.
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
                    intervals: match self.is_negated {
                        true => intervals.complement().collated(collation).complement(),
                        false => intervals.collated(collation),
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

/// Which entries of an index are to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexBounds {
    /// For every field of the index.
    pub fields: Vec<Intervals>,
    /// What an entry inside says about the whole filter.
    pub certainty: Certainty,
}

impl IndexBounds {
    /// All entries.
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

    /// The tightest that the conditions allow.
    pub fn of(index: &SourceIndex, predicates: &Predicates) -> IndexBounds {
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
                let found = place::intervals_of(&index.definition, field, &predicates.places);
                *intervals = found.unwrap_or_else(Intervals::full);
                continue;
            }
            let has_arrays = parts_with_arrays(index, number) != 0;
            // Of an array's elements a sparse index leaves out those that miss the field, though the
            // document is there by its others.
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
                    .all(|(other, one)| together(index, number, predicate, *other, one))
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
                // An array's elements that are no documents have null in the index, and nothing at
                // a path through them.
                _ if predicate.is_negated || predicate.accepts_missing => Certainty::Document,
                _ if predicate.extent.certainty == Certainty::Exact => Certainty::Exact,
                _ => Certainty::Document,
            };
        if predicates.is_complete && chosen.len() == predicates.list.len() {
            bounds.certainty = chosen.iter().map(says).min().unwrap_or(Certainty::Exact);
        }
        bounds
    }

    /// Whether the first field is restricted: else every entry is read.
    pub fn restricts(&self) -> bool {
        self.fields.first().is_some_and(|first| !first.is_full())
    }

    /// Whether all entries inside have one and the same key.
    pub fn is_one_key(&self) -> bool {
        self.fields
            .iter()
            .all(|intervals| matches!(intervals.as_slice(), [one] if one.is_point()))
    }
}

/// The conditions on a path, equalities first.
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

/// Which parts of a field's path have met arrays, as bits.
pub fn parts_with_arrays(index: &SourceIndex, field: usize) -> u32 {
    index.multikey.0.get(field).copied().unwrap_or_default()
}

/// The parts, as bits, that two fields' paths have in common.
pub fn common_parts(one: &Path, other: &Path) -> u32 {
    let pairs = one.components().iter().zip(other.components());
    let count = pairs.take_while(|(one, other)| one == other).count();
    1u32.checked_shl(count as u32)
        .map_or(u32::MAX, |bit| bit - 1)
}

/// Whether two conditions may restrict the index together: what arrays their paths share must be
/// pinned to one element by one `$elemMatch` around both.
fn together(
    index: &SourceIndex,
    field: usize,
    predicate: &Predicate,
    other_field: usize,
    other: &Predicate,
) -> bool {
    let arrays = parts_with_arrays(index, field) | parts_with_arrays(index, other_field);
    let shared = arrays & common_parts(&predicate.path, &other.path);
    let pinned = predicate
        .pins
        .iter()
        .filter(|pin| other.pins.contains(pin))
        .map(|(depth, _)| *depth as u32)
        .max()
        .unwrap_or(0);
    shared.checked_shr(pinned).unwrap_or(0) == 0
}

/// Whether the index has every document that can fulfil the filter.
pub fn has_all(index: &SourceIndex, root: &Node, predicates: &Predicates) -> bool {
    let definition = &index.definition;
    if !place::has_all(definition, &predicates.places)
        || !partial::follows(definition, root, predicates.collation.as_ref())
    {
        return false;
    }
    let demands = |predicate: &Predicate| {
        let fields = definition.fields.iter().enumerate();
        !predicate.accepts_missing
            && predicate.is_known_to(definition)
            && fields.into_iter().any(|(number, field)| {
                let has_arrays = parts_with_arrays(index, number) != 0;
                // Of a wildcard index only the path decides which documents it has.
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
        let bounds = IndexBounds::of(index, &predicates(parsed.root(), None));
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
    fn conditions_through_one_array_do_not_meet() {
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
        // The array is the last part of one path alone.
        let apart = index(doc! { "a.b": 1, "a.c": 1 }, &[2, 0]);
        check(&apart, doc! { "a.b": 1, "a.c": 2 }, "[1, 1] | [2, 2]", true);
    }

    /// [MinKey] is no MinKey, but the index has MinKey of it.
    #[test]
    fn an_array_lies_between_the_ends_of_all_values() {
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
    fn places_in_arrays_bound_only_what_an_index_has_of_them() {
        let place = index(doc! { "a.0": 1 }, &[0]);
        check(&place, doc! { "a.0": 1 }, "[1, 1]", false);
        // {a: [{}]} has null at a.0, of the document within, and the entry {}.
        for condition in [
            windrow_document::Value::Null,
            doc! { "$ne": 1 }.into(),
            doc! { "$in": [(windrow_document::Value::Null), 1] }.into(),
        ] {
            check(&place, doc! { "a.0": condition }, "[MinKey, MaxKey]", false);
        }
    }

    /// In the order of the index, as MongoDB has it: what an update of one document meets first is the
    /// least of the values, whichever stands first in the filter.
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

    /// {a: [{b: 1}, {}]} fulfils both conditions and has one entry, that of 1.
    #[test]
    fn a_sparse_index_is_not_asked_for_elements_without_the_field() {
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
    fn sparse_indexes_need_a_condition_that_the_missing_fails() {
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
