//! `$add`, `$subtract`, `$multiply`, `$divide`, `$mod`. An int that overflows becomes a long, a
//! long that overflows a double. If one operand is a decimal, the result is a decimal. If one is
//! null or missing, the result is null.

use windrow_document::ValueRef;

use super::number::{Number, Pair};
use super::summation::Sum;
use super::tree::Call;
use super::{Context, ExprValue};
use crate::Error;

fn wrong_type(code: i32, what: &str, value: &ExprValue<'_>) -> Error {
    Error::new(code, format!("{what}, not {}", value.type_name()))
}

/// `$add`: the sum of numbers and of at most one date.
pub(crate) fn add<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    let mut total = Total::default();
    for argument in &call.arguments {
        let value = argument.evaluate(context)?;
        match value.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(ExprValue::NULL),
            Some(ValueRef::DateTime(millis)) => total.add_date(millis)?,
            Some(other) => match Number::from_value(other) {
                Some(number) => total.add(number)?,
                None => {
                    let what = "$add only supports numeric or date types";
                    return Err(wrong_type(16554, what, &value));
                }
            },
        }
    }
    Ok(total.finish())
}

/// The intermediate result of `$add`.
#[derive(Default)]
struct Total {
    sum: Sum,
    /// The sum from the first double on. Doubles are added from left to right and each sum is
    /// rounded, unlike in `$sum`.
    double: Option<f64>,
    /// The date plus the numbers, in milliseconds, from the date on.
    date: Option<i64>,
}

impl Total {
    /// Fails with 15 if the date overflows.
    fn add(&mut self, number: Number) -> Result<(), Error> {
        if let Some(millis) = self.date {
            self.date = Some(add_millis(millis, number)?);
            return Ok(());
        }
        match (&mut self.double, number) {
            (Some(double), number) => *double += number.to_f64(),
            (None, Number::Double(double)) => {
                self.double = Some(self.sum.number().to_f64() + double);
            }
            _ => {}
        }
        self.sum.add(number);
        Ok(())
    }

    /// Fails with 16612 if there is already a date.
    fn add_date(&mut self, millis: i64) -> Result<(), Error> {
        if self.date.is_some() {
            let message = "only one date allowed in an $add expression";
            return Err(Error::new(16612, message));
        }
        self.date = Some(add_millis(millis, self.number())?);
        Ok(())
    }

    fn number(&self) -> Number {
        match self.double {
            Some(double) if !self.sum.is_decimal() => Number::Double(double),
            _ => self.sum.number(),
        }
    }

    fn finish(self) -> ExprValue<'static> {
        match self.date {
            Some(millis) => ValueRef::DateTime(millis).into(),
            None => self.number().into(),
        }
    }
}

/// Returns a date plus a number of milliseconds, which is rounded.
fn add_millis(millis: i64, number: Number) -> Result<i64, Error> {
    let number = number.rounded_to_i64();
    let sum = number.and_then(|number| millis.checked_add(number));
    sum.ok_or_else(|| date_overflow("$add"))
}

fn date_of<'a>(millis: Option<i64>, operator: &str) -> Result<ExprValue<'a>, Error> {
    match millis {
        Some(millis) => Ok(ValueRef::DateTime(millis).into()),
        None => Err(date_overflow(operator)),
    }
}

fn date_overflow(operator: &str) -> Error {
    Error::new(15, format!("date overflow in {operator}"))
}

/// `$subtract`: a number minus a number, a date minus a date (in milliseconds), or a date minus
/// milliseconds.
pub(crate) fn subtract<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    let (one, other) = (call.value(0, context)?, call.value(1, context)?);
    if one.is_nullish() || other.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let (left, right) = (one.or_null(), other.or_null());
    if let (Some(left), Some(right)) = (Number::from_value(left), Number::from_value(right)) {
        return Ok(difference(left.pair(right)).into());
    }
    match (left, right) {
        (ValueRef::DateTime(left), ValueRef::DateTime(right)) => {
            Ok(left.wrapping_sub(right).into())
        }
        (ValueRef::DateTime(left), right) if right.is_number() => {
            let millis = Number::from_value(right).and_then(Number::rounded_to_i64);
            date_of(
                millis.and_then(|millis| left.checked_sub(millis)),
                "$subtract",
            )
        }
        _ => {
            let (left, right) = (one.type_name(), other.type_name());
            Err(Error::new(
                16556,
                format!("can't $subtract {right} from {left}"),
            ))
        }
    }
}

/// Returns the sum of two numbers. A long that overflows becomes a double.
pub(crate) fn sum(pair: Pair) -> Number {
    match pair {
        Pair::Int(one, other) => Number::int_or_long(i64::from(one) + i64::from(other)),
        Pair::Long(one, other) => match one.checked_add(other) {
            Some(sum) => Number::Long(sum),
            None => Number::Double(one as f64 + other as f64),
        },
        Pair::Double(one, other) => Number::Double(one + other),
        Pair::Decimal(one, other) => Number::Decimal(one.add(other)),
    }
}

