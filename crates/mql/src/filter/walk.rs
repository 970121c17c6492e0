//! Finds the values at a path in a document, with MongoDB's rules for arrays.
//!
//! ```text
//! a.b   {a: {b: 1}}                → 1
//! a.b   {a: {}}, {a: 5}, {}        → missing
//! a.b   {a: [{b: 1}, {b: 2}, {}]}  → 1, 2, missing   (documents in the array, nothing else)
//! a.b   {a: [[{b: 1}]]}            → nothing          (only one level of arrays is entered)
//! a.0   {a: [5, 6]}                → 5                (a number is an array index)
//! a.0   {a: [{0: 7}]}              → 7, then {0: 7}   (and a field name)
//! a     {a: [1, 2]}                → 1, 2, [1, 2]     (with [`ArrayAtEnd::Elements`])
//! ```

use windrow_document::path::Component;
use windrow_document::{Array, Document, ValueRef};
use windrow_invariant::Bug;

use crate::Error;

/// The result of a condition. The error is boxed so that the result fits in registers, because this
/// is the hot path.
pub(super) type MatchResult = Result<bool, Box<Error>>;

/// A callback: the value (`None` if it is missing) and the index in the outermost array that was
/// entered.
pub(super) trait Visit: FnMut(Option<ValueRef<'_>>, Option<usize>) -> MatchResult {}
impl<F: FnMut(Option<ValueRef<'_>>, Option<usize>) -> MatchResult> Visit for F {}

/// How an array at the end of a path is visited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrayAtEnd {
    /// Element by element, then as a whole.
    Elements,
    /// As a whole only.
    Whole,
}

/// Visits the values at `path` until a visit returns `true`.
pub(super) fn any(
    document: Document<'_>,
    path: &[Component],
    array_at_end: ArrayAtEnd,
    visit: &mut impl Visit,
) -> MatchResult {
    Walk {
        array_at_end,
        visit,
    }
    .document(document, path, None)
}

/// As [`any`], but starts at a value that is not the document.
pub(super) fn any_from(
    value: ValueRef<'_>,
    path: &[Component],
    array_at_end: ArrayAtEnd,
    visit: &mut impl Visit,
) -> MatchResult {
    Walk {
        array_at_end,
        visit,
    }
    .value(value, path, None)
}

struct Walk<'v, V> {
    array_at_end: ArrayAtEnd,
    visit: &'v mut V,
}

impl<V: Visit> Walk<'_, V> {
    #[inline]
    fn document(
        &mut self,
        document: Document<'_>,
        path: &[Component],
        array_index: Option<usize>,
    ) -> MatchResult {
        let Some((first, rest)) = path.split_first() else {
            return (self.visit)(None, array_index);
        };
        match document.get(first.name()) {
            Some(value) => self.value(value, rest, array_index),
            None => (self.visit)(None, array_index),
        }
    }

    fn value(
        &mut self,
        value: ValueRef<'_>,
        rest: &[Component],
        array_index: Option<usize>,
    ) -> MatchResult {
        match value {
            ValueRef::Array(array) if !ends_at_array(rest) => self.array(array, rest, array_index),
            ValueRef::Array(array) if self.array_at_end == ArrayAtEnd::Elements => {
                for (index, element) in array.iter().enumerate() {
                    if (self.visit)(Some(element), array_index.or(Some(index)))? {
                        return Ok(true);
                    }
                }
                (self.visit)(Some(value), array_index)
            }
            value if rest.is_empty() => (self.visit)(Some(value), array_index),
            ValueRef::Document(inner) => self.document(inner, rest, array_index),
            _ => (self.visit)(None, array_index),
        }
    }

    /// Visits the values in an array before the end of the path.
    fn array(
        &mut self,
        array: Array<'_>,
        path: &[Component],
        array_index: Option<usize>,
    ) -> MatchResult {
        let Some((first, rest)) = path.split_first() else {
            return Err(Box::new(
                Bug::new("an array at the end of a path is entered").into(),
            ));
        };
        for (index, element) in array.iter().enumerate() {
            if let ValueRef::Document(inner) = element
                && self.document(inner, path, array_index.or(Some(index)))?
            {
                return Ok(true);
            }
            if first.index() == Some(index) && self.position(element, rest, array_index)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Visits the element that a path component names by its index.
    fn position(
        &mut self,
        element: ValueRef<'_>,
        rest: &[Component],
        array_index: Option<usize>,
    ) -> MatchResult {
        match element {
            element if rest.is_empty() => (self.visit)(Some(element), array_index),
            ValueRef::Document(inner) => self.document(inner, rest, array_index),
            ValueRef::Array(inner) => self.array(inner, rest, array_index),
            _ => Ok(false),
        }
    }
}

/// Returns `true` if an array here is at the end of the path. A trailing dot makes no difference
/// for an array.
fn ends_at_array(rest: &[Component]) -> bool {
    match rest {
        [] => true,
        [last] => last.name().is_empty(),
        _ => false,
    }
}
