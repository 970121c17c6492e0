//! The lineage of a field: the path of a stage's input document from which a path of its output
//! comes. A filter on the output can run before the stage if its paths lead to the same values in
//! the input.
//!
//! ```text
//! {$project: {x: "$a"}}          x.c is a.c
//! {$project: {x: "$a.b"}}        x is a.b; if a is an array, an array of the b of its documents
//! {$project: {p: {q: "$a"}}}     p.q is a; if p is an array, once for each of its elements
//! {$addFields: {"a.b": 1}}       a.c stays; scalars in an array a become documents without c
//! {$group: {_id: "$a"}}          _id is a value that equals a; null if a is missing
//! ```

use windrow_document::path::{Component, Path};

/// The input path that an output path comes from, and how their values differ.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldLineage {
    /// The path in the input document.
    pub path: Path,
    /// How the values at the two paths may differ.
    pub difference: ValueDifference,
}

/// How the values at an output path may differ from those at its input path. If no flag is set,
/// both paths lead to the same values in every document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueDifference {
    /// The output path may be missing although the input path has a value.
    pub may_be_missing: bool,
    /// Some values of the input may be absent in the output. Every value of the output is also in
    /// the input.
    pub may_lose_values: bool,
    /// Values of several documents in an array may be collected into one array.
    pub is_gathered: bool,
    /// A value may stand for other values that compare equal to it.
    pub is_equal_only: bool,
    /// A missing value in the input is null in the output.
    pub is_null_for_missing: bool,
    /// Expressions read a different value at the output path.
    pub differs_in_expressions: bool,
}

impl FieldLineage {
    /// Returns the lineage of a path that the stage does not change.
    pub fn unchanged(path: &Path) -> FieldLineage {
        FieldLineage {
            path: path.clone(),
            difference: ValueDifference::default(),
        }
    }

    /// Returns the lineage of `path` in a stage that sets the path `other`, or `None` if `path` may
    /// lead to the value that is set.
    pub fn outside(path: &Path, other: &Path) -> Option<FieldLineage> {
        let name = |path: &Path| path.components().first().cloned();
        // Setting a field replaces an array on the way to it by a document.
        (name(path) != name(other)).then(|| FieldLineage::unchanged(path))
    }

    /// Returns the lineage of `rest` within the value of the field path `names` of an expression.
    pub(crate) fn from_names(names: &[Box<str>], rest: &[Component]) -> Option<FieldLineage> {
        let own: Vec<Component> = names.iter().map(|name| Component::new(name)).collect();
        let first = own.first().or(rest.first())?;
        if first.name().starts_with('$') {
            return None;
        }
        let is_gathered = own.len() > 1;
        let mut later_components = own.iter().chain(rest).skip(1);
        // In an expression a number is a field name. Here it would be a position in the collected
        // array.
        if is_gathered && later_components.any(|part| !is_plain(part)) {
            return None;
        }
        let difference = ValueDifference {
            is_gathered,
            differs_in_expressions: is_gathered && !rest.is_empty(),
            ..ValueDifference::default()
        };
        let path = own.iter().chain(rest).cloned().collect();
        Some(FieldLineage { path, difference })
    }
}

/// Returns `true` if a component of a path can only be a field name: it is not an array index and
/// not empty.
pub(crate) fn is_plain(part: &Component) -> bool {
    part.index().is_none() && !part.name().is_empty()
}
