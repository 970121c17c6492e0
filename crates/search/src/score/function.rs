//! Functions that change scores.

use std::sync::Arc;

/// A value of a record. Values are in increasing order of record ids.
pub type RecordValue = (u64, f64);

/// A function of the score that a query gives to a record, and of values of the record.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreFunction {
    /// The score of the query.
    Relevance,
    /// A number.
    Constant(f64),
    /// A value of the record.
    Value(ValueNumber),
    /// A bell curve: 1 at an origin, and `decay` at a distance of `offset + scale` from it.
    Gauss {
        /// The value whose distance counts.
        value: ValueNumber,
        /// The origin.
        origin: f64,
        /// Distances up to it count as 0. Not negative.
        offset: f64,
        /// The distance behind the offset at which the result is `decay`. Above 0.
        scale: f64,
        /// Between 0 and 1.
        decay: f64,
    },
    /// The sum of functions.
    Add(Vec<ScoreFunction>),
    /// The product of functions.
    Multiply(Vec<ScoreFunction>),
    /// The logarithm to base 10.
    Log(Box<ScoreFunction>),
    /// The logarithm to base 10 of 1 more.
    Log1p(Box<ScoreFunction>),
}

/// A value of records: see [`Source::values`](crate::Source::values).
#[derive(Clone, Debug, PartialEq)]
pub struct ValueNumber {
    /// The number of the values.
    pub number: usize,
    /// What records without a value have.
    pub undefined: f64,
}

/// A function with the values that it reads.
#[derive(Clone, Debug)]
pub struct BoundFunction {
    kind: BoundKind,
}

#[derive(Clone, Debug)]
enum BoundKind {
    Relevance,
    Constant(f64),
    Value(BoundValue),
    Gauss {
        value: BoundValue,
        origin: f64,
        offset: f64,
        /// The factor of the squared distance in the exponent.
        factor: f64,
    },
    Add(Vec<BoundFunction>),
    Multiply(Vec<BoundFunction>),
    Log(Box<BoundFunction>),
    Log1p(Box<BoundFunction>),
}

#[derive(Clone, Debug)]
struct BoundValue {
    records: Arc<[RecordValue]>,
    undefined: f64,
    /// The least and the greatest value.
    range: Interval,
}

impl BoundValue {
    fn of(&self, id: u64) -> f64 {
        let found = self.records.binary_search_by_key(&id, |record| record.0);
        let record = found.ok().and_then(|at| self.records.get(at));
        record.map_or(self.undefined, |record| record.1)
    }
}

/// The least and the greatest of some numbers. Infinite if they are not known.
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

    fn of(number: f64) -> Interval {
        Interval::between(number, number)
    }

    /// Returns all numbers if one is not a number.
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
            .fold(Interval::of(first), Interval::including)
    }

    fn log(self, added: f64) -> Interval {
        Interval::between(
            logarithm(self.least + added),
            logarithm(self.greatest + added),
        )
    }
}

/// Returns the logarithm to base 10, negative infinity for numbers that have none.
fn logarithm(number: f64) -> f64 {
    if number > 0.0 {
        number.log10()
    } else {
        f64::NEG_INFINITY
    }
}

impl ScoreFunction {
    /// Returns the function with its values, which `open` returns by their numbers.
    ///
    /// # Errors
    /// Fails if `open` does.
    pub fn bind<E>(
        &self,
        open: &mut dyn FnMut(usize) -> Result<Arc<[RecordValue]>, E>,
    ) -> Result<BoundFunction, E> {
        let kind = match self {
            ScoreFunction::Relevance => BoundKind::Relevance,
            ScoreFunction::Constant(number) => BoundKind::Constant(*number),
            ScoreFunction::Value(value) => BoundKind::Value(value.bind(open)?),
            ScoreFunction::Gauss {
                value,
                origin,
                offset,
                scale,
                decay,
            } => BoundKind::Gauss {
                value: value.bind(open)?,
                origin: *origin,
                offset: *offset,
                factor: decay.ln() / (scale * scale),
            },
            ScoreFunction::Add(all) => BoundKind::Add(bind_all(all, open)?),
            ScoreFunction::Multiply(all) => BoundKind::Multiply(bind_all(all, open)?),
            ScoreFunction::Log(inner) => BoundKind::Log(Box::new(inner.bind(open)?)),
            ScoreFunction::Log1p(inner) => BoundKind::Log1p(Box::new(inner.bind(open)?)),
        };
        Ok(BoundFunction { kind })
    }
}

