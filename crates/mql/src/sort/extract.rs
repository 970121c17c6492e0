//! The values that a document sorts by: of all the keys that an index over the fields would hold
//! for it, the first in the order asked for.

use windrow_document::path::{Component, Path};
use windrow_document::{Array, Collation, Document, ValueRef, collation};
use windrow_invariant::Bug;

use super::SortField;
use crate::Error;

/// The value at the path where no array is met on the way or at its end: the ordinary case, for
/// which nothing is allocated. A missing value is null.
pub(super) fn without_arrays<'d>(path: &Path, document: Document<'d>) -> Option<ValueRef<'d>> {
    match follow(document, path.components()) {
        (Some(ValueRef::Array(_)), _) => None,
        (value, _) => Some(value.unwrap_or(ValueRef::Null)),
    }
}

/// The values of the fields that are paths, in their order.
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
            states.push(State {
                rest: path.components(),
                value: ValueRef::Null,
                place: None,
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

/// A field on its way.
#[derive(Clone)]
struct State<'s, 'd> {
    /// The path still to go.
    rest: &'s [Component],
    /// The value, once there is no path to go; null until then.
    value: ValueRef<'d>,
    /// Where the path goes on by a place in the array whose elements are being tried.
    place: Option<Place<'s, 'd>>,
}

/// An element that a path names by its place, and how the path goes on from there.
#[derive(Clone, Copy)]
struct Place<'s, 'd> {
    found: Option<ValueRef<'d>>,
    rest: &'s [Component],
    /// The element at the place is itself an array: it is not tried element by element.
    of_array: bool,
}

struct Search<'p, 'd> {
    descending: &'p [bool],
    best: Option<Vec<ValueRef<'d>>>,
    collation: Option<&'p Collation>,
}

impl<'d> Search<'_, 'd> {
    /// Follows the fields through `document`; tries the elements of the array that they meet.
    fn document<'s>(
        &mut self,
        mut states: Vec<State<'s, 'd>>,
        document: Document<'d>,
        expand: bool,
    ) -> Result<(), Error> {
        let mut met: Option<Array<'d>> = None;
        let mut through = vec![false; states.len()];
        let mut expand = expand;
        for (state, through) in states.iter_mut().zip(&mut through) {
            if state.rest.is_empty() {
                continue;
            }
            let (value, of_array) = next(state, document)?;
            match value {
                None => {
                    state.value = ValueRef::Null;
                    state.rest = &[];
                }
                Some(ValueRef::Array(array)) => {
                    let same = met.is_none_or(|met| std::ptr::eq(met.as_bytes(), array.as_bytes()));
                    if !same {
                        return Err(Error::bad_value(
                            "cannot sort with keys that are parallel arrays",
                        ));
                    }
                    met = Some(array);
                    *through = true;
                    expand &= !(of_array && state.rest.is_empty());
                }
                Some(value) => state.value = value,
            }
        }
        match met {
            None => self.offer(&states),
            Some(array) => self.elements(states, &through, array, expand)?,
        }
        Ok(())
    }

    fn elements<'s>(
        &mut self,
        mut states: Vec<State<'s, 'd>>,
        through: &[bool],
        array: Array<'d>,
        expand: bool,
    ) -> Result<(), Error> {
        for state in &mut states {
            state.place = place(state.rest, array);
        }
        // An empty array counts as undefined wherever a path ends at it.
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

    /// Keeps the key if it comes before the best so far.
    fn offer(&mut self, states: &[State<'_, 'd>]) {
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

/// The field's value in the document, or the first array on its way there; and whether it came by a
/// place whose element is an array. The path to go is cut by what was gone.
fn next<'d>(
    state: &mut State<'_, 'd>,
    document: Document<'d>,
) -> Result<(Option<ValueRef<'d>>, bool), Error> {
    let named = state
        .rest
        .first()
        .is_some_and(|first| document.contains(first.name()));
    match state.place.take() {
        Some(_) if named => Err(Error::new(
            16746,
            "Ambiguous field name found in array (do not use numeric field names in embedded \
             elements in an array)",
        )),
        Some(place) => {
            state.rest = place.rest;
            Ok((place.found, place.of_array))
        }
        None => {
            let (value, rest) = follow(document, state.rest);
            state.rest = rest;
            Ok((value, false))
        }
    }
}

/// Through documents to the end of the path or to the first array.
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

/// The element of the array that the path names by its place, if it does.
fn place<'s, 'd>(path: &'s [Component], array: Array<'d>) -> Option<Place<'s, 'd>> {
    let element = array.get(path.first()?.index()?)?;
    let of_array = matches!(element, ValueRef::Array(_));
    let (found, rest) = follow(array.as_document(), path);
    Some(Place {
        found,
        rest,
        of_array,
    })
}
