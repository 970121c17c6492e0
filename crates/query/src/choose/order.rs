//! Whether an index has the order that is asked for.

use windrow_index::KeyKind;
use windrow_mql::sort::{Sort, SortField};

use crate::bounds::{IndexBounds, common_parts, parts_with_arrays};
use crate::source::{Direction, SourceIndex};

/// The direction in which a scan within the bounds gives the order; None where none does. Without an
/// order to be had it is None, too.
pub fn direction(
    index: &SourceIndex,
    bounds: &IndexBounds,
    order: Option<&Sort>,
) -> Option<Direction> {
    let order = order?;
    if order.collation() != index.definition.collation.as_deref() {
        return None;
    }
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
        // Fields that are one point do not disturb the order of those behind them.
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
        if parts_with_arrays(index, number) != 0 && !orders_arrays(index, bounds, number) {
            return None;
        }
        let same = (field.kind == KeyKind::Descending) == *descending;
        let wanted = if same {
            Direction::Forward
        } else {
            Direction::Backward
        };
        // A field that is one point is in either order.
        if intervals.is_one_point() && parts_with_arrays(index, number) == 0 {
            continue;
        }
        if direction.is_some_and(|direction| direction != wanted) {
            return None;
        }
        direction = Some(wanted);
    }
    Some(direction.unwrap_or(Direction::Forward))
}

/// A document with an array sorts by its least or greatest element: the scan meets that one first
/// where no bound hides it. A sparse index leaves out the elements that lack the field, which come first
/// in a sort.
fn orders_arrays(index: &SourceIndex, bounds: &IndexBounds, number: usize) -> bool {
    if index.definition.sparse {
        return false;
    }
    let Some(path) = index.definition.fields.get(number).map(|field| &field.path) else {
        return false;
    };
    // An element that a number names is a whole value to a sort, even where it is an array.
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
    use windrow_document::{DocumentBuf, doc};
    use windrow_index::{Definition, Multikey};
    use windrow_mql::filter::Filter;

    fn check(filter: DocumentBuf, sort: DocumentBuf, arrays: &[u32], expected: Option<Direction>) {
        let specification = doc! { "key": { "a": 1, "b": -1, "c": 1 }, "name": "i" };
        let definition = Arc::new(Definition::parse(specification.as_document()).unwrap());
        let index = SourceIndex {
            number: 0,
            definition,
            multikey: Multikey(arrays.to_vec()),
        };
        let parsed = Filter::parse(filter.as_document()).unwrap();
        let bounds = IndexBounds::of(&index, &predicates(parsed.root(), None));
        let order = Sort::parse(sort.as_document()).unwrap();
        assert_eq!(
            direction(&index, &bounds, Some(&order)),
            expected,
            "{filter} {sort}"
        );
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