/// Returns the difference of two numbers. A long that overflows becomes a double.
pub(crate) fn difference(pair: Pair) -> Number {
    match pair {
        Pair::Int(one, other) => Number::int_or_long(i64::from(one) - i64::from(other)),
        Pair::Long(one, other) => match one.checked_sub(other) {
            Some(difference) => Number::Long(difference),
            None => Number::Double(one as f64 - other as f64),
        },
        Pair::Double(one, other) => Number::Double(one - other),
        Pair::Decimal(one, other) => Number::Decimal(one.subtract(other)),
    }
}

/// `$multiply`. Whole numbers stay exact as long as they fit in a long.
pub(crate) fn multiply<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    let mut result = Number::Int(1);
    for argument in &call.arguments {
        let value = argument.evaluate(context)?;
        if value.is_nullish() {
            return Ok(ExprValue::NULL);
        }
        let Some(number) = value.as_ref().and_then(Number::from_value) else {
            return Err(wrong_type(
                16555,
                "$multiply only supports numeric types",
                &value,
            ));
        };
        result = product(result.pair(number));
    }
    Ok(result.into())
}

/// Returns the product of two numbers.
pub(crate) fn product(pair: Pair) -> Number {
    match pair {
        Pair::Int(one, other) => Number::int_or_long(i64::from(one) * i64::from(other)),
        Pair::Long(one, other) => match one.checked_mul(other) {
            Some(product) => Number::Long(product),
            None => Number::Double(one as f64 * other as f64),
        },
        Pair::Double(one, other) => Number::Double(one * other),
        Pair::Decimal(one, other) => Number::Decimal(one.multiply(other)),
    }
}

/// Both arguments of an operator.
enum Operands {
    Numbers(Number, Number),
    /// One is null or missing.
    Null,
    /// One is neither a number nor null: the names of both types.
    OtherTypes(&'static str, &'static str),
}

fn operands<'a>(call: &'a Call, context: &Context<'a>) -> Result<Operands, Error> {
    let (one, other) = (call.value(0, context)?, call.value(1, context)?);
    if let (Some(left), Some(right)) = (one.as_ref(), other.as_ref())
        && let (Some(left), Some(right)) = (Number::from_value(left), Number::from_value(right))
    {
        return Ok(Operands::Numbers(left, right));
    }
    if one.is_nullish() || other.is_nullish() {
        return Ok(Operands::Null);
    }
    Ok(Operands::OtherTypes(one.type_name(), other.type_name()))
}

/// `$divide`: a double, or a decimal if one operand is a decimal.
pub(crate) fn divide<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    let (one, other) = match operands(call, context)? {
        Operands::Numbers(one, other) => (one, other),
        Operands::Null => return Ok(ExprValue::NULL),
        Operands::OtherTypes(left, right) => {
            let message = format!("$divide only supports numeric types, not {left} and {right}");
            return Err(Error::new(16609, message));
        }
    };
    if other.is_zero() {
        return Err(Error::new(16608, "can't $divide by zero"));
    }
    Ok(quotient(one.pair(other)).into())
}

/// Returns the quotient: a double, or a decimal for decimals.
pub(crate) fn quotient(pair: Pair) -> Number {
    match pair {
        Pair::Int(one, other) => Number::Double(f64::from(one) / f64::from(other)),
        Pair::Long(one, other) => Number::Double(one as f64 / other as f64),
        Pair::Double(one, other) => Number::Double(one / other),
        Pair::Decimal(one, other) => Number::Decimal(one.divide(other)),
    }
}

/// `$mod`: the remainder with the sign of the dividend.
pub(crate) fn modulo<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    let (one, other) = match operands(call, context)? {
        Operands::Numbers(one, other) => (one, other),
        Operands::Null => return Ok(ExprValue::NULL),
        Operands::OtherTypes(left, right) => {
            let message = format!("$mod only supports numeric types, not {left} and {right}");
            return Err(Error::new(16611, message));
        }
    };
    if other.is_zero() {
        return Err(Error::new(16610, "can't $mod by zero"));
    }
    Ok(match one.pair(whole_divisor(one, other)) {
        Pair::Int(one, other) => one.wrapping_rem(other).into(),
        Pair::Long(one, other) => one.wrapping_rem(other).into(),
        Pair::Double(one, other) => (one % other).into(),
        Pair::Decimal(one, other) => one.remainder(other).into(),
    })
}

/// Converts a double divisor that is equal to an int to an int if the dividend is an int or a long.
fn whole_divisor(dividend: Number, divisor: Number) -> Number {
    match (dividend, divisor) {
        (Number::Int(_) | Number::Long(_), Number::Double(double))
            if f64::from(double as i32) == double =>
        {
            Number::Int(double as i32)
        }
        _ => divisor,
    }
}
