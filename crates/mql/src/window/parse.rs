//! Parses window functions, such as `{$sum: "$n", window: {documents: [-1, 0]}}`.

use windrow_document::{Array, Decimal128, Document, Value, ValueRef};

use super::bounds::{Bound, Bounds};
use super::{FunctionKind, WindowFunction};
use crate::Error;
use crate::accumulator::Accumulator;
use crate::expression::date::unit::Unit;
use crate::expression::number::Number;
use crate::expression::statistics::Coverage;
use crate::expression::{Expression, Scope};
use crate::sort::{Sort, SortField};

/// The environment of a function while it is parsed.
struct FunctionParser<'p> {
    name: &'p str,
    sort: Option<&'p Sort>,
    scope: &'p Scope,
}

/// Functions without operands and windows.
const RANKS: [&str; 3] = ["$denseRank", "$documentNumber", "$rank"];

/// The accumulators that can be window functions, sorted by name for binary search.
const ACCUMULATORS: &[&str] = &[
    "$addToSet",
    "$avg",
    "$bottom",
    "$bottomN",
    "$concatArrays",
    "$count",
    "$first",
    "$firstN",
    "$last",
    "$lastN",
    "$max",
    "$maxN",
    "$median",
    "$min",
    "$minN",
    "$percentile",
    "$push",
    "$setUnion",
    "$stdDevPop",
    "$stdDevSamp",
    "$sum",
    "$top",
    "$topN",
];

fn invalid<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::failed_to_parse(message))
}

impl WindowFunction {
    /// Parses an output field of a stage with the sort order `sort`.
    ///
    /// # Errors
    ///
    /// - 9: invalid syntax.
    /// - 5339900: the lower bound is above the upper one.
    /// - 5339901, 5339902, 8947400: the window needs another sort order.
    /// - 8947401: the sort order of a range is descending.
    /// - 5371601 to 5371603: invalid use of a rank function.
    /// - 5490710: the unit is longer than a week.
    /// - Errors of accumulators and expressions.
    pub fn parse(
        specification: ValueRef<'_>,
        sort: Option<&Sort>,
        scope: &Scope,
    ) -> Result<WindowFunction, Error> {
        let Some(document) = specification.as_document() else {
            return invalid("The specification of a window function must be an object");
        };
        let mut names = document.iter().map(|(name, _)| name);
        let first = names.find(|name| name.starts_with('$'));
        if first.is_some_and(|name| RANKS.contains(&name)) && document.count() != 1 {
            let message = "Rank style window functions take no other arguments";
            return Err(Error::new(5371601, message));
        }
        let (mut function, mut window) = (None, None);
        for (name, value) in document {
            match name {
                "window" => match value {
                    ValueRef::Document(document) => window = Some(document),
                    _ => return invalid("'window' field must be an object"),
                },
                _ if !name.starts_with('$') => {
                    return invalid(format!("Window function found an unknown argument: {name}"));
                }
                _ if function.is_some() => {
                    return invalid("Cannot specify two functions in one window function");
                }
                _ => function = Some((name, value)),
            }
        }
        let Some((name, operand)) = function else {
            return invalid("Expected a $-prefixed window function");
        };
        let kind = FunctionParser { name, sort, scope }.kind(operand, window)?;
        let bounds = parse_bounds(window, sort, scope)?;
        let kind = match kind {
            FunctionKind::Accumulate(accumulator) if bounds.has_moving_start() => {
                FunctionKind::Accumulate(accumulator.sliding())
            }
            kind => kind,
        };
        Ok(WindowFunction { kind, bounds })
    }
}

