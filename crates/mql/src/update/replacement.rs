//! Updates that replace the whole document except its `_id`.

use windrow_document::{Document, DocumentBuf, DocumentBuilder, Timestamp, Value, ValueRef};

use super::document_checks;
use super::modifier::Execution;
use crate::Error;
use crate::memory::depth;

/// A parsed replacement.
#[derive(Debug)]
pub(super) struct Replacement {
    document: DocumentBuf,
    depth: usize,
}

impl Replacement {
    pub fn new(document: Document<'_>) -> Replacement {
        let depth = depth(ValueRef::Document(document));
        Replacement {
            document: document.to_buf(),
            depth,
        }
    }

    pub fn apply(&self, execution: &Execution<'_>) -> Result<Option<DocumentBuf>, Error> {
        document_checks::check_depth(self.depth)?;
        let document = self.document.as_document();
        let dollar = document.iter().find(|(name, _)| name.starts_with('$'));
        if let Some((name, _)) =
            dollar.filter(|_| !execution.is_insert && execution.root != document)
        {
            return Err(document_checks::dollar_name(name));
        }
        let clock = (!execution.keeps_zero_timestamps).then_some(execution.timestamp);
        replace(execution, document, clock)
    }
}

/// Returns the new document. Its `_id` is first, and is the original one if the replacement has
/// none. Zero timestamps at the top level become `clock`, if it is given. Returns `None` if the
/// replacement is byte for byte the original. Fails with 66 if the `_id` differs.
pub(super) fn replace(
    execution: &Execution<'_>,
    replacement: Document<'_>,
    clock: Option<Timestamp>,
) -> Result<Option<DocumentBuf>, Error> {
    if execution.root == replacement {
        return Ok(None);
    }
    let original_id = execution.root.get("_id");
    let mut builder = DocumentBuilder::new();
    if let Some(id) = replacement.get("_id").or(original_id) {
        builder.append("_id", id);
    }
    for (name, value) in replacement.iter().filter(|(name, _)| *name != "_id") {
        builder.append(name, at_clock(value, clock));
    }
    let document = builder.finish();
    check(document.as_document(), original_id)?;
    Ok(Some(document))
}

fn at_clock(value: ValueRef<'_>, clock: Option<Timestamp>) -> ValueRef<'_> {
    match (value, clock) {
        (ValueRef::Timestamp(timestamp), Some(clock)) if timestamp.bits() == 0 => {
            ValueRef::Timestamp(clock)
        }
        _ => value,
    }
}

fn check(document: Document<'_>, original_id: Option<ValueRef<'_>>) -> Result<(), Error> {
    let id = document.get("_id");
    if let Some(id) = id {
        document_checks::check_id(id)?;
    }
    match (id, original_id) {
        (Some(id), Some(original)) if !id.equals(original) => Err(Error::new(
            66,
            format!(
                "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {}",
                Value::from(id)
            ),
        )),
        _ => Ok(()),
    }
}
