//! `$percentile` and `$median`: the number below or at which so many of all numbers lie.

use windrow_document::{Value, ValueRef};

use super::parse::{Parser, finish};
use super::tree::{Answer, Call, Operator, Prepared};
use super::{Computed, Context, Expression};
use crate::Error;

/// All numbers of a group; NaN among them counts as the least.
#[derive(Clone, Debug)]
pub(crate) struct Percentiles {
    numbers: Vec<f64>,
    points: Vec<f64>,
    is_median: bool,
}

impl Percentiles {
    pub fn new(points: Vec<f64>, is_median: bool) -> Percentiles {
        Percentiles {
            numbers: Vec::new(),
            points,
            is_median,
        }
    }

    pub fn add(&mut self, number: f64) {
        if !number.is_nan() {
            self.numbers.push(number);
        }
    }

    pub fn merge(&mut self, other: Percentiles) {
        self.numbers.extend(other.numbers);
    }

    /// An array with a number for each point, or for `$median` one number; null without numbers.
    pub fn finish(mut self) -> Value {
        self.numbers.sort_by(f64::total_cmp);
        let at = |point: &f64| {
            let rank = (point * self.numbers.len() as f64).ceil() as usize;
            let number = self.numbers.get(rank.saturating_sub(1));
            number.map_or(Value::Null, |number| Value::Double(*number))
        };
        if self.is_median {
            return at(&0.5);
        }
        Value::Array(self.points.iter().map(at).collect())
    }

    pub fn bytes(&self) -> usize {
        self.numbers.len() * size_of::<f64>()
    }
}

/// The fields of `{input: …, p: […], method: 'approximate'}`.
pub(crate) struct Specification<'v> {
    pub input: ValueRef<'v>,
    pub points: Vec<f64>,
    pub is_median: bool,
}

pub(crate) fn parse_specification<'v>(
    name: &str,
    operand: ValueRef<'v>,
) -> Result<Specification<'v>, Error> {
    let Some(document) = operand.as_document() else {
        let message = format!("specification must be an object; found {name}: {operand}");
        return Err(Error::new(7436100, message));
    };
    let is_median = name == "$median";
    for (field, _) in document {
        if !matches!(field, "input" | "method") && (is_median || field != "p") {
            let message = format!("BSON field '{name}.{field}' is an unknown field.");
            return Err(Error::new(40415, message));
        }
    }
    let required = |field: &str| {
        document.get(field).ok_or_else(|| {
            let message = format!("BSON field '{name}.{field}' is missing but a required field");
            Error::new(40414, message)
        })
    };
    let input = required("input")?;
    if required("method")?.as_str() != Some("approximate") {
        let message = "Currently only 'approximate' can be used as percentile 'method'.";
        return Err(Error::bad_value(message));
    }
    let points = if is_median {
        vec![0.5]
    } else {
        parse_points(required("p")?)?
    };
    Ok(Specification {
        input,
        points,
        is_median,
    })
}

fn parse_points(value: ValueRef<'_>) -> Result<Vec<f64>, Error> {
    let Some(array) = value.as_array().filter(|array| !array.is_empty()) else {
        let message = format!(
            "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {value}"
        );
        return Err(Error::new(7750300, message));
    };
    let point = |value: ValueRef<'_>| {
        let number = value.as_f64().ok_or_else(|| {
            Error::new(
                7750302,
                format!(
                    "The $percentile 'p' field must be an array of numbers, but found: {value}"
                ),
            )
        })?;
        if !(0.0..=1.0).contains(&number) {
            let message = format!(
                "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {number}"
            );
            return Err(Error::new(7750303, message));
        }
        Ok(number)
    };
    array.iter().map(point).collect()
}

/// Arguments: the input. The points are prepared.
pub(crate) fn parse(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let specification = parse_specification(operator.name, operand)?;
    let mut call = Call::new(operator, vec![parser.parse(specification.input)?]);
    let (points, is_median) = (specification.points, specification.is_median);
    call.prepared = Prepared::Points { points, is_median };
    finish(call)
}

pub(crate) fn percentile<'a>(call: &'a Call, context: &Context<'a>) -> Answer<'a> {
    let Prepared::Points { points, is_median } = &call.prepared else {
        return Ok(Computed::Missing);
    };
    let input = call.value(0, context)?;
    let mut percentiles = Percentiles::new(points.clone(), *is_median);
    match input.as_ref() {
        Some(ValueRef::Array(array)) => {
            array
                .iter()
                .filter_map(ValueRef::as_f64)
                .for_each(|number| percentiles.add(number));
        }
        other => other
            .and_then(ValueRef::as_f64)
            .into_iter()
            .for_each(|n| percentiles.add(n)),
    }
    Ok(percentiles.finish().into())
}
