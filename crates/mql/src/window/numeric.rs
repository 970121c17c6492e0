//! Numeric functions: `$derivative`, `$integral`, `$expMovingAvg`, `$covariancePop` and
//! `$covarianceSamp`.

use windrow_document::{Decimal128, Value, ValueRef};

use super::Partition;
use super::bounds::{Bounds, Window, outside, sort_values};
use crate::Error;
use crate::expression::Expression;
use crate::expression::arithmetic::{difference, product, quotient, sum};
use crate::expression::date::calendar;
use crate::expression::date::unit::Unit;
use crate::expression::number::Number;
use crate::expression::statistics::Coverage;
use crate::interrupt::count_work;

fn value_of(number: Number) -> Option<Value> {
    Some(number.to_value_ref().to_value())
}

fn number_of(value: &Option<Value>) -> Option<Number> {
    Number::from_value(value.as_ref()?.as_ref())
}

/// Returns the milliseconds of a unit, for `$derivative` and `$integral`.
fn millis_of(unit: Option<Unit>) -> Option<Number> {
    match unit? {
        Unit::Millis(millis) => Some(Number::Long(millis)),
        Unit::Days(days) => Some(Number::Long(days * calendar::DAY_MS)),
        Unit::Months(_) => None,
    }
}

/// Returns a number, or a date as milliseconds.
fn sort_number(value: &Value) -> Option<Number> {
    match value.as_ref() {
        ValueRef::DateTime(millis) => Some(Number::Long(millis)),
        other => Number::from_value(other),
    }
}

/// `$derivative`: the change of the value from the first to the last document of the window,
/// divided by the change of the sort value. Dates are in milliseconds. The result is null if the
/// sort values are equal.
///
/// # Errors
///
/// Only the first and the last document are checked.
/// - 5624900 to 5624902: the type of the sort values does not fit the unit.
/// - 5624903: a value is null or missing.
/// - 16556: the values cannot be subtracted.
/// - 16609: the difference is a date.
pub(super) fn derivative<'a>(
    input: &'a Expression,
    unit: Option<Unit>,
    bounds: &Bounds,
    partition: &Partition<'a>,
) -> Result<Vec<Option<Value>>, Error> {
    let (values, axis) = (partition.values(input)?, sort_values(partition));
    let unit = millis_of(unit);
    let mut derivatives = Vec::with_capacity(values.len());
    for Window { start, end } in bounds.windows(partition)? {
        let Some(last) = end.checked_sub(1).filter(|last| start <= *last) else {
            derivatives.push(Some(Value::Null));
            continue;
        };
        let outside = || outside(start..end, values.len());
        let sort_value = |index: usize| axis.get(index).ok_or_else(outside);
        let run = run(sort_value(start)?, sort_value(last)?, unit.is_some())?;
        let value = |index: usize| values.get(index).ok_or_else(outside);
        let rise = rise(value(start)?, value(last)?)?;
        let slope = (!run.is_zero()).then(|| quotient(rise.pair(run)));
        let slope = slope.map(|slope| match unit {
            Some(unit) => product(slope.pair(unit)),
            None => slope,
        });
        derivatives.push(slope.map_or(Some(Value::Null), value_of));
    }
    Ok(derivatives)
}

fn run(first: &Value, last: &Value, has_unit: bool) -> Result<Number, Error> {
    let is_date = |value: &Value| matches!(value, Value::DateTime(_));
    let dates = [is_date(first), is_date(last)];
    if has_unit && dates != [true, true] {
        let message = "$derivative with 'unit' expects the sortBy field to be a Date";
        return Err(Error::new(5624900, message));
    }
    if !has_unit && dates != [false, false] {
        let message = "$derivative where the sortBy is a Date requires an 'unit'";
        return Err(Error::new(5624901, message));
    }
    let (Some(first), Some(last)) = (sort_number(first), sort_number(last)) else {
        let message = "$derivative (with no 'unit') expects the sortBy field to be numeric";
        return Err(Error::new(5624902, message));
    };
    Ok(difference(last.pair(first)))
}

