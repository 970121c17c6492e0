//! Functions of real numbers: `$exp`, `$ln`, `$log`, `$log10`, `$pow`, `$sqrt`, trigonometric and
//! hyperbolic functions. Doubles use the functions of the standard library. Decimals use
//! [`decimal`], which computes 34 digits.

pub(crate) mod decimal;
mod double;
mod fixed;
mod magnitude;

use windrow_document::{Decimal128, ValueRef};

use super::number::{Number, Pair};
use super::parse::{Parser, finish};
use super::rounding::numeric;
use super::tree::{Call, EvalResult, Operator};
use super::{Context, ExprValue, Expression};
use crate::Error;

/// A function of one number, for doubles and for decimals.
struct Function {
    double: fn(f64) -> f64,
    decimal: fn(Decimal128) -> Decimal128,
}

impl Function {
    fn apply<'a>(&self, number: Number) -> ExprValue<'a> {
        match number {
            Number::Decimal(number) if number.is_nan() => number.into(),
            Number::Decimal(number) => (self.decimal)(number).into(),
            other => (self.double)(other.to_f64()).into(),
        }
    }
}

fn on_all_numbers<'a>(
    call: &'a Call,
    context: &Context<'a>,
    function: &Function,
) -> EvalResult<'a> {
    let number = numeric(call, context)?;
    Ok(number.map_or(ExprValue::NULL, |number| function.apply(number)))
}

/// Evaluates a function that is defined in an interval. Fails with 50989 outside of it. NaN remains
/// NaN.
fn on_interval<'a>(
    call: &'a Call,
    context: &Context<'a>,
    least: f64,
    greatest: f64,
    function: &Function,
) -> EvalResult<'a> {
    let Some(number) = numeric(call, context)? else {
        return Ok(ExprValue::NULL);
    };
    let value = number.to_value_ref();
    let at = |bound: f64| windrow_document::ValueRef::Double(bound);
    let outside = value.compare(at(least)).is_lt() || value.compare(at(greatest)).is_gt();
    if outside && !number.to_f64().is_nan() {
        let name = call.operator.name;
        let message =
            format!("cannot apply {name} to {value}, value must be in [{least},{greatest}]");
        return Err(Error::new(50989, message));
    }
    Ok(function.apply(number))
}

/// Evaluates a function that is not defined for infinities. Fails with 50989 for them.
fn on_finite_numbers<'a>(
    call: &'a Call,
    context: &Context<'a>,
    function: &Function,
) -> EvalResult<'a> {
    let Some(number) = numeric(call, context)? else {
        return Ok(ExprValue::NULL);
    };
    let infinite = match number {
        Number::Decimal(number) => number.is_infinite(),
        other => other.to_f64().is_infinite(),
    };
    if infinite {
        let (name, value) = (call.operator.name, number.to_value_ref());
        let message = format!("cannot apply {name} to {value}, value must be in (-inf,inf)");
        return Err(Error::new(50989, message));
    }
    Ok(function.apply(number))
}

macro_rules! functions {
    ($($name:ident: $form:ident $(($least:expr, $greatest:expr))? => $double:expr, $decimal:expr;)*) => {
        $(pub(crate) fn $name<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
            let function = Function { double: $double, decimal: $decimal };
            $form(call, context, $($least, $greatest,)? &function)
        })*
    };
}

functions! {
    acos: on_interval(-1.0, 1.0) => f64::acos, decimal::acos;
    acosh: on_interval(1.0, f64::INFINITY) => double::acosh, decimal::acosh;
    asin: on_interval(-1.0, 1.0) => f64::asin, decimal::asin;
    asinh: on_all_numbers => double::asinh, decimal::asinh;
    atan: on_all_numbers => f64::atan, decimal::atan;
    atanh: on_interval(-1.0, 1.0) => double::atanh, decimal::atanh;
    cos: on_finite_numbers => f64::cos, decimal::cos;
    cosh: on_all_numbers => f64::cosh, decimal::cosh;
    degrees_to_radians: on_all_numbers => double::to_radians, decimal::to_radians;
    exp: on_all_numbers => f64::exp, decimal::exp;
    radians_to_degrees: on_all_numbers => double::to_degrees, decimal::to_degrees;
    sin: on_finite_numbers => f64::sin, decimal::sin;
    sinh: on_all_numbers => f64::sinh, decimal::sinh;
    tan: on_finite_numbers => f64::tan, decimal::tan;
    tanh: on_all_numbers => f64::tanh, decimal::tanh;
}

/// Evaluates a function that is defined for positive numbers. The result for NaN, also a decimal
/// one, is the double NaN, as in MongoDB.
fn on_positive_numbers<'a>(
    call: &'a Call,
    context: &Context<'a>,
    code: i32,
    function: &Function,
) -> EvalResult<'a> {
    let Some(number) = numeric(call, context)? else {
        return Ok(ExprValue::NULL);
    };
    if number.to_f64().is_nan() {
        return Ok(f64::NAN.into());
    }
    if !is_positive(number) {
        let (name, value) = (call.operator.name, number.to_value_ref());
        let message = format!("{name}'s argument must be a positive number, but is {value}");
        return Err(Error::new(code, message));
    }
    Ok(function.apply(number))
}

fn is_positive(number: Number) -> bool {
    match number {
        Number::Decimal(number) => !number.is_zero() && !number.is_negative(),
        other => other.to_f64() > 0.0,
    }
}

