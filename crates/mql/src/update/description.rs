//! What an update did to a document, as change events tell it: the paths of what changed. The values
//! are those of the new version.

use std::fmt;

use windrow_document::{Document, ValueRef};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    pub updated: Vec<FieldPath>,
    pub removed: Vec<FieldPath>,
    /// Arrays that are shorter now, with their new lengths.
    pub truncated: Vec<(FieldPath, u32)>,
}

/// The path of one value: the names on the way in one string, with NUL, which no name has, between
/// them. So names with dots stay what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Box<str>);

const BETWEEN: char = '\0';

impl FieldPath {
    /// A path as [`as_str`](Self::as_str) gives it.
    pub fn new(names: &str) -> FieldPath {
        FieldPath(names.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split(BETWEEN)
    }

    /// The value that stands there: through documents by name, through arrays by place.
    pub fn value_in<'d>(&self, document: Document<'d>) -> Option<ValueRef<'d>> {
        let root = ValueRef::Document(document);
        self.names().try_fold(root, |value, name| match value {
            ValueRef::Document(document) => document.get(name),
            ValueRef::Array(array) => array.as_document().get(name),
            _ => None,
        })
    }
}

/// With dots between the names.
impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.replace(BETWEEN, "."))
    }
}

/// A description while it is made: the way to the value that is being looked at, and what was found.
#[derive(Debug, Default)]
pub(super) struct Trace {
    way: String,
    description: Description,
}

/// A place on the way, to come back to.
#[derive(Clone, Copy)]
pub(super) struct Step(usize);

impl Trace {
    /// Goes on to what has this name.
    pub fn enter(&mut self, name: &str) -> Step {
        let step = Step(self.way.len());
        if !self.way.is_empty() {
            self.way.push(BETWEEN);
        }
        self.way.push_str(name);
        step
    }

    /// Goes back.
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

    /// How much has been noted, for [`forget_since`](Self::forget_since).
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
