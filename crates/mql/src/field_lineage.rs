//! The lineage of a field: which path of a stage's input document a path of its output comes from.
//! A filter on the output can run before the stage if its paths lead to the same values in the input.
//!
//! ```text
//! {$project: {x: "$a"}}          x.c is a.c
//! {$project: {x: "$a.b"}}        x is a.b; if a is an array, an array of the b of its documents
//! {$project: {p: {q: "$a"}}}     p.q is a; if p is an array, once for each of its elements
//! {$addFields: {"a.b": 1}}       a.c stays; elements of an array a that were no documents have no c
//! {$group: {_id: "$a"}}          _id is a value that equals a; null if a is missing
//! ```

use windrow_document::path::{Component, Path};

/// The input path that a path comes from, and how their values differ.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldLineage {
    /// The path in the input document.
    pub path: Path,
    /// How the values at the two paths differ.
    pub likeness: Likeness,
}

/// How the values at a path may differ from those at the input path. With no flag set both paths lead
/// to the same values in every document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Likeness {
    /// The path may be missing where the input path could not exist.
    pub may_lack: bool,
    /// Values may be found less often or not at all. Values that are found are also in the input.
    pub may_lose: bool,
    /// Values from several documents of an array may be gathered in an array.
    pub is_gathered: bool,
    /// A value may represent others that compare equal.
    pub is_equal_only: bool,
    /// A missing value became null.
    pub is_null_for_missing: bool,
    /// Expressions read another value.
    pub is_other_in_expressions: bool,
}

impl FieldLineage {
    /// The lineage of a path that the stage does not change.
    pub fn same(path: &Path) -> FieldLineage {
        FieldLineage {
            path: path.clone(),
            likeness: Likeness::default(),
        }
    }

    /// The lineage of a path in a stage that sets another one. Returns `None` if the path may lead to
    /// the value that is set.
    pub fn beside(path: &Path, other: &Path) -> Option<FieldLineage> {
        let name = |path: &Path| path.components().first().cloned();
        // On the way to a field an array gives way to a document.
        (name(path) != name(other)).then(|| FieldLineage::same(path))
    }

    /// The lineage of `rest` within the value of a field path of an expression.
    pub(crate) fn of_names(names: &[Box<str>], rest: &[Component]) -> Option<FieldLineage> {
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
        Some(FieldLineage { path, likeness })
    }
}

/// Whether a component of a path can only be a name: it is no array index and not empty.
pub(crate) fn is_plain(part: &Component) -> bool {
    part.index().is_none() && !part.name().is_empty()
}
