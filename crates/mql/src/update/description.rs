//! The paths that an update changed, for change events. The values are those in the new version of
//! the document.

use std::fmt;

use windrow_document::{Document, ValueRef};

/// The paths that an update changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateDescription {
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

const SEPARATOR: char = '\0';

impl FieldPath {
    /// Creates a path in the form that [`as_str`](Self::as_str) returns.
    pub fn new(names: &str) -> FieldPath {
        FieldPath(names.into())
    }

    /// Returns the names, separated by null bytes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the names on the path.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split(SEPARATOR)
    }

    /// Returns the value at the path in a document. Array elements are named by their indexes.
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
        formatter.write_str(&self.0.replace(SEPARATOR, "."))
    }
}

/// Builds a description. It knows the path of the current value.
#[derive(Debug, Default)]
pub(super) struct DescriptionBuilder {
    current_path: String,
    description: UpdateDescription,
}

/// A length of the current path, to return to.
#[derive(Clone, Copy)]
pub(super) struct PathMark(usize);

impl DescriptionBuilder {
    /// Appends a name to the current path. Returns the mark for [`leave`](Self::leave).
    pub fn enter(&mut self, name: &str) -> PathMark {
        let mark = PathMark(self.current_path.len());
        if !self.current_path.is_empty() {
            self.current_path.push(SEPARATOR);
        }
        self.current_path.push_str(name);
        mark
    }

    /// Removes the names from the current path that were appended since the mark.
    pub fn leave(&mut self, mark: PathMark) {
        self.current_path.truncate(mark.0);
    }

    pub fn record_updated(&mut self) {
        let path = FieldPath::new(&self.current_path);
        self.description.updated.push(path);
    }

    pub fn record_removed(&mut self) {
        let path = FieldPath::new(&self.current_path);
        self.description.removed.push(path);
    }

    pub fn record_truncated(&mut self, length: usize) {
        let path = FieldPath::new(&self.current_path);
        self.description.truncated.push((path, length as u32));
    }

    /// Returns the number of recorded paths of each kind, for [`truncate_to`](Self::truncate_to).
    pub fn recorded_counts(&self) -> [usize; 3] {
        let UpdateDescription {
            updated,
            removed,
            truncated,
        } = &self.description;
        [updated.len(), removed.len(), truncated.len()]
    }

    pub fn truncate_to(&mut self, [updated, removed, truncated]: [usize; 3]) {
        self.description.updated.truncate(updated);
        self.description.removed.truncate(removed);
        self.description.truncated.truncate(truncated);
    }

    pub fn finish(self) -> UpdateDescription {
        self.description
    }
}