impl FunctionParser<'_> {
    fn kind(
        &self,
        operand: ValueRef<'_>,
        window: Option<Document<'_>>,
    ) -> Result<FunctionKind, Error> {
        match self.name {
            "$covariancePop" => self.covariance(operand, Coverage::Population),
            "$covarianceSamp" => self.covariance(operand, Coverage::Sample),
            "$denseRank" => self.rank(operand, FunctionKind::DenseRank),
            "$derivative" if window.is_none() => {
                invalid("$derivative requires explicit window bounds")
            }
            "$derivative" => {
                let (input, unit) = self.rate(operand)?;
                Ok(FunctionKind::Derivative { input, unit })
            }
            "$documentNumber" => self.rank(operand, FunctionKind::DocumentNumber),
            "$expMovingAvg" => self.moving_average(operand, window),
            "$integral" => {
                let (input, unit) = self.rate(operand)?;
                Ok(FunctionKind::Integral { input, unit })
            }
            "$linearFill" => {
                self.without_window(window)?;
                self.single_sort()?;
                Ok(FunctionKind::LinearFill(self.expression(operand)?))
            }
            "$locf" => {
                self.without_window(window)?;
                Ok(FunctionKind::LastObserved(self.expression(operand)?))
            }
            "$rank" => self.rank(operand, FunctionKind::Rank),
            "$shift" => self.shift(operand, window),
            name if ACCUMULATORS.binary_search(&name).is_ok() => {
                let accumulator = Accumulator::from_operand(name, operand, self.scope)?;
                Ok(FunctionKind::Accumulate(accumulator))
            }
            name => invalid(format!("Unrecognized window function, {name}")),
        }
    }

    fn expression(&self, operand: ValueRef<'_>) -> Result<Expression, Error> {
        Expression::parse(operand, self.scope)
    }

    fn without_window(&self, window: Option<Document<'_>>) -> Result<(), Error> {
        match window {
            None => Ok(()),
            Some(_) => invalid(format!("{} does not accept a 'window' field", self.name)),
        }
    }

    fn sorted(&self) -> Result<(), Error> {
        match self.sort {
            Some(_) => Ok(()),
            None => invalid(format!("{} requires a sortBy", self.name)),
        }
    }

    /// Fails with 605001 if the documents are not sorted by exactly one field.
    fn single_sort(&self) -> Result<(), Error> {
        match self.sort.map(Sort::pattern) {
            Some([_]) => Ok(()),
            _ => Err(Error::new(
                605001,
                format!("{} can only be used with a sortBy on one field", self.name),
            )),
        }
    }

    /// Parses named arguments. Other names are refused.
    fn arguments<'v, const N: usize>(
        &self,
        operand: ValueRef<'v>,
        names: [&str; N],
    ) -> Result<[Option<ValueRef<'v>>; N], Error> {
        let Some(document) = operand.as_document() else {
            return invalid(format!("Argument to {} must be an object", self.name));
        };
        let mut found = [None; N];
        for (name, value) in document {
            let index = names.iter().position(|known| *known == name);
            match index.and_then(|index| found.get_mut(index)) {
                Some(slot) => *slot = Some(value),
                None => {
                    let message = format!("{} got unexpected argument: {name}", self.name);
                    return invalid(message);
                }
            }
        }
        Ok(found)
    }

    fn rank(&self, operand: ValueRef<'_>, kind: FunctionKind) -> Result<FunctionKind, Error> {
        let is_empty = operand
            .as_document()
            .is_some_and(|document| document.is_empty());
        if !is_empty {
            let message = format!("{} must be specified with '{{}}' as the value", self.name);
            return Err(Error::new(5371603, message));
        }
        match self.sort.map(Sort::pattern) {
            Some([_]) => Ok(kind),
            _ => Err(Error::new(
                5371602,
                format!(
                    "{} must be specified with a top level sortBy expression with exactly one \
                     element",
                    self.name
                ),
            )),
        }
    }

    fn covariance(&self, operand: ValueRef<'_>, coverage: Coverage) -> Result<FunctionKind, Error> {
        let input = self.expression(operand)?;
        Ok(FunctionKind::Covariance { input, coverage })
    }

    /// Parses `{input, unit}` of `$derivative` and `$integral`.
    fn rate(&self, operand: ValueRef<'_>) -> Result<(Expression, Option<Unit>), Error> {
        match self.sort.map(Sort::pattern) {
            Some([SortField::Path { .. }]) => {}
            Some([_]) => return invalid(format!("{} requires a non-expression sortBy", self.name)),
            Some(_) => return invalid(format!("{} requires a non-compound sortBy", self.name)),
            None => return invalid(format!("{} requires a sortBy", self.name)),
        }
        let [input, unit] = self.arguments(operand, ["input", "unit"])?;
        let Some(input) = input else {
            return invalid(format!("{} requires an 'input' expression", self.name));
        };
        let unit = unit.map(parse_unit).transpose()?;
        if matches!(unit, Some(Unit::Months(_))) {
            return Err(Error::new(5490710, "unit must be 'week' or smaller"));
        }
        Ok((self.expression(input)?, unit))
    }

    /// Parses `{input, N}` or `{input, alpha}` of `$expMovingAvg`.
    fn moving_average(
        &self,
        operand: ValueRef<'_>,
        window: Option<Document<'_>>,
    ) -> Result<FunctionKind, Error> {
        self.without_window(window)?;
        self.sorted()?;
        let [input, count, alpha] = self.arguments(operand, ["input", "N", "alpha"])?;
        let Some(input) = input else {
            return invalid("$expMovingAvg requires an 'input' expression");
        };
        let one = Decimal128::from_i64(1);
        let alpha = match (count, alpha) {
            (Some(count), None) => match count.as_whole() {
                Some(count) if count > 0 => {
                    Decimal128::from_i64(2).divide(Decimal128::from_i64(count).add(one))
                }
                _ => return invalid("'N' field of $expMovingAvg must be a positive integer"),
            },
            (None, Some(alpha)) => match Number::from_value(alpha) {
                Some(alpha) if alpha.to_f64() > 0.0 && alpha.to_f64() < 1.0 => alpha.to_decimal(),
                _ => {
                    return invalid("'alpha' of $expMovingAvg must be between 0 and 1 (exclusive)");
                }
            },
            _ => return invalid("$expMovingAvg requires either 'N' or 'alpha', not both"),
        };
        Ok(FunctionKind::MovingAverage {
            input: self.expression(input)?,
            alpha,
        })
    }

    /// Parses `{output, by, default}` of `$shift`.
    fn shift(
        &self,
        operand: ValueRef<'_>,
        window: Option<Document<'_>>,
    ) -> Result<FunctionKind, Error> {
        self.without_window(window)?;
        self.sorted()?;
        let [output, by, default] = self.arguments(operand, ["output", "by", "default"])?;
        let Some(output) = output else {
            return invalid("$shift requires an 'output' expression");
        };
        let Some(by) = by.and_then(ValueRef::as_whole) else {
            return invalid("$shift requires 'by' as an integer value");
        };
        let default = match default {
            None => Value::Null,
            Some(default) => match self.expression(default)?.to_constant(self.scope)? {
                Some(constant) => constant,
                None => return invalid("'default' of $shift must be a constant"),
            },
        };
        Ok(FunctionKind::Shift {
            input: self.expression(output)?,
            by,
            default,
        })
    }
}

