//! What a `collMod` tells change streams: one event a command, with what was asked for and what was there
//! before.

use windrow_collection::Collection;
use windrow_document::{DocumentBuf, Value};
use windrow_wire::CommandError;

use super::{EXPIRES, of_index};
use crate::arguments::Arguments;
use crate::commands::create;
use crate::errors::OrCommandError;

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

/// An event that is not told yet.
pub struct Modification {
    description: DocumentBuf,
    before: DocumentBuf,
}

impl Modification {
    /// Looks at the collection before it is changed.
    pub fn of(
        collection: &Collection,
        arguments: &Arguments<'_>,
        index: Option<&of_index::Wanted>,
    ) -> Modification {
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
        Modification {
            description,
            before,
        }
    }

    pub fn tell(self, collection: &Collection) -> Result<(), CommandError> {
        collection
            .tell_of_modification(self.description, self.before)
            .or_command_error()
    }
}