pub(crate) fn ln<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    on_positive_numbers(
        call,
        context,
        28766,
        &Function {
            double: f64::ln,
            decimal: decimal::ln,
        },
    )
}

pub(crate) fn log10<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    on_positive_numbers(
        call,
        context,
        28761,
        &Function {
            double: f64::log10,
            decimal: decimal::log10,
        },
    )
}

pub(crate) fn sqrt<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let Some(number) = numeric(call, context)? else {
        return Ok(ExprValue::NULL);
    };
    let negative = match number {
        Number::Decimal(number) => number.is_negative() && !number.is_zero(),
        other => other.to_f64() < 0.0,
    };
    if negative {
        let message = "$sqrt's argument must be greater than or equal to 0";
        return Err(Error::new(28714, message));
    }
    let function = Function {
        double: f64::sqrt,
        decimal: Decimal128::square_root,
    };
    Ok(function.apply(number))
}

/// Parses `$sigmoid`. The operand is one expression, even if it is an array.
pub(crate) fn parse_sigmoid(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    finish(Call::new(operator, vec![parser.parse(operand)?]))
}

/// `$sigmoid`: `1 / (1 + exp(-x))`. Fails with 14 for values that are not numbers.
pub(crate) fn sigmoid<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let Some(number) = value.as_ref().and_then(Number::from_value) else {
        let found = value.type_name();
        let message = format!("$sigmoid only supports numeric types, not {found}");
        return Err(Error::type_mismatch(message));
    };
    let function = Function {
        double: |number| 1.0 / (1.0 + (-number).exp()),
        decimal: |number| {
            let one = Decimal128::from_i64(1);
            one.divide(one.add(decimal::exp(number.negate())))
        },
    };
    Ok(function.apply(number))
}

/// Returns both arguments as numbers, or `None` if one of them is null. The codes are for arguments
/// that are not numbers.
fn two_numbers<'a>(
    call: &'a Call,
    context: &Context<'a>,
    first_code: i32,
    second_code: i32,
) -> Result<Option<(Number, Number)>, Error> {
    let (one, other) = (call.value(0, context)?, call.value(1, context)?);
    if one.is_nullish() || other.is_nullish() {
        return Ok(None);
    }
    let number = |value: &ExprValue<'_>, code| {
        value.as_ref().and_then(Number::from_value).ok_or_else(|| {
            let (name, found) = (call.operator.name, value.type_name());
            Error::new(
                code,
                format!("{name}'s arguments must be numeric, not {found}"),
            )
        })
    };
    Ok(Some((
        number(&one, first_code)?,
        number(&other, second_code)?,
    )))
}

/// `$log`: the logarithm of the first argument to the base of the second.
pub(crate) fn log<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let Some((number, base)) = two_numbers(call, context, 28756, 28757)? else {
        return Ok(ExprValue::NULL);
    };
    let is_nan = |number: Number| number.to_f64().is_nan();
    if !is_positive(number) && !is_nan(number) {
        let message = format!(
            "$log's argument must be a positive number, but is {}",
            number.to_value_ref()
        );
        return Err(Error::new(28758, message));
    }
    let is_one = base
        .to_value_ref()
        .equals(windrow_document::ValueRef::Int32(1));
    if (!is_positive(base) || is_one) && !is_nan(base) {
        let message = format!(
            "$log's base must be a positive number not equal to 1, but is {}",
            base.to_value_ref()
        );
        return Err(Error::new(28759, message));
    }
    if is_nan(number) || is_nan(base) {
        return Ok(f64::NAN.into());
    }
    Ok(match number.pair(base) {
        Pair::Decimal(number, base) => decimal::ln(number).divide(decimal::ln(base)).into(),
        _ => (number.to_f64().ln() / base.to_f64().ln()).into(),
    })
}

pub(crate) fn atan2<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let Some((y, x)) = two_numbers(call, context, 51044, 51045)? else {
        return Ok(ExprValue::NULL);
    };
    Ok(match y.pair(x) {
        Pair::Decimal(y, x) => decimal::atan2(y, x).into(),
        _ => y.to_f64().atan2(x.to_f64()).into(),
    })
}

pub(crate) fn pow<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let Some((base, exponent)) = two_numbers(call, context, 28762, 28763)? else {
        return Ok(ExprValue::NULL);
    };
    let is_negative = exponent
        .to_value_ref()
        .compare(windrow_document::ValueRef::Int32(0))
        .is_lt();
    if base.is_zero() && is_negative && !exponent.to_f64().is_nan() {
        return Err(Error::new(
            28764,
            "$pow cannot take a base of 0 and a negative exponent",
        ));
    }
    Ok(match base.pair(exponent) {
        Pair::Decimal(base, exponent) => decimal::pow(base, exponent).to_full_precision().into(),
        Pair::Double(base, exponent) => base.powf(exponent).into(),
        Pair::Int(base, exponent) => match whole_power(base.into(), exponent.into()) {
            Some(power) => Number::int_or_long(power).into(),
            None => f64::from(base).powf(f64::from(exponent)).into(),
        },
        Pair::Long(base, exponent) => match whole_power(base, exponent) {
            Some(power) => power.into(),
            None => (base as f64).powf(exponent as f64).into(),
        },
    })
}

/// Returns the power if it is a whole number and fits in a long.
fn whole_power(base: i64, exponent: i64) -> Option<i64> {
    match base {
        0 => Some(i64::from(exponent == 0)),
        1 => Some(1),
        -1 => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        base => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}
