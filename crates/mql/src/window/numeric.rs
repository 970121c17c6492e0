//! Functions of numbers: `$derivative`, `$integral`, `$expMovingAvg`, `$covariancePop` and
//! `$covarianceSamp`.

use windrow_document::{Decimal128, Value, ValueRef};

use super::bounds::{Bounds, sort_values};
use super::{Check, Partition};
use crate::Error;
use crate::expression::Expression;
use crate::expression::arithmetic::{difference, quotient, sum, times};
use crate::expression::date::unit::Unit;
use crate::expression::number::Number;

fn value_of(number: Number) -> Option<Value> {
    Some(number.to_value_ref().to_value())
}

fn number_of(value: &Option<Value>) -> Option<Number> {
    Number::of(value.as_ref()?.as_ref())
}

/// Where the documents are on the axis of the sort: numbers, or with a unit dates, in that unit.
/// Errors 5624900 to 5624903 for values that are not what the unit says, or not there.
fn axis(partition: &Partition<'_>, unit: Option<Unit>) -> Result<Vec<Number>, Error> {
    let place = |value: &Value| match (value.as_ref(), unit) {
        (ValueRef::DateTime(millis), Some(Unit::Millis(size))) => Ok(in_unit(millis, size)),
        (ValueRef::DateTime(millis), Some(Unit::Days(days))) => Ok(in_unit(
            millis,
            days * crate::expression::date::calendar::DAY_MS,
        )),
        (ValueRef::DateTime(_), _) => Err(Error::new(
            5624901,
            "$derivative and $integral with dates in the sortBy field need a 'unit'",
        )),
        (_, Some(_)) => Err(Error::new(
            5624900,
            "$derivative and $integral with a 'unit' expect dates in the sortBy field",
        )),
        (other, None) => Number::of(other).ok_or_else(|| {
            let found = other.type_of().name();
            let message = format!(
                "$derivative and $integral expect numbers in the sortBy field, not {found}"
            );
            Error::new(5624902, message)
        }),
    };
    sort_values(partition).iter().map(place).collect()
}

fn in_unit(millis: i64, size: i64) -> Number {
    match millis % size {
        0 => Number::Long(millis / size),
        _ => Number::Double(millis as f64 / size as f64),
    }
}

/// How the value changes from the first to the last document of the window, by the axis. Null where
/// they are in the same place, or one of the values is none.
pub(super) fn derivative<'a>(
    input: &'a Expression,
    unit: Option<Unit>,
    bounds: &Bounds,
    partition: &Partition<'a>,
    check: &mut Check<'_>,
) -> Result<Vec<Option<Value>>, Error> {
    let (values, axis) = (partition.values(input, check)?, axis(partition, unit)?);
    let mut derivatives = Vec::with_capacity(values.len());
    for (begin, end) in bounds.windows(partition, check)? {
        let slope = end.checked_sub(1).and_then(|last| {
            let run = difference(axis.get(last)?.pair(*axis.get(begin)?));
            let (first, last) = (values.get(begin)?, values.get(last)?);
            let rise = difference(number_of(last)?.pair(number_of(first)?));
            (!run.is_zero()).then(|| quotient(rise.pair(run)))
        });
        derivatives.push(slope.map_or(Some(Value::Null), value_of));
    }
    Ok(derivatives)
}

/// The area under the values over the axis, by trapezoids.
pub(super) fn integral<'a>(
    input: &'a Expression,
    unit: Option<Unit>,
    bounds: &Bounds,
    partition: &Partition<'a>,
    check: &mut Check<'_>,
) -> Result<Vec<Option<Value>>, Error> {
    let (values, axis) = (partition.values(input, check)?, axis(partition, unit)?);
    let numbers: Vec<Option<Number>> = values.iter().map(number_of).collect();
    let trapezoid = |one: usize, two: usize| {
        let heights = numbers
            .get(one)
            .copied()??
            .pair(numbers.get(two).copied()??);
        let width = difference(axis.get(two)?.pair(*axis.get(one)?));
        let doubled = times(sum(heights).pair(width));
        Some(quotient(doubled.pair(Number::Int(2))))
    };
    let mut integrals = Vec::with_capacity(values.len());
    for (begin, end) in bounds.windows(partition, check)? {
        let mut area = Some(Number::Int(0)).filter(|_| begin < end);
        for place in begin + 1..end {
            check()?;
            let more = trapezoid(place - 1, place);
            area = area.zip(more).map(|(area, more)| sum(area.pair(more)));
        }
        let is_number = numbers.get(begin).is_some_and(Option::is_some);
        let area = area.filter(|_| is_number);
        integrals.push(area.map_or(Some(Value::Null), value_of));
    }
    Ok(integrals)
}

