//! `$set`, `$setOnInsert` and `$unset`.

use std::sync::Arc;

use windrow_document::{Value, ValueRef};

use super::modifier::{Change, FieldTarget, Modifier, NewValue, same_bytes};
use crate::Error;

#[derive(Debug)]
struct Set {
    value: Value,
}

/// Parses `$set`. The operand is the new value.
pub(super) fn parse_set(_path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    Ok(Arc::new(Set {
        value: operand.to_value(),
    }))
}

impl Modifier for Set {
    fn change<'a>(
        &'a self,
        current: ValueRef<'a>,
        _at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        let value = self.value.as_ref();
        Ok(if same_bytes(current, value) {
            Change::Keep
        } else {
            Change::borrowed(value)
        })
    }

    fn create<'a>(&'a self, _at: &FieldTarget<'a>) -> Result<Option<NewValue<'a>>, Error> {
        Ok(Some(NewValue::Borrowed(self.value.as_ref())))
    }
}

#[derive(Debug)]
pub(super) struct Unset;

/// Parses `$unset`. The operand is ignored.
pub(super) fn parse_unset(_path: &str, _operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    Ok(Arc::new(Unset))
}

impl Modifier for Unset {
    fn change<'a>(
        &'a self,
        _current: ValueRef<'a>,
        _at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        Ok(Change::Remove)
    }

    fn ignores_blocked_path(&self) -> bool {
        true
    }
}