impl ValueNumber {
    fn bind<E>(
        &self,
        open: &mut dyn FnMut(usize) -> Result<Arc<[RecordValue]>, E>,
    ) -> Result<BoundValue, E> {
        let records = open(self.number)?;
        let values = records.iter().map(|record| record.1);
        Ok(BoundValue {
            range: values.fold(Interval::of(self.undefined), Interval::including),
            records,
            undefined: self.undefined,
        })
    }
}

fn bind_all<E>(
    all: &[ScoreFunction],
    open: &mut dyn FnMut(usize) -> Result<Arc<[RecordValue]>, E>,
) -> Result<Vec<BoundFunction>, E> {
    all.iter().map(|one| one.bind(open)).collect()
}

/// A score that is finite, and neither negative nor NaN.
fn clamped(score: f64) -> f64 {
    if score > 0.0 {
        score.min(SCORE_MAX)
    } else {
        0.0
    }
}

/// The greatest result of a function. Sums of several stay finite.
const SCORE_MAX: f64 = 1e30;

impl BoundFunction {
    /// Returns the score of a record to which the query gives the score `relevance`. It is not negative:
    /// a negative result is 0.
    pub fn score(&self, id: u64, relevance: f64) -> f64 {
        clamped(self.result(id, relevance))
    }

    /// Returns a score that no record has more than, to which the query gives `relevance` at most.
    pub fn bound(&self, relevance: f64) -> f64 {
        clamped(self.interval(relevance).greatest)
    }

    fn result(&self, id: u64, relevance: f64) -> f64 {
        let of = |one: &BoundFunction| one.result(id, relevance);
        match &self.kind {
            BoundKind::Relevance => relevance,
            BoundKind::Constant(number) => *number,
            BoundKind::Value(value) => value.of(id),
            BoundKind::Gauss {
                value,
                origin,
                offset,
                factor,
            } => {
                let distance = ((value.of(id) - origin).abs() - offset).max(0.0);
                (distance * distance * factor).exp()
            }
            BoundKind::Add(all) => all.iter().map(of).sum(),
            BoundKind::Multiply(all) => all.iter().map(of).product(),
            BoundKind::Log(inner) => logarithm(of(inner)),
            BoundKind::Log1p(inner) => logarithm(of(inner) + 1.0),
        }
    }

    fn interval(&self, relevance: f64) -> Interval {
        let of = |one: &BoundFunction| one.interval(relevance);
        match &self.kind {
            BoundKind::Relevance => Interval::between(0.0, relevance),
            BoundKind::Constant(number) => Interval::of(*number),
            BoundKind::Value(value) => value.range,
            BoundKind::Gauss { .. } => Interval::between(0.0, 1.0),
            BoundKind::Add(all) => all.iter().map(of).fold(Interval::of(0.0), Interval::plus),
            BoundKind::Multiply(all) => all.iter().map(of).fold(Interval::of(1.0), Interval::times),
            BoundKind::Log(inner) => of(inner).log(0.0),
            BoundKind::Log1p(inner) => of(inner).log(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn bound(function: ScoreFunction) -> BoundFunction {
        let records: Arc<[RecordValue]> = Arc::new([(1, 10.0), (2, -4.0), (5, 1_000.0)]);
        let mut open = |number| {
            assert_eq!(number, 0);
            Ok::<_, Infallible>(records.clone())
        };
        function.bind(&mut open).unwrap()
    }

    fn value(undefined: f64) -> ValueNumber {
        ValueNumber {
            number: 0,
            undefined,
        }
    }

    fn check(function: ScoreFunction, id: u64, relevance: f64, expected: f64) {
        let function = bound(function);
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
        // A negative result is 0.
        check(of(3.0), 2, 2.5, 0.0);
        let product = ScoreFunction::Multiply(vec![ScoreFunction::Relevance, of(3.0)]);
        check(product, 5, 2.0, 2_000.0);
        let sum = ScoreFunction::Add(vec![ScoreFunction::Constant(5.0), of(0.0)]);
        check(sum, 2, 2.0, 1.0);
        check(ScoreFunction::Log(Box::new(of(0.0))), 5, 1.0, 3.0);
        check(ScoreFunction::Log(Box::new(of(0.0))), 9, 1.0, 0.0);
        check(ScoreFunction::Log1p(Box::new(of(99.0))), 9, 1.0, 2.0);
        let gauss = |origin, offset| ScoreFunction::Gauss {
            value: value(0.0),
            origin,
            offset,
            scale: 5.0,
            decay: 0.5,
        };
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