/// `alpha` times the value and the rest of the average so far; what is no number changes nothing and
/// has null.
pub(super) fn moving_average<'a>(
    input: &'a Expression,
    alpha: f64,
    partition: &Partition<'a>,
    check: &mut Check<'_>,
) -> Result<Vec<Option<Value>>, Error> {
    let mut average: Option<Number> = None;
    let values = partition.values(input, check)?;
    let averages = values.iter().map(|value| {
        let Some(number) = number_of(value) else {
            return Some(Value::Null);
        };
        let next = match average {
            None => number,
            Some(before) => mixed(before, number, alpha),
        };
        average = Some(next);
        value_of(next)
    });
    Ok(averages.collect())
}

fn mixed(before: Number, number: Number, alpha: f64) -> Number {
    let is_decimal = [before, number]
        .iter()
        .any(|number| matches!(number, Number::Decimal(_)));
    if !is_decimal {
        return Number::Double(number.to_f64() * alpha + before.to_f64() * (1.0 - alpha));
    }
    let alpha = Decimal128::from_f64(alpha);
    let rest = difference(Number::Int(1).pair(Number::Decimal(alpha)));
    let newest = times(number.pair(Number::Decimal(alpha)));
    sum(newest.pair(times(before.pair(rest))))
}

/// How two values change together over the window.
pub(super) fn covariance<'a>(
    [one, two]: &'a [Expression; 2],
    sample: bool,
    bounds: &Bounds,
    partition: &Partition<'a>,
    check: &mut Check<'_>,
) -> Result<Vec<Option<Value>>, Error> {
    let (ones, twos) = (partition.values(one, check)?, partition.values(two, check)?);
    let pairs: Vec<Option<(Number, Number)>> = ones
        .iter()
        .zip(&twos)
        .map(|(one, two)| number_of(one).zip(number_of(two)))
        .collect();
    let mut known: Option<((usize, usize), Moments)> = None;
    let mut covariances = Vec::with_capacity(pairs.len());
    for (begin, end) in bounds.windows(partition, check)? {
        let (mut from, mut moments) = match known {
            Some(((first, last), moments)) if first == begin && last <= end => (last, moments),
            _ => (begin, Moments::default()),
        };
        while from < end {
            check()?;
            if let Some((one, two)) = pairs.get(from).copied().flatten() {
                moments.add(one, two);
            }
            from += 1;
        }
        known = Some(((begin, end), moments));
        covariances.push(Some(moments.finish(sample)));
    }
    Ok(covariances)
}

/// Means and the sum of products of distances from them, kept up pair by pair. Source of the method:
/// T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample variance" (1983).
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    means: (f64, f64),
    products: f64,
    is_decimal: bool,
}

impl Moments {
    fn add(&mut self, one: Number, two: Number) {
        self.is_decimal |= matches!(one, Number::Decimal(_)) || matches!(two, Number::Decimal(_));
        let (one, two) = (one.to_f64(), two.to_f64());
        self.count += 1.0;
        let delta = one - self.means.0;
        self.means.0 += delta / self.count;
        self.means.1 += (two - self.means.1) / self.count;
        self.products += delta * (two - self.means.1);
    }

    fn finish(self, sample: bool) -> Value {
        let count = if sample { self.count - 1.0 } else { self.count };
        match count > 0.0 {
            false => Value::Null,
            true if self.is_decimal => {
                Value::Decimal128(Decimal128::from_f64(self.products / count))
            }
            true => Value::Double(self.products / count),
        }
    }
}