fn parse_unit(value: ValueRef<'_>) -> Result<Unit, Error> {
    let Some(name) = value.as_str() else {
        return invalid("'unit' must be a string");
    };
    Unit::parse(name)
        .ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {name}")))
}

fn parse_bounds(
    window: Option<Document<'_>>,
    sort: Option<&Sort>,
    scope: &Scope,
) -> Result<Bounds, Error> {
    let Some(window) = window else {
        return Ok(Bounds::WHOLE);
    };
    let (mut documents, mut range, mut unit) = (None, None, None);
    for (name, value) in window {
        match name {
            "documents" => documents = Some(value),
            "range" => range = Some(value),
            "unit" => unit = Some(parse_unit(value)?),
            _ => {
                let message = "'window' field can only contain 'documents' as the only argument \
                               or 'range' with an optional 'unit' field";
                return invalid(message);
            }
        }
    }
    match (documents, range, unit) {
        (None, None, None) => Ok(Bounds::WHOLE),
        (Some(documents), None, None) => by_documents(ends("documents", documents)?, sort, scope),
        (None, Some(range), unit) => by_range(ends("range", range)?, unit, sort, scope),
        _ => invalid("Window bounds can specify either 'documents' or 'range', not both"),
    }
}

fn ends<'v>(name: &str, value: ValueRef<'v>) -> Result<[ValueRef<'v>; 2], Error> {
    let ends: Vec<ValueRef<'_>> = value.as_array().unwrap_or(Array::EMPTY).iter().collect();
    match ends.as_slice() {
        [lower, upper] => Ok([*lower, *upper]),
        _ => invalid(format!(
            "Window bounds must be a 2-element array: {name}: {value}"
        )),
    }
}

