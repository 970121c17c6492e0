//! `$percentile` and `$median`: the smallest number that is greater than or equal to a given share
//! of all numbers.

use windrow_document::{Value, ValueRef};
use windrow_invariant::Bug;

use super::parse::{Parser, finish};
use super::tree::{Call, EvalResult, Operator, PreparedArguments};
use super::{Context, ExprValue, Expression};
use crate::Error;

/// The numbers of a group, without NaN.
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

    /// Returns the result: an array with a number for each point, or for `$median` one number. Null
    /// if there are no numbers.
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

    /// Returns the result for this single number.
    fn for_single_number(&self, number: f64) -> Value {
        if self.is_median {
            Value::Double(number)
        } else {
            Value::Array(self.points.iter().map(|_| Value::Double(number)).collect())
        }
    }

    pub fn bytes(&self) -> usize {
        self.numbers.len() * size_of::<f64>()
    }
}

/// The operand `{input: …, p: […], method: 'approximate'}`.
pub(crate) struct PercentileSpecification<'v> {
    pub input: ValueRef<'v>,
    pub points: Vec<f64>,
    pub is_median: bool,
}

/// Evaluates an expression if it is constant.
pub(crate) type EvaluateConstant<'c> = dyn Fn(ValueRef<'_>) -> Result<Option<Value>, Error> + 'c;

/// Parses the operand.
///
/// # Errors
///
/// - `not_document`: the operand is not a document.
/// - 40415, 14, 2, 40414: a field is unknown, has a wrong type or value, or is missing.
/// - 7750300 to 7750303: the points are invalid. They may be a constant expression.
pub(crate) fn parse_specification<'v>(
    name: &str,
    operand: ValueRef<'v>,
    not_document: i32,
    evaluate_constant: &EvaluateConstant<'_>,
) -> Result<PercentileSpecification<'v>, Error> {
    let Some(document) = operand.as_document() else {
        let message = format!("specification must be an object; found {name}: {operand}");
        return Err(Error::new(not_document, message));
    };
    let is_median = name == "$median";
    for (field, value) in document {
        check_field(name, field, value, is_median)?;
    }
    let required = |field: &str| {
        document.get(field).ok_or_else(|| {
            let message = format!("BSON field '{name}.{field}' is missing but a required field");
            Error::new(40414, message)
        })
    };
    let input = required("input")?;
    let points = if is_median {
        None
    } else {
        Some(required("p")?)
    };
    required("method")?;
    Ok(PercentileSpecification {
        input,
        points: points.map_or(Ok(vec![0.5]), |points| {
            parse_points(points, evaluate_constant)
        })?,
        is_median,
    })
}

fn check_field(name: &str, field: &str, value: ValueRef<'_>, is_median: bool) -> Result<(), Error> {
    match field {
        "input" => Ok(()),
        "p" if !is_median => Ok(()),
        "method" => match value {
            ValueRef::String("approximate") => Ok(()),
            ValueRef::String(_) => Err(Error::bad_value(
                "Currently only 'approximate' can be used as percentile 'method'.",
            )),
            other => {
                let found = other.type_of().name();
                let message = format!(
                    "BSON field '{name}.method' is the wrong type '{found}', expected type 'string'"
                );
                Err(Error::new(14, message))
            }
        },
        _ => {
            let message = format!("BSON field '{name}.{field}' is an unknown field.");
            Err(Error::new(40415, message))
        }
    }
}

fn parse_points(
    value: ValueRef<'_>,
    evaluate_constant: &EvaluateConstant<'_>,
) -> Result<Vec<f64>, Error> {
    let error = |code: i32, found: String| {
        let message = format!(
            "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {found}"
        );
        Error::new(code, message)
    };
    let Some(points) = evaluate_constant(value)? else {
        return Err(error(7750300, format!("{value}, which is not constant")));
    };
    let points = points.as_ref();
    let Some(array) = points.as_array().filter(|array| !array.is_empty()) else {
        return Err(error(7750301, points.to_string()));
    };
    let point = |value: ValueRef<'_>| match value.as_f64() {
        None => Err(error(7750302, value.to_string())),
        Some(number) if !(0.0..=1.0).contains(&number) => Err(error(7750303, number.to_string())),
        Some(number) => Ok(number),
    };
    array.iter().map(point).collect()
}

/// Parses `$percentile` or `$median`. Arguments: the input. The points are prepared.
pub(crate) fn parse(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let code = if operator.name == "$median" {
        7436201
    } else {
        7436200
    };
    let evaluate_constant = |value: ValueRef<'_>| parser.constant(value);
    let specification = parse_specification(operator.name, operand, code, &evaluate_constant)?;
    let mut call = Call::new(operator, vec![parser.parse(specification.input)?]);
    let (points, is_median) = (specification.points, specification.is_median);
    call.prepared = PreparedArguments::Points { points, is_median };
    finish(call)
}

pub(crate) fn percentile<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let PreparedArguments::Points { points, is_median } = &call.prepared else {
        let message = format!("{} was not prepared", call.operator.name);
        return Err(Bug::new(message).into());
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
        other => {
            // Every percentile of a single number is that number, also for NaN.
            if let Some(number) = other.and_then(ValueRef::as_f64) {
                return Ok(ExprValue::from(percentiles.for_single_number(number)));
            }
        }
    }
    Ok(percentiles.finish().into())
}