fn rise(first: &Option<Value>, last: &Option<Value>) -> Result<Number, Error> {
    let is_nullish =
        |value: &Option<Value>| matches!(value, None | Some(Value::Null | Value::Undefined));
    if is_nullish(first) || is_nullish(last) {
        let message = "$derivative input must not be null or missing";
        return Err(Error::new(5624903, message));
    }
    match (first, last) {
        (Some(Value::DateTime(first)), Some(Value::DateTime(last))) => {
            Ok(Number::Long(last.wrapping_sub(*first)))
        }
        (first, Some(Value::DateTime(_))) if number_of(first).is_some() => {
            let message = "$derivative cannot $divide a date, which a date less a number is";
            Err(Error::new(16609, message))
        }
        (first, last) => match (number_of(first), number_of(last)) {
            (Some(first), Some(last)) => Ok(difference(last.pair(first))),
            _ => {
                let message = "$derivative cannot $subtract values that are no numbers";
                Err(Error::new(16556, message))
            }
        },
    }
}

/// `$integral`: the area under the values along the sort field, by the trapezoidal rule.
///
/// # Errors
///
/// All documents of a window are checked.
/// - 5423900: a value is not a number, or a sort value is neither a number nor a date.
/// - 5423901, 5423902: the type of the sort values does not fit the unit.
pub(super) fn integral<'a>(
    input: &'a Expression,
    unit: Option<Unit>,
    bounds: &Bounds,
    partition: &Partition<'a>,
) -> Result<Vec<Option<Value>>, Error> {
    let (values, axis) = (partition.values(input)?, sort_values(partition));
    let unit = millis_of(unit);
    let points: Vec<_> = values
        .iter()
        .zip(&axis)
        .map(|(value, sort_value)| point(value, sort_value, unit.is_some()))
        .collect();
    let mut integrals = Vec::with_capacity(values.len());
    for Window { start, end } in bounds.windows(partition)? {
        let mut area = (start < end).then_some(Number::Int(0));
        let mut before = None;
        let in_window = points.get(start..end);
        for point in in_window.ok_or_else(|| outside(start..end, points.len()))? {
            count_work(1)?;
            let (sort_value, height) = point.clone()?;
            if let Some((from, start)) = before.replace((sort_value, height)) {
                let width: Number = difference(sort_value.pair(from));
                let doubled = product(sum(height.pair(start)).pair(width));
                let more = quotient(doubled.pair(Number::Double(2.0)));
                area = area.map(|area| sum(area.pair(more)));
            } else if sort_value.to_f64().is_nan() || height.to_f64().is_nan() {
                area = area.map(|area| sum(area.pair(Number::Double(f64::NAN))));
            }
        }
        let area = area.map(|area| match unit {
            Some(unit) => quotient(area.pair(unit)),
            None => area,
        });
        integrals.push(area.map_or(Some(Value::Null), value_of));
    }
    Ok(integrals)
}

/// Returns the sort value and the value of a document.
fn point(
    value: &Option<Value>,
    sort_value: &Value,
    has_unit: bool,
) -> Result<(Number, Number), Error> {
    let (Some(height), Some(sort_number)) = (number_of(value), sort_number(sort_value)) else {
        let message = "The input of $integral must be numeric, and the sortBy field numeric or a \
                       date";
        return Err(Error::new(5423900, message));
    };
    match (matches!(sort_value, Value::DateTime(_)), has_unit) {
        (false, true) => Err(Error::new(
            5423901,
            "$integral with 'unit' expects the sortBy field to be a Date",
        )),
        (true, false) => Err(Error::new(
            5423902,
            "$integral (with no 'unit') expects the sortBy field to be numeric",
        )),
        _ => Ok((sort_number, height)),
    }
}

