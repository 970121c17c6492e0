//! `$rename` has two leaves in the tree. The source is removed as by `$unset`. The target gets the
//! value that the source had before the update. No other operator can change either path (error
//! 40), so the value is still current.

use std::sync::Arc;

use windrow_document::{Document, ValueRef};

use super::modifier::{Change, FieldTarget, Modifier, NewValue};
use super::path::{self, Name};
use crate::Error;

#[derive(Debug)]
struct RenameTarget {
    source: Vec<Name>,
}

/// Returns the modifier of the target path. Fails with 2 if the two paths cannot be renamed.
pub(super) fn target(source: &str, target: &str) -> Result<Arc<dyn Modifier>, Error> {
    let (from, to) = (path::parse(source)?, path::parse(target)?);
    let common = from
        .iter()
        .zip(&to)
        .take_while(|(one, other)| one.text() == other.text());
    let common = common.count();
    if common == from.len() && common == to.len() {
        return Err(Error::bad_value(format!(
            "The source and target field for $rename must differ: {source}: \"{target}\""
        )));
    }
    if common == from.len() || common == to.len() {
        return Err(Error::bad_value(format!(
            "The source and target field for $rename must not be on the same path: {source}: \"{target}\""
        )));
    }
    if from.iter().any(Name::is_dynamic) {
        return Err(Error::bad_value(format!(
            "The source field for $rename may not be dynamic: {source}"
        )));
    }
    if to.iter().any(Name::is_dynamic) {
        return Err(Error::bad_value(format!(
            "The destination field for $rename may not be dynamic: {target}"
        )));
    }
    Ok(Arc::new(RenameTarget { source: from }))
}

impl RenameTarget {
    fn value<'a>(&self, at: &FieldTarget<'a>) -> Result<Option<ValueRef<'a>>, Error> {
        let Some(value) = source_value(at.execution.root, &self.source)? else {
            return Ok(None);
        };
        if at.in_array {
            return Err(Error::bad_value(format!(
                "The destination field cannot be an array element, '{}'",
                at.path
            )));
        }
        Ok(Some(value))
    }
}

impl Modifier for RenameTarget {
    fn change<'a>(
        &'a self,
        _current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        Ok(self.value(at)?.map_or(Change::Keep, Change::borrowed))
    }

    fn create<'a>(&'a self, at: &FieldTarget<'a>) -> Result<Option<NewValue<'a>>, Error> {
        Ok(self.value(at)?.map(NewValue::Borrowed))
    }

    fn ignores_blocked_path(&self) -> bool {
        true
    }
}

/// Returns the value at the source, or `None` if it is missing.
///
/// # Errors
///
/// - 28: the path leads through a value without fields.
/// - 2: an array is on the path.
fn source_value<'a>(root: Document<'a>, names: &[Name]) -> Result<Option<ValueRef<'a>>, Error> {
    let mut value = ValueRef::Document(root);
    let mut in_array = false;
    for name in names {
        let inner = match value {
            ValueRef::Document(document) => document.get(name.text()),
            ValueRef::Array(array) => {
                in_array = true;
                let index = name.index().ok_or_else(|| blocked(name, value))?;
                array.get(index)
            }
            _ => return Err(blocked(name, value)),
        };
        let Some(inner) = inner else { return Ok(None) };
        value = inner;
    }
    if in_array {
        return Err(Error::bad_value(format!(
            "The source field cannot be an array element, '{}'",
            path::join(names)
        )));
    }
    Ok(Some(value))
}

fn blocked(name: &Name, value: ValueRef<'_>) -> Error {
    path::not_viable(name.text(), value)
}
