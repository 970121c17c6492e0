//! `$min` and `$max`: sets the field to the operand if the operand is less or greater in MongoDB's
//! order.

use std::cmp::Ordering;
use std::sync::Arc;

use windrow_document::{Value, ValueRef};

use super::modifier::{Change, FieldTarget, Modifier, NewValue};
use crate::Error;

#[derive(Debug)]
struct MinMax {
    operand: Value,
    /// The order of the operand relative to the current value at which the operand replaces it.
    replaces: Ordering,
}

pub(super) fn parse_min(_path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    Ok(Arc::new(MinMax {
        operand: operand.to_value(),
        replaces: Ordering::Less,
    }))
}

pub(super) fn parse_max(_path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    Ok(Arc::new(MinMax {
        operand: operand.to_value(),
        replaces: Ordering::Greater,
    }))
}

impl Modifier for MinMax {
    fn change<'a>(
        &'a self,
        current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        let operand = self.operand.as_ref();
        let replaces = at.execution.compare(operand, current) == self.replaces;
        Ok(if replaces {
            Change::borrowed(operand)
        } else {
            Change::Keep
        })
    }

    fn create<'a>(&'a self, _at: &FieldTarget<'a>) -> Result<Option<NewValue<'a>>, Error> {
        Ok(Some(NewValue::Borrowed(self.operand.as_ref())))
    }
}
