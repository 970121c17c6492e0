//! `$bit`: `{and: n}`, `{or: n}`, `{xor: n}` on ints and longs. Several operations are applied in
//! order.

use std::sync::Arc;

use windrow_document::{Value, ValueRef};

use super::modifier::{Change, FieldTarget, Modifier, NewValue};
use crate::Error;

#[derive(Clone, Copy, Debug)]
enum BitOperation {
    And,
    Or,
    Xor,
}

#[derive(Debug)]
struct Bit {
    operations: Vec<(BitOperation, Integer)>,
}

pub(super) fn parse(path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::bad_value(format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: {{and/or/xor: #}}}}}}",
            operand.type_of().name()
        )));
    };
    let mut operations = Vec::new();
    for (name, number) in document {
        let operation = match name {
            "and" => BitOperation::And,
            "or" => BitOperation::Or,
            "xor" => BitOperation::Xor,
            _ => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown operator: {{{path}: {operand}}}"
                )));
            }
        };
        let Some(number) = Integer::new(number) else {
            return Err(Error::bad_value(format!(
                "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{path}: {operand}}}",
                number.type_of().name()
            )));
        };
        operations.push((operation, number));
    }
    if operations.is_empty() {
        return Err(Error::bad_value(format!(
            "You must pass in at least one bitwise operation. The format is: {{$bit: {{field: {{and/or/xor: #}}}}}} for '{path}'"
        )));
    }
    Ok(Arc::new(Bit { operations }))
}

/// An int or a long.
#[derive(Clone, Copy, Debug)]
struct Integer {
    number: i64,
    is_long: bool,
}

impl Integer {
    const ZERO: Integer = Integer {
        number: 0,
        is_long: false,
    };

    fn new(value: ValueRef<'_>) -> Option<Integer> {
        let (number, is_long) = match value {
            ValueRef::Int32(number) => (i64::from(number), false),
            ValueRef::Int64(number) => (number, true),
            _ => return None,
        };
        Some(Integer { number, is_long })
    }
}

impl Bit {
    fn result(&self, start: Integer) -> Value {
        let Integer {
            mut number,
            mut is_long,
        } = start;
        for (operation, operand) in &self.operations {
            let bits = operand.number;
            is_long |= operand.is_long;
            number = match operation {
                BitOperation::And => number & bits,
                BitOperation::Or => number | bits,
                BitOperation::Xor => number ^ bits,
            };
        }
        match i32::try_from(number) {
            Ok(number) if !is_long => Value::Int32(number),
            _ => Value::Int64(number),
        }
    }
}

impl Modifier for Bit {
    fn change<'a>(
        &'a self,
        current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        let Some(start) = Integer::new(current) else {
            return Err(Error::bad_value(format!(
                "Cannot apply $bit to a value of non-integral type. {{_id: {}}} has the field '{}' of non-integer type {}",
                at.execution.root.get("_id").unwrap_or(ValueRef::Null),
                at.path,
                current.type_of().name()
            )));
        };
        let result = self.result(start);
        Ok(if result.as_ref() == current {
            Change::Keep
        } else {
            Change::owned(result)
        })
    }

    fn create<'a>(&'a self, _at: &FieldTarget<'a>) -> Result<Option<NewValue<'a>>, Error> {
        Ok(Some(NewValue::owned(self.result(Integer::ZERO))))
    }
}
