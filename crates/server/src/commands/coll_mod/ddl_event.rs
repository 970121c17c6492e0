//! The change stream event of a `collMod`: one event per command, with the requested changes and
//! the old values.

use windrow_collection::{Collection, ModificationEvent};
use windrow_document::DocumentBuf;

use super::{EXPIRES, index};
use crate::arguments::Arguments;
use crate::commands::create;

/// The arguments that the event repeats, in order. The index comes before them.
const REPEATED: &[&str] = &[
    "validator",
    "validationLevel",
    "validationAction",
    create::IMAGES,
    EXPIRES,
    "cappedSize",
    "cappedMax",
];

/// Returns the event with the old values. It must be called before anything is changed.
pub fn describe(
    collection: &Collection,
    arguments: &Arguments<'_>,
    index: Option<&index::IndexChange>,
) -> ModificationEvent {
    let uuid = collection.uuid().to_value();
    let mut options = DocumentBuf::new();
    options.push("uuid", uuid);
    for (name, value) in collection.options().iter() {
        options.push(name, value);
    }
    let mut description = DocumentBuf::new();
    let mut before = DocumentBuf::new();
    before.push("collectionOptions", options);
    if let Some(index) = index {
        description.push("index", index.described());
        before.push("indexOptions", index.before());
    }
    for name in REPEATED {
        if let Some(value) = arguments.present(name) {
            description.push(name, value);
        }
    }
    ModificationEvent {
        description,
        before,
    }
}
