//! Following a path through documents up to its end or an array.

use windrow_document::path::{Component, Path};
use windrow_document::{Array, ValueRef};

/// How far a field's path has been followed.
#[derive(Clone, Copy)]
pub(crate) enum State<'a> {
    /// At this value, with the path's parts from that number on to go.
    At(ValueRef<'a>, usize),
    /// At the end: the value to be indexed.
    Done(ValueRef<'a>),
    Missing,
}

/// Follows a path through documents, and into arrays by number, up to its end or an array.
pub(crate) fn follow<'a>(state: State<'a>, path: &Path) -> State<'a> {
    let State::At(mut value, mut part) = state else {
        return state;
    };
    loop {
        match (path.components().get(part), value) {
            (None, ValueRef::Array(_)) => return State::At(value, part),
            (None, value) => return State::Done(value),
            (Some(component), ValueRef::Document(document)) => {
                match document.get(component.name()) {
                    Some(found) => (value, part) = (found, part + 1),
                    None => return State::Missing,
                }
            }
            (Some(component), ValueRef::Array(array)) => match by_number(component, array) {
                Some(found) => (value, part) = (found, part + 1),
                None => return State::At(value, part),
            },
            (Some(_), _) => return State::Missing,
        }
    }
}

/// The element that a numeric part of a path names. Where elements are documents with a field of
/// that name the array is expanded instead.
fn by_number<'a>(component: &Component, array: Array<'a>) -> Option<ValueRef<'a>> {
    let index = component.index()?;
    let named = |element: ValueRef<'_>| {
        element
            .as_document()
            .is_some_and(|document| document.contains(component.name()))
    };
    if array.iter().any(named) {
        None
    } else {
        array.get(index)
    }
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
