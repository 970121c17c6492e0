//! Functions that change scores.

use std::sync::Arc;

/// A value that a record has. Lists of these are sorted by id, then by value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordValue {
    /// The id of the record.
    pub id: u64,
    /// The value.
    pub value: f64,
}

/// A function of the score that a query gives to a record, and of values `V` of the record.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreFunction<V> {
    /// The score of the query.
    Relevance,
    /// A number.
    Constant(f64),
    /// A value of the record.
    Value(V),
    /// A bell curve over the distance of a value from an origin.
    Gauss(V, Gauss),
    /// The sum of functions.
    Add(Vec<ScoreFunction<V>>),
    /// The product of functions.
    Multiply(Vec<ScoreFunction<V>>),
    /// The logarithm to base 10.
    Log(Box<ScoreFunction<V>>),
    /// The logarithm to base 10 of the result plus 1.
    Log1p(Box<ScoreFunction<V>>),
}

/// A bell curve: 1 at an origin, and smaller at a greater distance from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauss {
    origin: f64,
    offset: f64,
    /// The factor of the squared distance in the exponent.
    factor: f64,
}

impl Gauss {
    /// Creates the curve. Distances up to `offset` count as 0. At the distance `offset + scale`,
    /// the result is `decay`. `offset` must not be negative, `scale` must be greater than 0, and
    /// `decay` between 0 and 1.
    pub fn new(origin: f64, offset: f64, scale: f64, decay: f64) -> Gauss {
        Gauss {
            origin,
            offset,
            factor: decay.ln() / (scale * scale),
        }
    }

    fn at(self, value: f64) -> f64 {
        let distance = ((value - self.origin).abs() - self.offset).max(0.0);
        (distance * distance * self.factor).exp()
    }
}

/// Names the list of values that a function reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueNumber {
    /// The number of the list: see [`Source::values`](crate::Source::values).
    pub number: usize,
    /// The value of records without one.
    pub undefined: f64,
}

/// A function with the values that it reads.
pub type BoundFunction = ScoreFunction<RecordValues>;

/// Values of records. If a record has several values, the smallest one counts.
#[derive(Clone, Debug)]
pub struct RecordValues {
    values: Arc<[RecordValue]>,
    undefined: f64,
    /// The least and the greatest value.
    range: Interval,
}

impl RecordValues {
    /// Creates the values. Records without one have the value `undefined`.
    pub fn new(values: Arc<[RecordValue]>, undefined: f64) -> RecordValues {
        let all = values.iter().map(|it| it.value);
        RecordValues {
            range: all.fold(Interval::single(undefined), Interval::including),
            values,
            undefined,
        }
    }

    /// Returns the value of a record.
    fn value(&self, id: u64) -> f64 {
        let first = self.values.partition_point(|it| it.id < id);
        let found = self.values.get(first).filter(|it| it.id == id);
        found.map_or(self.undefined, |it| it.value)
    }
}

/// The smallest and the greatest of some numbers. Both are infinite if they are not known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    least: f64,
    greatest: f64,
}

impl Interval {
    const ALL: Interval = Interval {
        least: f64::NEG_INFINITY,
        greatest: f64::INFINITY,
    };

    fn single(number: f64) -> Interval {
        Interval::between(number, number)
    }

    /// Creates an interval. It has all numbers if one of the bounds is NaN.
    fn between(least: f64, greatest: f64) -> Interval {
        if least.is_nan() || greatest.is_nan() {
            Interval::ALL
        } else {
            Interval { least, greatest }
        }
    }

    fn including(self, number: f64) -> Interval {
        Interval::between(self.least.min(number), self.greatest.max(number))
    }

    fn plus(self, other: Interval) -> Interval {
        Interval::between(self.least + other.least, self.greatest + other.greatest)
    }

    fn times(self, other: Interval) -> Interval {
        let ends = [
            self.least * other.least,
            self.least * other.greatest,
            self.greatest * other.least,
            self.greatest * other.greatest,
        ];
        if ends.iter().any(|end| end.is_nan()) {
            return Interval::ALL;
        }
        let [first, rest @ ..] = ends;
        rest.into_iter()
            .fold(Interval::single(first), Interval::including)
    }

    fn log(self, added: f64) -> Interval {
        Interval::between(
            logarithm(self.least + added),
            logarithm(self.greatest + added),
        )
    }
}

/// Returns the logarithm to base 10; negative infinity for numbers that have none.
fn logarithm(number: f64) -> f64 {
    if number > 0.0 {
        number.log10()
    } else {
        f64::NEG_INFINITY
    }
}

impl<V> ScoreFunction<V> {
    /// Returns the function with other values.
    ///
    /// # Errors
    /// Fails if `map` does.
    pub fn try_map<W, E>(
        &self,
        map: &mut dyn FnMut(&V) -> Result<W, E>,
    ) -> Result<ScoreFunction<W>, E> {
        let mut all = |functions: &[ScoreFunction<V>]| -> Result<Vec<_>, E> {
            functions.iter().map(|one| one.try_map(map)).collect()
        };
        Ok(match self {
            ScoreFunction::Relevance => ScoreFunction::Relevance,
            ScoreFunction::Constant(number) => ScoreFunction::Constant(*number),
            ScoreFunction::Add(functions) => ScoreFunction::Add(all(functions)?),
            ScoreFunction::Multiply(functions) => ScoreFunction::Multiply(all(functions)?),
            ScoreFunction::Value(value) => ScoreFunction::Value(map(value)?),
            ScoreFunction::Gauss(value, gauss) => ScoreFunction::Gauss(map(value)?, *gauss),
            ScoreFunction::Log(inner) => ScoreFunction::Log(Box::new(inner.try_map(map)?)),
            ScoreFunction::Log1p(inner) => ScoreFunction::Log1p(Box::new(inner.try_map(map)?)),
        })
    }
}

