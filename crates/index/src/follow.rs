//! Following a path through documents up to its end or an array.

use windrow_document::path::{Component, Path};
use windrow_document::{Array, ValueRef};
use windrow_mql::Error;

/// How far a field's path has been followed.
#[derive(Clone, Copy)]
pub(crate) enum State<'a> {
    /// At this value, with the path's parts from that number on to go.
    At(ValueRef<'a>, usize),
    /// At the end: the value to be indexed.
    Done(ValueRef<'a>),
    Missing,
}

/// What a number in a path that could be a place or a name is refused with.
const AMBIGUOUS: i32 = 16_746;

/// Follows a path through documents, and into arrays by number, up to its end or an array. An array that
/// the path ends at by its place in another is a value, as it is to a filter and to a sort, unless it is
/// empty: filters look for that as they do for any empty array. Error 16746 for a number that is a place in
/// an array and a name in its documents.
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

/// The element that a numeric part of a path names.
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

/// What a field that met an array sees of one element: arrays within arrays are values at the end
/// of a path, and nothing in the middle of it.
pub(crate) fn of_element<'a>(state: &State<'a>, element: ValueRef<'a>, path: &Path) -> State<'a> {
    let State::At(_, part) = state else {
        return *state;
    };
    match element {
        _ if *part >= path.components().len() => State::Done(element),
        ValueRef::Document(_) => State::At(element, *part),
        _ => State::Missing,
    }
}