/// Parses a bound: a keyword, or a constant expression that is an offset.
fn bound<T>(
    value: ValueRef<'_>,
    scope: &Scope,
    offset: impl FnOnce(ValueRef<'_>) -> Option<T>,
) -> Result<Bound<T>, Error> {
    match value {
        ValueRef::String("unbounded") => return Ok(Bound::Unbounded),
        ValueRef::String("current") => return Ok(Bound::Current),
        ValueRef::String(_) => {
            return invalid("Window bounds must be 'unbounded', 'current', or a number.");
        }
        _ => {}
    }
    let expression = Expression::parse(value, scope)?;
    let Some(constant) = expression.to_constant(scope)? else {
        return invalid("Window bounds expression must be a constant.");
    };
    match offset(constant.as_ref()) {
        Some(offset) => Ok(Bound::Offset(offset)),
        None => invalid(format!("Window bounds must be numbers, not {constant}")),
    }
}

fn wrong_order<T>() -> Result<T, Error> {
    Err(Error::new(
        5339900,
        "Lower bound must not exceed upper bound",
    ))
}

fn by_documents(
    ends: [ValueRef<'_>; 2],
    sort: Option<&Sort>,
    scope: &Scope,
) -> Result<Bounds, Error> {
    let whole = |value: ValueRef<'_>| {
        let whole = value.as_whole()?;
        i32::try_from(whole).is_ok().then_some(whole)
    };
    let [lower, upper] = ends.map(|end| bound(end, scope, whole));
    let (lower, upper) = (lower?, upper?);
    if offset(&lower)
        .zip(offset(&upper))
        .is_some_and(|(lower, upper)| lower > upper)
    {
        return wrong_order();
    }
    let is_whole = lower == Bound::Unbounded && upper == Bound::Unbounded;
    if sort.is_some() || is_whole {
        Ok(Bounds::Documents(lower, upper))
    } else {
        Err(Error::new(
            5339901,
            "Document-based bounds require a sortBy",
        ))
    }
}

fn offset(bound: &Bound<i64>) -> Option<i64> {
    match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(0),
        Bound::Offset(offset) => Some(*offset),
    }
}

fn by_range(
    ends: [ValueRef<'_>; 2],
    unit: Option<Unit>,
    sort: Option<&Sort>,
    scope: &Scope,
) -> Result<Bounds, Error> {
    let number = |value: ValueRef<'_>| match unit {
        Some(_) => value.as_whole().map(|_| value.to_value()),
        None => value.is_number().then(|| value.to_value()),
    };
    let [lower, upper] = ends.map(|end| bound(end, scope, number));
    let (lower, upper) = (lower?, upper?);
    let size = |bound: &Bound<Value>| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(0.0),
        Bound::Offset(offset) => offset.as_ref().as_f64(),
    };
    if size(&lower)
        .zip(size(&upper))
        .is_some_and(|(lower, upper)| lower > upper)
    {
        return wrong_order();
    }
    match sort.map(Sort::pattern) {
        Some([SortField::Path { descending, .. }]) => {
            if *descending {
                Err(Error::new(
                    8947401,
                    "Range-based bounds require an ascending sortBy",
                ))
            } else {
                Ok(Bounds::Range { lower, upper, unit })
            }
        }
        Some([_]) => Err(Error::new(
            8947400,
            "Range-based bounds require a non-expression sortBy",
        )),
        _ => Err(Error::new(
            5339902,
            "Range-based bounds require sortBy a single field",
        )),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_of_accumulators_is_sorted() {
        assert!(super::ACCUMULATORS.is_sorted());
    }
}