/// Returns the score, limited to numbers that are finite, and neither negative nor NaN.
fn clamped(score: f64) -> f64 {
    if score > 0.0 {
        score.min(SCORE_MAX)
    } else {
        0.0
    }
}

/// The greatest result of a function. Sums of several such scores are finite.
const SCORE_MAX: f64 = 1e30;

impl BoundFunction {
    /// Returns the new score of a record whose score in the query is `relevance`. A negative result
    /// becomes 0.
    pub fn score(&self, id: u64, relevance: f64) -> f64 {
        clamped(self.result(id, relevance))
    }

    /// Returns an upper bound of the new scores of all records whose score in the query is at most
    /// `relevance`.
    pub fn bound(&self, relevance: f64) -> f64 {
        clamped(self.interval(relevance).greatest)
    }

    fn result(&self, id: u64, relevance: f64) -> f64 {
        let of = |one: &BoundFunction| one.result(id, relevance);
        match self {
            ScoreFunction::Relevance => relevance,
            ScoreFunction::Constant(number) => *number,
            ScoreFunction::Value(values) => values.value(id),
            ScoreFunction::Gauss(values, gauss) => gauss.at(values.value(id)),
            ScoreFunction::Add(all) => all.iter().map(of).sum(),
            ScoreFunction::Multiply(all) => all.iter().map(of).product(),
            ScoreFunction::Log(inner) => logarithm(of(inner)),
            ScoreFunction::Log1p(inner) => logarithm(of(inner) + 1.0),
        }
    }

    fn interval(&self, relevance: f64) -> Interval {
        let of = |one: &BoundFunction| one.interval(relevance);
        match self {
            ScoreFunction::Relevance => Interval::between(0.0, relevance),
            ScoreFunction::Constant(number) => Interval::single(*number),
            ScoreFunction::Value(values) => values.range,
            ScoreFunction::Gauss(..) => Interval::between(0.0, 1.0),
            ScoreFunction::Add(all) => all
                .iter()
                .map(of)
                .fold(Interval::single(0.0), Interval::plus),
            ScoreFunction::Multiply(all) => all
                .iter()
                .map(of)
                .fold(Interval::single(1.0), Interval::times),
            ScoreFunction::Log(inner) => of(inner).log(0.0),
            ScoreFunction::Log1p(inner) => of(inner).log(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn bound(function: &ScoreFunction<ValueNumber>) -> BoundFunction {
        let values = [(1, 10.0), (1, 11.0), (2, -4.0), (5, 1_000.0)];
        let values: Arc<[RecordValue]> = values.map(|(id, value)| RecordValue { id, value }).into();
        let mut open = |value: &ValueNumber| {
            assert_eq!(value.number, 0);
            Ok::<_, Infallible>(RecordValues::new(values.clone(), value.undefined))
        };
        function.try_map(&mut open).unwrap()
    }

    fn value(undefined: f64) -> ValueNumber {
        ValueNumber {
            number: 0,
            undefined,
        }
    }

    fn check(function: ScoreFunction<ValueNumber>, id: u64, relevance: f64, expected: f64) {
        let function = bound(&function);
        let found = function.score(id, relevance);
        assert!((found - expected).abs() < 1e-12, "{function:?}: {found}");
        let limit = function.bound(relevance);
        assert!(found <= limit && limit.is_finite(), "{function:?}: {limit}");
    }

    #[test]
    fn functions_have_their_results() {
        let of = |undefined| ScoreFunction::Value(value(undefined));
        check(ScoreFunction::Relevance, 7, 2.5, 2.5);
        check(of(3.0), 1, 2.5, 10.0);
        check(of(3.0), 3, 2.5, 3.0);
        // A negative result becomes 0.
        check(of(3.0), 2, 2.5, 0.0);
        let product = ScoreFunction::Multiply(vec![ScoreFunction::Relevance, of(3.0)]);
        check(product, 5, 2.0, 2_000.0);
        let sum = ScoreFunction::Add(vec![ScoreFunction::Constant(5.0), of(0.0)]);
        check(sum, 2, 2.0, 1.0);
        check(ScoreFunction::Log(Box::new(of(0.0))), 5, 1.0, 3.0);
        check(ScoreFunction::Log(Box::new(of(0.0))), 9, 1.0, 0.0);
        check(ScoreFunction::Log1p(Box::new(of(99.0))), 9, 1.0, 2.0);
        let gauss =
            |origin, offset| ScoreFunction::Gauss(value(0.0), Gauss::new(origin, offset, 5.0, 0.5));
        check(gauss(10.0, 0.0), 1, 1.0, 1.0);
        check(gauss(15.0, 0.0), 1, 1.0, 0.5);
        check(gauss(17.0, 2.0), 1, 1.0, 0.5);
        check(gauss(20.0, 0.0), 1, 1.0, 0.0625);
    }

    #[test]
    fn results_stay_finite() {
        let huge = || ScoreFunction::Constant(f64::MAX);
        check(ScoreFunction::Multiply(vec![huge(), huge()]), 1, 1.0, 1e30);
        let opposite = vec![
            ScoreFunction::Multiply(vec![huge(), huge()]),
            ScoreFunction::Multiply(vec![huge(), ScoreFunction::Constant(-f64::MAX)]),
        ];
        check(ScoreFunction::Add(opposite), 1, 1.0, 0.0);
    }
}
