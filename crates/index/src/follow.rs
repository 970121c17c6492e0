//! Follows a path through documents to its end or to an array.

use windrow_document::path::{Component, Path};
use windrow_document::{Array, ValueRef};
use windrow_mql::Error;

/// The progress along the path of a field.
#[derive(Clone, Copy)]
pub(crate) enum State<'a> {
    /// At this value. The number is the index of the next component of the path.
    At(ValueRef<'a>, usize),
    /// At the end of the path: the value to index.
    Done(ValueRef<'a>),
    /// The document has no value at the path.
    Missing,
}

/// The error code for a number in a path that is both a position and a name. The code is MongoDB's.
const AMBIGUOUS: i32 = 16_746;

/// Follows a path to its end or to the next array that must be expanded.
///
/// A numeric component selects an element of an array. If the path ends at that element and it is
/// an array, it is one value and is not expanded, as in filters and sorts. An empty array is the
/// exception: it is returned as an array, since filters look up all empty arrays alike.
///
/// Fails with code 16746 if a number is a position in an array and also the name of a field in one
/// of the array's documents.
pub(crate) fn follow<'a>(state: State<'a>, path: &Path) -> Result<State<'a>, Error> {
    let State::At(mut value, mut part) = state else {
        return Ok(state);
    };
    loop {
        match (path.components().get(part), value) {
            (None, ValueRef::Array(_)) => return Ok(State::At(value, part)),
            (None, value) => return Ok(State::Done(value)),
            (Some(component), ValueRef::Document(document)) => {
                match document.get(component.name()) {
                    Some(found) => (value, part) = (found, part + 1),
                    None => return Ok(State::Missing),
                }
            }
            (Some(component), ValueRef::Array(array)) => match by_number(component, array)? {
                Some(found) if part + 1 == path.components().len() && !is_empty(found) => {
                    return Ok(State::Done(found));
                }
                Some(found) => (value, part) = (found, part + 1),
                None => return Ok(State::At(value, part)),
            },
            (Some(_), _) => return Ok(State::Missing),
        }
    }
}

fn is_empty(value: ValueRef<'_>) -> bool {
    value.as_array().is_some_and(Array::is_empty)
}

/// Returns the element at the position that a numeric component names. Fails with code 16746 if a
/// document in the array has a field of that name.
fn by_number<'a>(component: &Component, array: Array<'a>) -> Result<Option<ValueRef<'a>>, Error> {
    let Some(found) = component.index().and_then(|index| array.get(index)) else {
        return Ok(None);
    };
    let named = |element: ValueRef<'_>| {
        element
            .as_document()
            .is_some_and(|document| document.contains(component.name()))
    };
    if array.iter().any(named) {
        let message = "Ambiguous field name found in array (do not use numeric field names in \
                       embedded elements in an array)";
        return Err(Error::new(AMBIGUOUS, message));
    }
    Ok(Some(found))
}

/// Returns the state of a field after it entered one element of an array. At the end of the path,
/// every element is a value, arrays included. Before the end, only documents can contain the rest
/// of the path.
pub(crate) fn enter_element<'a>(
    state: &State<'a>,
    element: ValueRef<'a>,
    path: &Path,
) -> State<'a> {
    let State::At(_, part) = state else {
        return *state;
    };
    match element {
        _ if *part >= path.components().len() => State::Done(element),
        ValueRef::Document(_) => State::At(element, *part),
        _ => State::Missing,
    }
}
