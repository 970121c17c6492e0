//! The paths that an update changed, for change events. The values are those in the new version of
//! the document.

use std::fmt;

use windrow_document::{Document, ValueRef};

/// The paths that an update changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Paths with new or changed values.
    pub updated: Vec<FieldPath>,
    /// Paths that were removed.
    pub removed: Vec<FieldPath>,
    /// Arrays that became shorter, with their new lengths.
    pub truncated: Vec<(FieldPath, u32)>,
}

/// The path of a value. The names are stored in one string, separated by null bytes, which names
/// cannot contain. Names with dots are therefore unambiguous.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Box<str>);

const BETWEEN: char = '\0';

impl FieldPath {
    /// A path in the form that [`as_str`](Self::as_str) returns.
    pub fn new(names: &str) -> FieldPath {
        FieldPath(names.into())
    }

    /// The names, separated by null bytes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names on the path.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split(BETWEEN)
    }

    /// The value at the path in a document. Array elements are named by their indexes.
    pub fn value_in<'d>(&self, document: Document<'d>) -> Option<ValueRef<'d>> {
        let root = ValueRef::Document(document);
        self.names().try_fold(root, |value, name| match value {
            ValueRef::Document(document) => document.get(name),
            ValueRef::Array(array) => array.as_document().get(name),
            _ => None,
        })
    }
}

/// Prints the names separated by dots.
impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.replace(BETWEEN, "."))
    }
}

/// Builds a description. It knows the path of the current value.
#[derive(Debug, Default)]
pub(super) struct Trace {
    way: String,
    description: Description,
}

/// A length of the current path, to return to.
#[derive(Clone, Copy)]
pub(super) struct Step(usize);

impl Trace {
    /// Appends a name to the current path. Returns the mark for [`leave`](Self::leave).
    pub fn enter(&mut self, name: &str) -> Step {
        let step = Step(self.way.len());
        if !self.way.is_empty() {
            self.way.push(BETWEEN);
        }
        self.way.push_str(name);
        step
    }

    /// Removes the names from the current path that were appended since the mark.
    pub fn leave(&mut self, step: Step) {
        self.way.truncate(step.0);
    }

    pub fn note_updated(&mut self) {
        let path = FieldPath::new(&self.way);
        self.description.updated.push(path);
    }

    pub fn note_removed(&mut self) {
        let path = FieldPath::new(&self.way);
        self.description.removed.push(path);
    }

    pub fn note_truncated(&mut self, length: usize) {
        let path = FieldPath::new(&self.way);
        self.description.truncated.push((path, length as u32));
    }

    /// The number of recorded paths of each kind, for [`forget_since`](Self::forget_since).
    pub fn noted(&self) -> [usize; 3] {
        let Description {
            updated,
            removed,
            truncated,
        } = &self.description;
        [updated.len(), removed.len(), truncated.len()]
    }

    pub fn forget_since(&mut self, [updated, removed, truncated]: [usize; 3]) {
        self.description.updated.truncate(updated);
        self.description.removed.truncate(removed);
        self.description.truncated.truncate(truncated);
    }

    pub fn finish(self) -> Description {
        self.description
    }
}
