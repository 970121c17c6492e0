//! The difference between two versions of a document, for updates that only produce the new
//! version: pipelines and `$merge`.

use windrow_document::{Array, Document, ValueRef};

use super::description::{DescriptionBuilder, UpdateDescription};
use super::modifier::same_bytes;

/// Returns the description of the change from one version to the other. If fields change their
/// order, those from the first moved field on count as changed.
pub fn difference(old: Document<'_>, new: Document<'_>) -> UpdateDescription {
    let mut description_builder = DescriptionBuilder::default();
    documents(old, new, &mut description_builder);
    description_builder.finish()
}

/// As [`difference`]. Returns `None` if the new version itself is shorter than the description.
pub(super) fn short_difference(old: Document<'_>, new: Document<'_>) -> Option<UpdateDescription> {
    let mut description_builder = DescriptionBuilder::default();
    let bytes = documents(old, new, &mut description_builder);
    (bytes <= new.as_bytes().len()).then(|| description_builder.finish())
}

/// The bytes of a document or an array without its elements: its length and its end.
const LEVEL_BYTES: usize = 5;
/// The bytes of an element without its name and its value: its type and the end of the name.
const ELEMENT_BYTES: usize = 2;
/// The bytes of a section of the description: removed, changed or added fields.
const SECTION_BYTES: usize = LEVEL_BYTES + ELEMENT_BYTES + 1;

/// The approximate size of the description of a document's fields, in bytes.
#[derive(Default)]
struct Cost {
    removed: usize,
    changed: usize,
    added: usize,
    within: usize,
}

impl Cost {
    fn bytes(&self) -> usize {
        let sections = [self.removed, self.changed, self.added];
        let begun = sections.iter().filter(|bytes| **bytes > 0).count();
        LEVEL_BYTES + sections.iter().sum::<usize>() + begun * SECTION_BYTES + self.within
    }
}

/// Records the differences. Returns the approximate size of the description in bytes.
fn documents(
    old: Document<'_>,
    new: Document<'_>,
    description_builder: &mut DescriptionBuilder,
) -> usize {
    let mut cost = Cost::default();
    let mut before = old.iter().peekable();
    for (name, value) in new {
        let old_value_found = loop {
            match before.peek() {
                None => break None,
                Some((old_name, old_value)) if *old_name == name => break Some(*old_value),
                // The old field was removed, or comes later and is recorded there.
                Some((old_name, _)) => {
                    cost.removed += removed(old_name, new, description_builder);
                    before.next();
                }
            }
        };
        let mark = description_builder.enter(name);
        match old_value_found {
            Some(old_value) => {
                before.next();
                values(name, old_value, value, description_builder, &mut cost);
            }
            None => cost.added += updated(name, value, description_builder),
        }
        description_builder.leave(mark);
    }
    for (name, _) in before {
        cost.removed += removed(name, new, description_builder);
    }
    cost.bytes()
}

fn removed(name: &str, new: Document<'_>, description_builder: &mut DescriptionBuilder) -> usize {
    if new.contains(name) {
        return 0;
    }
    let mark = description_builder.enter(name);
    description_builder.record_removed();
    description_builder.leave(mark);
    ELEMENT_BYTES + name.len() + 1
}

fn updated(name: &str, value: ValueRef<'_>, description_builder: &mut DescriptionBuilder) -> usize {
    description_builder.record_updated();
    ELEMENT_BYTES + name.len() + size(value)
}

fn size(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Document(document) => document.as_bytes().len(),
        ValueRef::Array(array) => array.as_bytes().len(),
        ValueRef::String(text) => text.len() + 5,
        ValueRef::Binary { bytes, .. } => bytes.len() + 5,
        ValueRef::Null | ValueRef::Undefined | ValueRef::MinKey | ValueRef::MaxKey => 0,
        ValueRef::Bool(_) => 1,
        ValueRef::Int32(_) => 4,
        ValueRef::ObjectId(_) => 12,
        ValueRef::Decimal128(_) => 16,
        _ => 8,
    }
}

