//! `$min` and `$max`: sets the field to the operand if the operand is less or greater in MongoDB's
//! order.

use std::cmp::Ordering;
use std::sync::Arc;

use windrow_document::{Value, ValueRef};

use super::modifier::{At, Change, Modifier, Put};
use crate::Error;

#[derive(Debug)]
struct Extreme {
    operand: Value,
    /// The order of the operand relative to the current value at which the operand replaces it.
    wins: Ordering,
}

pub(super) fn parse_min(_path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    Ok(Arc::new(Extreme {
        operand: operand.to_value(),
        wins: Ordering::Less,
    }))
}

pub(super) fn parse_max(_path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    Ok(Arc::new(Extreme {
        operand: operand.to_value(),
        wins: Ordering::Greater,
    }))
}

impl Modifier for Extreme {
    fn change<'a>(&'a self, current: ValueRef<'a>, at: &At<'a>) -> Result<Change<'a>, Error> {
        let operand = self.operand.as_ref();
        let wins = at.run.compare(operand, current) == self.wins;
        Ok(if wins {
            Change::borrowed(operand)
        } else {
            Change::Keep
        })
    }

    fn create<'a>(&'a self, _at: &At<'a>) -> Result<Option<Put<'a>>, Error> {
        Ok(Some(Put::Borrowed(self.operand.as_ref())))
    }
}
