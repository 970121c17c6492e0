//! The requested order: whether an index or the rows of a plan have it.

use windrow_index::KeyKind;
use windrow_mql::sort::{Sort, SortField};

use crate::bounds::{IndexBounds, common_parts, parts_with_arrays};
use crate::find::Find;
use crate::source::{Direction, SourceIndex};

/// Whether the rows of a plan come in the order that the query requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// They come in that order, or no order is requested.
    Requested,
    /// They have to be sorted.
    Other,
}

impl RowOrder {
    /// `is_sorted` is `true` if the rows come in the order of the query's sort.
    pub fn new(find: &Find, is_sorted: bool) -> RowOrder {
        if is_sorted || find.order().is_none() {
            RowOrder::Requested
        } else {
            RowOrder::Other
        }
    }
}

/// Returns the direction in which a scan within the bounds has the order. `None` if neither has, or
/// no order is requested.
pub fn direction(
    index: &SourceIndex,
    bounds: &IndexBounds,
    order: Option<&Sort>,
) -> Option<Direction> {
    let order = order?;
    let compares_alike = order.collation() == index.definition.collation.as_deref();
    let pattern = order.pattern();
    let mut fields = index
        .definition
        .fields
        .iter()
        .zip(&bounds.fields)
        .enumerate()
        .peekable();
    let mut direction = None;
    for part in pattern {
        let SortField::Path { path, descending } = part else {
            return None;
        };
        // A field that is a single point does not affect the order of the later fields.
        while let Some((_, (field, intervals))) = fields.peek()
            && field.path != *path
            && intervals.is_one_point()
        {
            fields.next();
        }
        let (number, (field, intervals)) = fields.next()?;
        if field.path != *path || !field.kind.is_plain() {
            return None;
        }
        let has_arrays = parts_with_arrays(index, number) != 0;
        if has_arrays && !orders_arrays(index, bounds, number) {
            return None;
        }
        // An array may contain strings outside of the bounds.
        if !compares_alike && (has_arrays || !intervals.has_one_order()) {
            return None;
        }
        let same = (field.kind == KeyKind::Descending) == *descending;
        let required = if same {
            Direction::Forward
        } else {
            Direction::Backward
        };
        // A field that is a single point fits both directions.
        if intervals.is_one_point() && parts_with_arrays(index, number) == 0 {
            continue;
        }
        if direction.is_some_and(|direction| direction != required) {
            return None;
        }
        direction = Some(required);
    }
    Some(direction.unwrap_or(Direction::Forward))
}

/// Returns `true` if the scan sorts arrays correctly. A document with an array sorts by its
/// smallest or largest element, and the scan reads the entry of that element first, unless a bound
/// excludes it. A sparse index has no entries for elements without the field, which come first in a
/// sort.
fn orders_arrays(index: &SourceIndex, bounds: &IndexBounds, number: usize) -> bool {
    if index.definition.sparse {
        return false;
    }
    let Some(path) = index.definition.fields.get(number).map(|field| &field.path) else {
        return false;
    };
    // For a sort, an element named by a number is one value, even if it is an array.
    if path.components().iter().any(|part| part.index().is_some()) {
        return false;
    }
    let arrays = parts_with_arrays(index, number);
    let fields = index.definition.fields.iter().zip(&bounds.fields);
    fields.into_iter().all(|(field, intervals)| {
        intervals.is_full() || common_parts(path, &field.path) & arrays == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::predicates;
    use std::sync::Arc;
    use windrow_document::{DocumentBuf, Value, doc};
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

    fn check(filter: DocumentBuf, sort: DocumentBuf, arrays: &[u32], expected: Option<Direction>) {
        let index = index(doc! { "a": 1, "b": -1, "c": 1 }, arrays);
        let parsed = Filter::parse(filter.as_document()).unwrap();
        let bounds = IndexBounds::new(&index, &predicates(parsed.root(), None));
        let order = Sort::parse(sort.as_document()).unwrap();
        assert_eq!(
            direction(&index, &bounds, Some(&order)),
            expected,
            "{filter} {sort}"
        );
    }

    #[test]
    fn non_strings_have_one_order_in_all_collations() {
        let french = doc! { "locale": "fr" };
        let french = windrow_mql::collation::parse(french.as_document()).unwrap();
        let check = |key: DocumentBuf, filter: DocumentBuf, arrays: &[u32], expected: bool| {
            let index = index(key, arrays);
            let parsed = Filter::parse(filter.as_document()).unwrap();
            let bounds = IndexBounds::new(&index, &predicates(parsed.root(), french.as_ref()));
            let order = Sort::parse(doc! { "a": 1 }.as_document()).unwrap();
            let order = order.with_collation(french.clone());
            let found = direction(&index, &bounds, Some(&order));
            assert_eq!(found.is_some(), expected, "{filter}");
        };
        let one = || doc! { "a": 1 };
        let least = Value::DateTime(0);
        check(one(), doc! { "a": { "$gte": 2 } }, &[0], true);
        check(one(), doc! { "a": { "$lt": least.clone() } }, &[0], true);
        check(one(), doc! { "a": { "$gte": 2 } }, &[1], false);
        check(one(), doc! { "a": { "$gte": "x" } }, &[0], false);
        check(
            one(),
            doc! { "a": { "$gte": doc! { "b": "x" } } },
            &[0],
            false,
        );
        check(one(), doc! { "a": { "$ne": 2 } }, &[0], false);
        check(one(), doc! {}, &[0], false);
        let two = || doc! { "b": 1, "a": 1 };
        check(two(), doc! { "a": { "$gte": 2 }, "b": 5 }, &[0, 0], true);
        check(two(), doc! { "a": { "$gte": 2 }, "b": "x" }, &[0, 0], false);
    }

    #[test]
    fn prefixes_and_points_give_order() {
        let (forward, backward) = (Some(Direction::Forward), Some(Direction::Backward));
        let none = &[0, 0, 0];
        check(doc! {}, doc! { "a": 1 }, none, forward);
        check(doc! {}, doc! { "a": -1, "b": 1 }, none, backward);
        check(doc! {}, doc! { "a": 1, "b": 1 }, none, None);
        check(doc! {}, doc! { "b": 1 }, none, None);
        check(doc! { "a": 5 }, doc! { "b": -1 }, none, forward);
        check(doc! { "a": 5 }, doc! { "b": 1, "c": -1 }, none, backward);
        check(doc! { "a": 5 }, doc! { "a": -1, "b": -1 }, none, forward);
        check(doc! { "a": 5, "b": 1 }, doc! { "c": -1 }, none, backward);
        check(doc! { "a": { "$gt": 5 } }, doc! { "b": 1 }, none, None);
        check(doc! { "a": { "$gt": 5 } }, doc! { "a": 1 }, none, forward);
        check(
            doc! { "a": { "$gt": 5 } },
            doc! { "a": 1 },
            &[1, 0, 0],
            None,
        );
        check(doc! {}, doc! { "a": 1 }, &[1, 0, 0], forward);
        check(doc! { "a": 5 }, doc! { "b": -1 }, &[1, 0, 0], forward);
        check(doc! { "a": 5 }, doc! { "a": 1 }, &[1, 0, 0], None);
    }
}
