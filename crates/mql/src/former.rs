//! What a path of a document was in the one that it was made of: a filter behind a step may be asked in
//! front of it where the path leads there to the same.
//!
//! ```text
//! {$project: {x: "$a"}}          x.c is a.c, whatever is asked of it
//! {$project: {x: "$a.b"}}        x is a.b; where a is an array, an array of what its documents have
//! {$project: {p: {q: "$a"}}}     p.q is a; where p is an array already, as often as it has elements
//! {$addFields: {"a.b": 1}}       a.c stays; what was no document in an array a now has no c
//! {$group: {_id: "$a"}}          _id is a value that equals a; null where there is none
//! ```

use windrow_document::path::{Component, Path};

/// Where a path led, and how alike it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Former {
    pub path: Path,
    pub likeness: Likeness,
}

/// What is to be minded of a path that was another one. Nothing of it: both lead to the same values in
/// every document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Likeness {
    /// Nothing may be found where before there was not even a place for it.
    pub may_lack: bool,
    /// Something may be found less often, or not at all. What is found was there.
    pub may_lose: bool,
    /// Values out of several documents of an array may have become an array.
    pub is_gathered: bool,
    /// A value may stand for others that compare equal.
    pub is_equal_only: bool,
    /// Null stands where there was nothing.
    pub is_null_for_missing: bool,
    /// Expressions read another value.
    pub is_other_in_expressions: bool,
}

impl Former {
    /// A path that was always this one.
    pub fn same(path: &Path) -> Former {
        Former {
            path: path.clone(),
            likeness: Likeness::default(),
        }
    }

    /// The path beside what is put at another one. None where it may see of that.
    pub fn beside(path: &Path, other: &Path) -> Option<Former> {
        let name = |path: &Path| path.components().first().cloned();
        // On the way to a field an array gives way to a document.
        (name(path) != name(other)).then(|| Former::same(path))
    }

    /// `rest` of the value that the names lead to as they do in an expression.
    pub(crate) fn of_names(names: &[Box<str>], rest: &[Component]) -> Option<Former> {
        let own: Vec<Component> = names.iter().map(|name| Component::new(name)).collect();
        let first = own.first().or(rest.first())?;
        if first.name().starts_with('$') {
            return None;
        }
        let is_gathered = own.len() > 1;
        let mut behind = own.iter().chain(rest).skip(1);
        // A number is a name in an expression, and counts other elements in what is gathered.
        if is_gathered && behind.any(|part| !is_plain(part)) {
            return None;
        }
        let likeness = Likeness {
            is_gathered,
            is_other_in_expressions: is_gathered && !rest.is_empty(),
            ..Likeness::default()
        };
        let path = own.iter().chain(rest).cloned().collect();
        Some(Former { path, likeness })
    }
}

/// Whether a part of a path is a name and nothing else.
pub(crate) fn is_plain(part: &Component) -> bool {
    part.index().is_none() && !part.name().is_empty()
}
