//! Extracts the values by which a document sorts: the first, in the requested order, of all keys
//! that an index over the fields would contain for the document.

use windrow_document::path::{Component, Path};
use windrow_document::{Array, Collation, Document, ValueRef, collation};
use windrow_invariant::Bug;

use super::SortField;
use crate::Error;

/// Returns the value at the path, or `None` if an array is on the path or at its end. This is the
/// common case, and allocates nothing. A missing value is null.
pub(super) fn without_arrays<'d>(path: &Path, document: Document<'d>) -> Option<ValueRef<'d>> {
    match follow(document, path.components()) {
        (Some(ValueRef::Array(_)), _) => None,
        (value, _) => Some(value.unwrap_or(ValueRef::Null)),
    }
}

/// Returns the values of the fields that are paths, in their order.
pub(super) fn values<'d>(
    fields: &[SortField],
    document: Document<'d>,
    collation: Option<&Collation>,
) -> Result<Vec<ValueRef<'d>>, Error> {
    let mut states = Vec::with_capacity(fields.len());
    let mut descending = Vec::with_capacity(fields.len());
    for field in fields {
        if let SortField::Path {
            path,
            descending: down,
        } = field
        {
            states.push(FieldState {
                rest: path.components(),
                value: ValueRef::Null,
                indexed_element: None,
            });
            descending.push(*down);
        }
    }
    let mut search = Search {
        descending: &descending,
        best: None,
        collation,
    };
    search.document(states, document, true)?;
    let best = search.best;
    Ok(best.ok_or_else(|| Bug::new("a document has no sort key"))?)
}

/// The state of one field.
#[derive(Clone)]
struct FieldState<'s, 'd> {
    /// The rest of the path.
    rest: &'s [Component],
    /// The value, once the rest of the path is empty. Null before.
    value: ValueRef<'d>,
    /// The array element that the rest of the path names by its index, while the elements of that
    /// array are visited.
    indexed_element: Option<IndexedElement<'s, 'd>>,
}

/// An array element that a path names by its index, and the rest of the path.
#[derive(Clone, Copy)]
struct IndexedElement<'s, 'd> {
    found: Option<ValueRef<'d>>,
    rest: &'s [Component],
    /// `true` if the element is an array. It is not visited element by element.
    is_array: bool,
}

struct Search<'p, 'd> {
    descending: &'p [bool],
    best: Option<Vec<ValueRef<'d>>>,
    collation: Option<&'p Collation>,
}

impl<'d> Search<'_, 'd> {
    /// Follows the fields through `document`. Visits the elements of the array on their paths.
    fn document<'s>(
        &mut self,
        mut states: Vec<FieldState<'s, 'd>>,
        document: Document<'d>,
        expand: bool,
    ) -> Result<(), Error> {
        let mut shared_array: Option<Array<'d>> = None;
        let mut through = vec![false; states.len()];
        let mut expand = expand;
        for (state, through) in states.iter_mut().zip(&mut through) {
            if state.rest.is_empty() {
                continue;
            }
            let (value, is_array) = next(state, document)?;
            match value {
                None => {
                    state.value = ValueRef::Null;
                    state.rest = &[];
                }
                Some(ValueRef::Array(array)) => {
                    let same = shared_array.is_none_or(|shared_array| {
                        std::ptr::eq(shared_array.as_bytes(), array.as_bytes())
                    });
                    if !same {
                        return Err(Error::bad_value(
                            "cannot sort with keys that are parallel arrays",
                        ));
                    }
                    shared_array = Some(array);
                    *through = true;
                    expand &= !(is_array && state.rest.is_empty());
                }
                Some(value) => state.value = value,
            }
        }
        match shared_array {
            None => self.consider(&states),
            Some(array) => self.elements(states, &through, array, expand)?,
        }
        Ok(())
    }

    fn elements<'s>(
        &mut self,
        mut states: Vec<FieldState<'s, 'd>>,
        through: &[bool],
        array: Array<'d>,
        expand: bool,
    ) -> Result<(), Error> {
        for state in &mut states {
            state.indexed_element = indexed_element(state.rest, array);
        }
        // An empty array counts as undefined if a path ends at it.
        let undefined = array.is_empty().then_some(ValueRef::Undefined);
        let whole = (!expand && undefined.is_none()).then_some(ValueRef::Array(array));
        for element in undefined.into_iter().chain(array.iter()) {
            let mut inner = states.clone();
            for (state, _) in inner
                .iter_mut()
                .zip(through)
                .filter(|(_, through)| **through)
            {
                if state.rest.is_empty() {
                    state.value = whole.unwrap_or(element);
                }
            }
            let document = element.as_document().unwrap_or(Document::EMPTY);
            self.document(inner, document, true)?;
        }
        Ok(())
    }

    /// Keeps the key if it is less than the best one.
    fn consider(&mut self, states: &[FieldState<'_, 'd>]) {
        let better = self.best.as_ref().is_none_or(|best| {
            let pairs = states.iter().zip(best).zip(self.descending);
            let orders = pairs.map(|((state, best), descending)| {
                let order = collation::compare(self.collation, state.value, *best);
                if *descending { order.reverse() } else { order }
            });
            orders
                .into_iter()
                .find(|order| order.is_ne())
                .is_some_and(std::cmp::Ordering::is_lt)
        });
        if better {
            self.best = Some(states.iter().map(|state| state.value).collect());
        }
    }
}

/// Returns the value of the field in the document, or the first array on its path, and `true` if an
/// array index led to an array. Removes the components from the path that were followed.
fn next<'d>(
    state: &mut FieldState<'_, 'd>,
    document: Document<'d>,
) -> Result<(Option<ValueRef<'d>>, bool), Error> {
    let named = state
        .rest
        .first()
        .is_some_and(|first| document.contains(first.name()));
    match state.indexed_element.take() {
        Some(_) if named => Err(Error::new(
            16746,
            "Ambiguous field name found in array (do not use numeric field names in embedded \
             elements in an array)",
        )),
        Some(indexed_element) => {
            state.rest = indexed_element.rest;
            Ok((indexed_element.found, indexed_element.is_array))
        }
        None => {
            let (value, rest) = follow(document, state.rest);
            state.rest = rest;
            Ok((value, false))
        }
    }
}

/// Follows a path through documents to its end or to the first array.
fn follow<'s, 'd>(
    document: Document<'d>,
    path: &'s [Component],
) -> (Option<ValueRef<'d>>, &'s [Component]) {
    let Some((first, rest)) = path.split_first() else {
        return (None, path);
    };
    match document.get(first.name()) {
        Some(ValueRef::Array(array)) => (Some(ValueRef::Array(array)), rest),
        Some(value) if rest.is_empty() => (Some(value), rest),
        Some(ValueRef::Document(inner)) => follow(inner, rest),
        _ => (None, rest),
    }
}

/// Returns the array element that the path names by its index.
fn indexed_element<'s, 'd>(
    path: &'s [Component],
    array: Array<'d>,
) -> Option<IndexedElement<'s, 'd>> {
    let element = array.get(path.first()?.index()?)?;
    let is_array = matches!(element, ValueRef::Array(_));
    let (found, rest) = follow(array.as_document(), path);
    Some(IndexedElement {
        found,
        rest,
        is_array,
    })
}
