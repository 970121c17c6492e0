//! `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop`, `$stdDevSamp`, `$mergeObjects`, `$percentile` and
//! `$median` as expressions: over their arguments, or over the elements of one array.

use windrow_document::ValueRef;

use super::call::{Answer, Call, Prepared};
use super::operator::{Operator, finish};
use super::{Computed, Context, Expression, Scope};
use crate::Error;
use crate::accumulator::{self, Percentiles};

pub(crate) fn accumulated<'a>(call: &'a Call, context: &Context<'a>) -> Answer<'a> {
    let name = call.operator.name;
    if let [argument] = &*call.arguments {
        let value = argument.evaluate(context)?;
        if let Some(array) = value.as_array() {
            let mut elements = array.iter().map(|element| Ok(Computed::Borrowed(element)));
            return Ok(accumulator::over_values(name, &mut elements)?.into());
        }
        return Ok(accumulator::over_values(name, &mut std::iter::once(Ok(value)))?.into());
    }
    let mut values = call
        .arguments
        .iter()
        .map(|argument| argument.evaluate(context));
    Ok(accumulator::over_values(name, &mut values)?.into())
}

/// Arguments: the input. The points are prepared.
pub(crate) fn parse_percentile(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    scope: &Scope,
) -> Result<Expression, Error> {
    let specification = accumulator::parse_percentile(operator.name, operand)?;
    let mut call = Call::new(
        operator,
        vec![Expression::parse(specification.input, scope)?],
    );
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
