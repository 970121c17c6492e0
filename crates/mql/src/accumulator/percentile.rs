//! `$percentile` and `$median` of groups.

use windrow_document::ValueRef;

use super::operator::{AccumulatorOperator, ParsedAccumulator};
use crate::Error;
use crate::expression::percentile::{PercentileSpecification, parse_specification};
use crate::expression::{Expression, Scope};

pub(super) fn parse(
    name: &str,
    operand: ValueRef<'_>,
    scope: &Scope,
) -> Result<ParsedAccumulator, Error> {
    let code = if name == "$median" { 7436100 } else { 7429703 };
    let PercentileSpecification {
        input,
        points,
        is_median,
    } = parse_specification(name, operand, code, &|value| {
        Expression::parse(value, scope)?.to_constant(scope)
    })?;
    let operator = AccumulatorOperator::Percentile { points, is_median };
    Ok(ParsedAccumulator {
        operator,
        input: Expression::parse(input, scope)?,
    })
}
