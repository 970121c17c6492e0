//! `$pop`: removes the last element (1) or the first one (-1).

use std::sync::Arc;

use windrow_document::{ArrayBuf, ValueRef};

use super::modifier::{Change, FieldTarget, Modifier};
use crate::Error;

#[derive(Debug)]
struct Pop {
    first: bool,
}

pub(super) fn parse(path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    match operand.as_whole() {
        Some(1) => Ok(Arc::new(Pop { first: false })),
        Some(-1) => Ok(Arc::new(Pop { first: true })),
        _ => Err(Error::failed_to_parse(format!(
            "$pop expects 1 or -1, found: {{{path}: {operand}}}"
        ))),
    }
}

impl Modifier for Pop {
    fn change<'a>(
        &'a self,
        current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        let Some(array) = current.as_array() else {
            return Err(Error::type_mismatch(format!(
                "Path '{}' contains an element of non-array type '{}'",
                at.path,
                current.type_of().name()
            )));
        };
        if array.is_empty() {
            return Ok(Change::Keep);
        }
        let count = array.count() - 1;
        let skipped = usize::from(self.first);
        let rest: ArrayBuf = array.iter().skip(skipped).take(count).collect();
        Ok(Change::owned(rest))
    }
}
