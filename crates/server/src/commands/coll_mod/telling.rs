//! What a `collMod` tells change streams: one event a command, with what was asked for and what was there
//! before.

use windrow_collection::Collection;
use windrow_document::{DocumentBuf, Value};

use super::{EXPIRES, of_index};
use crate::arguments::Arguments;
use crate::commands::create;

/// What the event repeats of the command as it was given, in its order; the index stands before them.
const REPEATED: &[&str] = &[
    "validator",
    "validationLevel",
    "validationAction",
    create::IMAGES,
    EXPIRES,
    "cappedSize",
    "cappedMax",
];

/// What the event says, and what was there before: asked before anything is changed.
pub fn told(
    collection: &Collection,
    arguments: &Arguments<'_>,
    index: Option<&of_index::Wanted>,
) -> (DocumentBuf, DocumentBuf) {
    let uuid = Value::Binary {
        subtype: 4,
        bytes: collection.uuid().to_vec(),
    };
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
    (description, before)
}
