//! `$addToSet`: appends a value, or each value of `{$each: […]}`, if the array has no equal
//! element.

use std::sync::Arc;

use windrow_document::{Array, ArrayBuf, Value, ValueRef};

use super::distinct::Distinct;
use super::modifier::{Change, Execution, FieldTarget, Modifier, NewValue};
use super::push::with_appended;
use crate::Error;

#[derive(Debug)]
struct AddToSet {
    values: Vec<Value>,
}

pub(super) fn parse(_path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    let values = operand_values(operand)?;
    Ok(Arc::new(AddToSet {
        values: values.into_iter().map(ValueRef::to_value).collect(),
    }))
}

fn operand_values(operand: ValueRef<'_>) -> Result<Vec<ValueRef<'_>>, Error> {
    let document = operand.as_document();
    let Some(("$each", each)) = document.and_then(|document| document.first()) else {
        return Ok(vec![operand]);
    };
    let Some(array) = each.as_array() else {
        return Err(Error::type_mismatch(format!(
            "The argument to $each in $addToSet must be an array but it was of type {}",
            each.type_of().name()
        )));
    };
    match document.and_then(|document| document.iter().nth(1)) {
        Some((name, _)) => Err(Error::bad_value(format!(
            "Found unexpected fields after $each in $addToSet: {name}"
        ))),
        None => Ok(array.iter().collect()),
    }
}

impl AddToSet {
    /// Returns the values that equal no element of the array and no earlier value. Each element is
    /// searched in the sorted values, which is fast for many values and for a long array.
    fn added(&self, array: Array<'_>, execution: &Execution<'_>) -> Vec<ValueRef<'_>> {
        let values = Distinct::new(&self.values, execution);
        let mut is_new = vec![true; values.len()];
        for element in array {
            if let Some(is_new) = values.find(element).and_then(|index| is_new.get_mut(index)) {
                *is_new = false;
            }
        }
        values.in_original_order(&is_new)
    }
}

impl Modifier for AddToSet {
    fn change<'a>(
        &'a self,
        current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        let Some(array) = current.as_array() else {
            return Err(Error::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                at.path,
                current.type_of().name()
            )));
        };
        let added = self.added(array, at.execution);
        if added.is_empty() {
            return Ok(Change::Keep);
        }
        Ok(Change::owned(with_appended(array, added.into_iter())))
    }

    fn create<'a>(&'a self, at: &FieldTarget<'a>) -> Result<Option<NewValue<'a>>, Error> {
        let added = self.added(Array::EMPTY, at.execution);
        let created: ArrayBuf = with_appended(Array::EMPTY, added.into_iter());
        Ok(Some(NewValue::owned(Value::Array(created))))
    }
}