/// `$expMovingAvg`: `alpha` times the value plus `1 - alpha` times the previous average, computed
/// in decimals. Values that are not numbers leave the average unchanged.
pub(super) fn moving_average<'a>(
    input: &'a Expression,
    alpha: Decimal128,
    partition: &Partition<'a>,
) -> Result<Vec<Option<Value>>, Error> {
    let rest = Decimal128::from_i64(1).subtract(alpha);
    let (mut average, mut is_decimal) = (None::<Decimal128>, false);
    let values = partition.values(input)?;
    let averages = values.iter().map(|value| {
        if let Some(number) = number_of(value) {
            is_decimal |= matches!(number, Number::Decimal(_));
            let number = number.to_decimal();
            average = Some(match average {
                None => number,
                Some(before) => number.multiply(alpha).add(before.multiply(rest)),
            });
        }
        Some(match average {
            None => Value::Null,
            Some(average) if is_decimal => Value::Decimal128(average),
            Some(average) => Value::Double(average.to_f64()),
        })
    });
    Ok(averages.collect())
}

/// `$covariancePop` and `$covarianceSamp`: the covariance of two values in the window.
pub(super) fn covariance<'a>(
    input: &'a Expression,
    coverage: Coverage,
    bounds: &Bounds,
    partition: &Partition<'a>,
) -> Result<Vec<Option<Value>>, Error> {
    let values = partition.values(input)?;
    let pairs: Vec<_> = values.iter().map(two_numbers).collect();
    let mut known: Option<(Window, Moments)> = None;
    let mut covariances = Vec::with_capacity(pairs.len());
    for window in bounds.windows(partition)? {
        let Window { start, end } = window;
        let (mut from, mut moments) = match known {
            Some((known, moments)) if known.start == start && known.end <= end => {
                (known.end, moments)
            }
            _ => (start, Moments::default()),
        };
        while from < end {
            count_work(1)?;
            if let Some((one, two)) = pairs.get(from).copied().flatten() {
                moments.add(one, two);
            }
            from += 1;
        }
        known = Some((window, moments));
        covariances.push(Some(moments.finish(coverage)));
    }
    Ok(covariances)
}

fn two_numbers(value: &Option<Value>) -> Option<(Number, Number)> {
    let mut numbers = value
        .as_ref()?
        .as_ref()
        .as_array()?
        .iter()
        .map(Number::from_value);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(one), Some(two), None) => one.zip(two),
        _ => None,
    }
}

/// The sums of both values and of the products of their differences from the means, updated pair by
/// pair. Source: T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample
/// variance" (1983).
#[derive(Clone, Copy, Debug)]
struct Moments {
    count: i64,
    sums: (Number, Number),
    products: Number,
}

impl Default for Moments {
    fn default() -> Moments {
        Moments {
            count: 0,
            sums: (Number::Int(0), Number::Int(0)),
            products: Number::Int(0),
        }
    }
}

impl Moments {
    /// Adds a pair. A pair with an infinity or NaN is not counted, but makes the result infinite or
    /// NaN.
    fn add(&mut self, one: Number, two: Number) {
        let is_finite = |number: Number| match number {
            Number::Decimal(number) => !number.is_nan() && !number.is_infinite(),
            number => number.to_f64().is_finite(),
        };
        if !is_finite(one) || !is_finite(two) {
            // The result is infinite unless there is a NaN or an infinity with the other sign.
            for number in [one, two] {
                self.products = if is_finite(number) {
                    sum(self.products.pair(product(number.pair(Number::Int(0)))))
                } else {
                    sum(self.products.pair(number))
                };
            }
            return;
        }
        let delta = match self.count {
            0 => None,
            count => Some(difference(one.pair(mean(self.sums.0, count)))),
        };
        self.count += 1;
        self.sums = (sum(self.sums.0.pair(one)), sum(self.sums.1.pair(two)));
        if let Some(delta) = delta {
            let other = difference(two.pair(mean(self.sums.1, self.count)));
            self.products = sum(self.products.pair(product(delta.pair(other))));
        }
    }

    fn finish(self, coverage: Coverage) -> Value {
        if self.count == 1 && coverage == Coverage::Population {
            return Value::Double(0.0);
        }
        match coverage.divisor(self.count) {
            divisor if divisor <= 0 => Value::Null,
            divisor => match self.products {
                Number::Decimal(products) => {
                    Value::Decimal128(products.divide(Decimal128::from_i64(divisor)))
                }
                products => Value::Double(products.to_f64() / divisor as f64),
            },
        }
    }
}

fn mean(sum: Number, count: i64) -> Number {
    quotient(sum.pair(Number::Long(count)))
}
