//! `$sortArray`, and `$firstN`, `$lastN`, `$minN`, `$maxN`.

use windrow_document::{Array, ArrayBuf, Collation, ValueRef, collation};

use super::array::array;
use super::array_sort_order::ArraySortOrder;
use super::parse::{NamedArguments, Parser, finish};
use super::tree::{Call, EvalResult, Operator, PreparedArguments};
use super::{Context, ExprValue, Expression};
use crate::Error;
use crate::interrupt::sort_by;
use crate::memory::LimitedVec;

static SORT_ARRAY: NamedArguments = NamedArguments {
    not_document: 2942500,
    unknown: 2942501,
    names: &[("input", Some(2942502)), ("sortBy", Some(2942503))],
};

/// Parses `$sortArray`. Arguments: the input. The sort order is prepared.
pub(crate) fn parse_sort_array(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let values = SORT_ARRAY.values(operator.name, operand)?;
    let (Some(Some(input)), Some(Some(order))) = (values.first(), values.get(1)) else {
        return Err(Error::new(
            2942502,
            "$sortArray requires 'input' and 'sortBy'",
        ));
    };
    let mut call = Call::new(operator, vec![parser.parse(*input)?]);
    call.prepared = PreparedArguments::ArraySortOrder(ArraySortOrder::parse(*order)?);
    finish(call)
}

pub(crate) fn sort_array<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let input = array(&value, 2942504, "The input argument to $sortArray")?;
    let mut elements = LimitedVec::collect_from(input.iter(), call.operator.name)?;
    if let PreparedArguments::ArraySortOrder(order) = &call.prepared {
        sort_by(&mut elements, |one, other| {
            order.compare(*one, *other, context.collation)
        })?;
    }
    Ok(elements.iter().copied().collect::<ArrayBuf>().into())
}

pub(crate) static N_ARGUMENTS: NamedArguments = NamedArguments {
    not_document: 5787801,
    unknown: 5787901,
    names: &[("n", Some(5787906)), ("input", Some(5787907))],
};

/// Parses the operand `n`, a positive whole number of values to return.
pub(crate) fn parse_count(name: &str, value: &ExprValue<'_>) -> Result<usize, Error> {
    let Some(number) = value.as_ref().filter(|value| value.is_number()) else {
        let message = format!(
            "Value for 'n' must be of integral type, but found {}",
            value.type_name()
        );
        return Err(Error::new(5787902, message));
    };
    let Some(whole) = number.as_whole() else {
        return Err(Error::new(
            5787903,
            format!("Value for 'n' must be of integral type, but found {number}"),
        ));
    };
    match usize::try_from(whole) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::new(
            5787908,
            format!("'n' of {name} must be greater than 0, found {whole}"),
        )),
    }
}

/// The elements in the result of an operator.
type ElementsResult<'v> = Result<LimitedVec<'v, ValueRef<'v>>, Error>;

/// Returns as many elements of an array as an operator selects.
type Select = for<'v> fn(&'v Call, Array<'v>, usize, Option<&Collation>) -> ElementsResult<'v>;

fn select<'a>(call: &'a Call, context: &Context<'a>, select: Select) -> EvalResult<'a> {
    let count = parse_count(call.operator.name, &call.value(0, context)?)?;
    let value = call.value(1, context)?;
    let input = array(&value, 5788200, "Input")?;
    let elements = select(call, input, count, context.collation)?;
    Ok(elements.iter().copied().collect::<ArrayBuf>().into())
}

pub(crate) fn first_n<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    select(call, context, |call, array, count, _| {
        LimitedVec::collect_from(array.iter().take(count), call.operator.name)
    })
}

pub(crate) fn last_n<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    select(call, context, |call, array, count, _| {
        let skipped = array.count().saturating_sub(count);
        LimitedVec::collect_from(array.iter().skip(skipped), call.operator.name)
    })
}

fn sorted<'v>(
    call: &'v Call,
    array: Array<'v>,
    collation: Option<&Collation>,
) -> ElementsResult<'v> {
    let values = array.iter().filter(|value| !value.is_nullish());
    let mut values = LimitedVec::collect_from(values, call.operator.name)?;
    sort_by(&mut values, |one, other| {
        collation::compare(collation, *one, *other)
    })?;
    Ok(values)
}

pub(crate) fn min_n<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    select(call, context, |call, array, count, collation| {
        let mut values = sorted(call, array, collation)?;
        values.truncate(count);
        Ok(values)
    })
}

pub(crate) fn max_n<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    select(call, context, |call, array, count, collation| {
        let mut values = sorted(call, array, collation)?;
        values.reverse();
        values.truncate(count);
        Ok(values)
    })
}
