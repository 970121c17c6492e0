//! `$inc` and `$mul`. The result has the wider of the two types. An int that overflows becomes a
//! long, a long that overflows is an error.

use std::sync::Arc;

use windrow_document::{Decimal128, Value, ValueRef};

use super::modifier::{Change, FieldTarget, Modifier, NewValue};
use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq)]
enum ArithmeticOperation {
    Add,
    Multiply,
}

impl ArithmeticOperation {
    fn name(self) -> &'static str {
        match self {
            ArithmeticOperation::Add => "$inc",
            ArithmeticOperation::Multiply => "$mul",
        }
    }
}

#[derive(Debug)]
struct Arithmetic {
    operation: ArithmeticOperation,
    operand: Value,
}

pub(super) fn parse_inc(path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    parse(ArithmeticOperation::Add, path, operand)
}

pub(super) fn parse_mul(path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    parse(ArithmeticOperation::Multiply, path, operand)
}

fn parse(
    operation: ArithmeticOperation,
    path: &str,
    operand: ValueRef<'_>,
) -> Result<Arc<dyn Modifier>, Error> {
    if !operand.is_number() {
        return Err(Error::type_mismatch(format!(
            "Cannot {} with non-numeric argument: {{{path}: {operand}}}",
            if operation == ArithmeticOperation::Add {
                "increment"
            } else {
                "multiply"
            },
        )));
    }
    Ok(Arc::new(Arithmetic {
        operation,
        operand: operand.to_value(),
    }))
}

impl Arithmetic {
    fn result(&self, current: ValueRef<'_>, at: &FieldTarget<'_>) -> Result<Value, Error> {
        compute(self.operation, current, self.operand.as_ref()).ok_or_else(|| {
            Error::bad_value(format!(
                "Failed to apply {} operations to current value ({current}) for document {{_id: {}}}",
                self.operation.name(),
                at.execution.root.get("_id").unwrap_or(ValueRef::Null),
            ))
        })
    }
}

impl Modifier for Arithmetic {
    fn change<'a>(
        &'a self,
        current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        if !current.is_number() {
            return Err(Error::type_mismatch(format!(
                "Cannot apply {} to a value of non-numeric type. {{_id: {}}} has the field '{}' of non-numeric type {}",
                self.operation.name(),
                at.execution.root.get("_id").unwrap_or(ValueRef::Null),
                at.path,
                current.type_of().name(),
            )));
        }
        let result = self.result(current, at)?;
        Ok(if is_identical(current, result.as_ref()) {
            Change::Keep
        } else {
            Change::owned(result)
        })
    }

    fn create<'a>(&'a self, at: &FieldTarget<'a>) -> Result<Option<NewValue<'a>>, Error> {
        Ok(Some(match self.operation {
            ArithmeticOperation::Add => NewValue::Borrowed(self.operand.as_ref()),
            // The result is zero with the type of the operand.
            ArithmeticOperation::Multiply => NewValue::owned(self.result(ValueRef::Int32(0), at)?),
        }))
    }
}

/// Returns `true` for equal numbers of the same type. NaN does not equal itself.
fn is_identical(one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
    match (one, other) {
        (ValueRef::Double(one), ValueRef::Double(other)) => one == other,
        (ValueRef::Decimal128(one), ValueRef::Decimal128(two)) => {
            !one.is_nan() && !two.is_nan() && ValueRef::Decimal128(one).equals(other)
        }
        _ => one == other,
    }
}

/// Computes the result. Returns `None` if it overflows a long.
fn compute(
    operation: ArithmeticOperation,
    one: ValueRef<'_>,
    other: ValueRef<'_>,
) -> Option<Value> {
    use ValueRef as V;
    Some(match (one, other) {
        (V::Decimal128(_), _) | (_, V::Decimal128(_)) => {
            let (one, other) = (decimal(one)?, decimal(other)?);
            Value::Decimal128(match operation {
                ArithmeticOperation::Add => one.add(other),
                ArithmeticOperation::Multiply => one.multiply(other),
            })
        }
        (V::Double(_), _) | (_, V::Double(_)) => {
            let (one, other) = (one.as_f64()?, other.as_f64()?);
            Value::Double(match operation {
                ArithmeticOperation::Add => one + other,
                ArithmeticOperation::Multiply => one * other,
            })
        }
        _ => {
            let (left, right) = (one.as_whole()?, other.as_whole()?);
            let result = match operation {
                ArithmeticOperation::Add => left.checked_add(right)?,
                ArithmeticOperation::Multiply => left.checked_mul(right)?,
            };
            let both_ints = matches!((one, other), (V::Int32(_), V::Int32(_)));
            match i32::try_from(result) {
                Ok(result) if both_ints => Value::Int32(result),
                _ => Value::Int64(result),
            }
        }
    })
}

fn decimal(number: ValueRef<'_>) -> Option<Decimal128> {
    Some(match number {
        ValueRef::Decimal128(number) => number,
        ValueRef::Double(number) => Decimal128::from_f64(number),
        _ => Decimal128::from_i64(number.as_whole()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Value {
        Value::Decimal128(Decimal128::parse(text).unwrap())
    }

    #[test]
    fn results_have_the_wider_type() {
        use ArithmeticOperation::{Add, Multiply};
        let cases: Vec<(ArithmeticOperation, Value, Value, Option<Value>)> = vec![
            (Add, 1.into(), 2.into(), Some(3.into())),
            (Add, 1.into(), 2i64.into(), Some(3i64.into())),
            (
                Add,
                i32::MAX.into(),
                1.into(),
                Some((i64::from(i32::MAX) + 1).into()),
            ),
            (Add, i64::MAX.into(), 1.into(), None),
            (Add, i64::MAX.into(), 1.0.into(), Some(2f64.powi(63).into())),
            (Add, 1.into(), 0.5.into(), Some(1.5.into())),
            (
                Add,
                number("7.50"),
                7.5.into(),
                Some(number("15.00000000000000")),
            ),
            (Multiply, 7i64.into(), 7.into(), Some(49i64.into())),
            (
                Multiply,
                i32::MAX.into(),
                2.into(),
                Some((i64::from(i32::MAX) * 2).into()),
            ),
            (Multiply, i64::MAX.into(), 2.into(), None),
            (Multiply, number("7.50"), 7.into(), Some(number("52.50"))),
            (Multiply, 0.into(), number("7.50"), Some(number("0.00"))),
        ];
        for (operation, one, other, expected) in cases {
            let result = compute(operation, one.as_ref(), other.as_ref());
            assert_eq!(result, expected, "{operation:?} {one} {other}");
        }
    }
}