fn values(
    name: &str,
    old: ValueRef<'_>,
    new: ValueRef<'_>,
    description_builder: &mut DescriptionBuilder,
    cost: &mut Cost,
) {
    if same_bytes(old, new) {
        return;
    }
    let recorded_counts = description_builder.recorded_counts();
    let bytes = match (old, new) {
        (ValueRef::Document(old), ValueRef::Document(new)) => {
            documents(old, new, description_builder)
        }
        (ValueRef::Array(old), ValueRef::Array(new)) => arrays(old, new, description_builder),
        _ => usize::MAX,
    };
    if bytes < size(new) {
        cost.within += ELEMENT_BYTES + 1 + name.len() + bytes;
        return;
    }
    description_builder.truncate_to(recorded_counts);
    cost.changed += updated(name, new, description_builder);
}

fn arrays(old: Array<'_>, new: Array<'_>, description_builder: &mut DescriptionBuilder) -> usize {
    let mut cost = Cost::default();
    let mut before = old.iter();
    for (index, value) in new.iter().enumerate() {
        let name = index.to_string();
        let mark = description_builder.enter(&name);
        match before.next() {
            Some(old) => values(&name, old, value, description_builder, &mut cost),
            None => cost.changed += updated(&name, value, description_builder),
        }
        description_builder.leave(mark);
    }
    // The marker of an array, and possibly its new length.
    let mut bytes = LEVEL_BYTES + 4 + cost.changed + cost.within;
    if before.next().is_some() {
        description_builder.record_truncated(new.count());
        bytes += 7;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    /// `expected` are the paths that are updated, removed and truncated.
    fn check(old: DocumentBuf, new: DocumentBuf, expected: Option<[&[&str]; 3]>) {
        let found = short_difference(old.as_document(), new.as_document());
        let found = found.map(|it| {
            let text = |paths: &[super::super::FieldPath]| -> Vec<String> {
                paths.iter().map(ToString::to_string).collect()
            };
            let truncated = it.truncated.iter();
            let truncated = truncated.map(|(path, length)| format!("{path} {length}"));
            [
                text(&it.updated),
                text(&it.removed),
                truncated.collect::<Vec<String>>(),
            ]
        });
        let expected = expected.map(|lists| {
            lists.map(|list| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
        });
        assert_eq!(found, expected, "{old} {new}");
    }

    #[test]
    fn differences_are_found() {
        let pad = "some text that is longer than what has changed around it";
        check(
            doc! { "_id": 1, "a": 1, "p": pad },
            doc! { "_id": 1, "a": 2, "p": pad },
            Some([&["a"], &[], &[]]),
        );
        check(
            doc! { "_id": 1, "a": 1, "p": pad },
            doc! { "_id": 1, "p": pad, "b": 1 },
            Some([&["b"], &["a"], &[]]),
        );
        check(
            doc! { "o": { "x": 1, "p": pad }, "l": [1, 2, pad] },
            doc! { "o": { "x": 2, "p": pad }, "l": [1, 3, pad, 4] },
            Some([&["o.x", "l.1", "l.3"], &[], &[]]),
        );
        check(
            doc! { "p": pad, "l": [pad, 2, 3] },
            doc! { "p": pad, "l": [pad] },
            Some([&[], &[], &["l 1"]]),
        );
        // The fields have another order.
        check(
            doc! { "p": pad, "a": 1, "b": 2 },
            doc! { "p": pad, "b": 2, "a": 1 },
            Some([&["a"], &[], &[]]),
        );
        // A small change within a small value is recorded as a change of the value.
        check(
            doc! { "p": pad, "o": { "x": 1 } },
            doc! { "p": pad, "o": { "x": 2 } },
            Some([&["o"], &[], &[]]),
        );
        check(doc! { "_id": 1, "p": pad }, doc! { "_id": 1, "r": 1 }, None);
    }
}
