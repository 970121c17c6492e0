//! Operators on arrays: elements, parts and indexes.

use windrow_document::{Array, ArrayBuf, Value, ValueRef};

use super::context::VariableSource;
use super::offset_cache::IndexedArray;
use super::tree::{Call, EvalResult, PreparedArguments, has_strings};
use super::{Context, ExprValue};
use crate::Error;
use crate::memory::{LimitedArrayBuilder, LimitedVec, VALUE_BYTES_MAX, limit_error};

/// Returns the value as an array. Fails with `code` if it is not an array. `what` names the
/// argument in the message.
pub(crate) fn array<'v>(
    value: &'v ExprValue<'_>,
    code: i32,
    what: &str,
) -> Result<Array<'v>, Error> {
    value.as_array().ok_or_else(|| {
        Error::new(
            code,
            format!(
                "{what} must be an array, but is of type {}",
                value.type_name()
            ),
        )
    })
}

/// An argument that must be an int: how messages name it, and the error codes.
pub(crate) struct IntArgument<'n> {
    pub name: &'n str,
    /// The code if the value is not a number.
    pub not_number: i32,
    /// The code if the number is not an int.
    pub not_int: i32,
}

impl IntArgument<'_> {
    /// Returns the value as an int.
    pub fn read(&self, value: &ExprValue<'_>) -> Result<i32, Error> {
        let name = self.name;
        let Some(number) = value.as_ref().filter(|value| value.is_number()) else {
            let found = value.type_name();
            return Err(Error::new(
                self.not_number,
                format!("{name} must be a numeric value, but is {found}"),
            ));
        };
        let whole = number
            .as_whole()
            .and_then(|whole| i32::try_from(whole).ok());
        whole.ok_or_else(|| {
            Error::new(
                self.not_int,
                format!("{name} must be representable as a 32-bit integer: {number}"),
            )
        })
    }
}

/// Returns the elements of the first argument, whose value is `value`. Their cached offsets are
/// used if the value is borrowed, because then it lives longer than a loop around this call.
fn indexed_array<'v, 'l>(
    call: &Call,
    context: &Context<'l>,
    value: &ExprValue<'_>,
    array: Array<'v>,
) -> IndexedArray<'l, 'v> {
    let is_borrowed = matches!(value, ExprValue::Borrowed(_));
    let known = context.offset_cache.filter(|_| is_borrowed);
    let known = known.and_then(|known| match call.argument(0).path_source()? {
        VariableSource::Current | VariableSource::Root => known.for_variable(None),
        VariableSource::Local(frame) => known.for_variable(Some(*frame)),
        _ => None,
    });
    IndexedArray::new(array, known)
}

/// Returns an element of a computed array. It is borrowed if the array is.
pub(crate) fn element<'a>(value: ExprValue<'a>, index: usize) -> ExprValue<'a> {
    match value {
        ExprValue::Borrowed(ValueRef::Array(array)) => array.get(index).into(),
        other => match other.as_array().and_then(|array| array.get(index)) {
            Some(element) => ExprValue::from(element.to_value()),
            None => ExprValue::Missing,
        },
    }
}

/// Returns the array index for an operand. A negative operand counts from the end.
fn index_of(index: i32, count: impl FnOnce() -> usize) -> Option<usize> {
    if index >= 0 {
        return Some(index as usize);
    }
    count().checked_sub(index.unsigned_abs() as usize)
}

pub(crate) fn array_elem_at<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (value, index) = (call.value(0, context)?, call.value(1, context)?);
    if value.is_nullish() || index.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let elements = array(&value, 28689, "$arrayElemAt's first argument")?;
    let argument = IntArgument {
        name: "$arrayElemAt's second argument",
        not_number: 28690,
        not_int: 28691,
    };
    let index = argument.read(&index)?;
    let elements = indexed_array(call, context, &value, elements);
    let Some(index) = index_of(index, || elements.count()) else {
        return Ok(ExprValue::Missing);
    };
    match value {
        ExprValue::Borrowed(ValueRef::Array(array)) => {
            Ok(indexed_array(call, context, &value, array)
                .get(index)
                .into())
        }
        owned => Ok(element(owned, index)),
    }
}

pub(crate) fn first<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    end(call, context, |_| 0)
}

pub(crate) fn last<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    end(call, context, |array| array.count().saturating_sub(1))
}

fn end<'a>(call: &'a Call, context: &Context<'a>, index: fn(Array<'_>) -> usize) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let index = index(array(&value, 28689, call.operator.name)?);
    Ok(element(value, index))
}

pub(crate) fn concat_arrays<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let mut all = LimitedArrayBuilder::new(call.operator.name);
    for argument in &call.arguments {
        let value = argument.evaluate(context)?;
        if value.is_nullish() {
            return Ok(ExprValue::NULL);
        }
        all.extend(array(&value, 28664, "$concatArrays' argument")?)?;
    }
    Ok(all.finish().into())
}

pub(crate) fn contains<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (value, list) = (call.value(0, context)?, call.value(1, context)?);
    let list = array(&list, 40081, "$in's second argument")?;
    let Some(value) = value.as_ref() else {
        return Ok(false.into());
    };
    if let PreparedArguments::Sorted(sorted) = &call.prepared
        && (context.collation.is_none() || !has_strings(value))
    {
        let found = sorted.binary_search_by(|one| one.as_ref().compare(value));
        return Ok(found.is_ok().into());
    }
    Ok(list
        .iter()
        .any(|element| context.equals(element, value))
        .into())
}

/// Sorts a long constant list once, for binary searches.
pub(crate) fn prepare_contains(call: &mut Call) -> Result<(), Error> {
    const ELEMENTS_MIN: usize = 8;
    // Only a list that is written in the expression is sorted, because a computed constant is
    // cached within a budget, and a copy of it would not be.
    let Some(list) = call
        .argument(1)
        .inline_constant()
        .and_then(ValueRef::as_array)
    else {
        return Ok(());
    };
    let mut values: Vec<Value> = list.iter().map(ValueRef::to_value).collect();
    if values.len() >= ELEMENTS_MIN {
        values.sort_by(|one, other| one.as_ref().compare(other.as_ref()));
        values.dedup_by(|next, previous| next.as_ref().equals(previous.as_ref()));
        call.prepared = PreparedArguments::Sorted(values.into());
    }
    Ok(())
}

/// Returns the range of a search: `start` and `end` are the third and the fourth argument, which
/// may be absent.
pub(crate) fn bounds<'a>(
    call: &'a Call,
    context: &Context<'a>,
    length: usize,
) -> Result<(usize, usize), Error> {
    let start = bound(call, context, 2)?.unwrap_or(0);
    let end = bound(call, context, 3)?.unwrap_or(length);
    Ok((start, end.min(length)))
}

fn bound<'a>(call: &'a Call, context: &Context<'a>, index: usize) -> Result<Option<usize>, Error> {
    if call.argument(index).is_absent() {
        return Ok(None);
    }
    let name = format!(
        "{} requires an integral starting or ending index, which",
        call.operator.name
    );
    let argument = IntArgument {
        name: &name,
        not_number: 40096,
        not_int: 40096,
    };
    let index = argument.read(&call.value(index, context)?)?;
    usize::try_from(index).map(Some).map_err(|_| {
        Error::new(
            40097,
            format!("{} requires a nonnegative index", call.operator.name),
        )
    })
}

pub(crate) fn index_of_array<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let list = call.value(0, context)?;
    if list.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let list = array(&list, 40090, "$indexOfArray's first argument")?;
    let searched = call.value(1, context)?;
    let (start, end) = bounds(call, context, list.count())?;
    let Some(searched) = searched.as_ref() else {
        return Ok((-1).into());
    };
    let mut elements = list.iter().enumerate().take(end).skip(start);
    let found = elements.find(|(_, value)| context.equals(*value, searched));
    Ok(found.map_or(-1, |(index, _)| index as i32).into())
}

pub(crate) fn is_array<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    Ok(call.value(0, context)?.as_array().is_some().into())
}

/// Bytes that a number of a `$range` counts against the memory limit.
const NUMBER_BYTES: i64 = 16;

pub(crate) fn range<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    const START: IntArgument<'_> = IntArgument {
        name: "$range's starting value",
        not_number: 34443,
        not_int: 34444,
    };
    const END: IntArgument<'_> = IntArgument {
        name: "$range's ending value",
        not_number: 34445,
        not_int: 34446,
    };
    const STEP: IntArgument<'_> = IntArgument {
        name: "$range's step value",
        not_number: 34447,
        not_int: 34448,
    };
    let start = START.read(&call.value(0, context)?)?;
    let end = END.read(&call.value(1, context)?)?;
    let step = if call.argument(2).is_absent() {
        1
    } else {
        STEP.read(&call.value(2, context)?)?
    };
    if step == 0 {
        return Err(Error::new(34449, "$range requires a non-zero step value"));
    }
    let (start, end, step) = (i64::from(start), i64::from(end), i64::from(step));
    let forward = step > 0;
    let bytes = ((end - start) / step).saturating_mul(NUMBER_BYTES);
    if bytes >= VALUE_BYTES_MAX as i64 {
        return Err(limit_error(
            call.operator.name,
            bytes as usize,
            VALUE_BYTES_MAX,
        ));
    }
    let numbers = std::iter::successors(Some(start), |number| Some(number + step))
        .take_while(|number| {
            if forward {
                *number < end
            } else {
                *number > end
            }
        })
        .map(|number| ValueRef::Int32(number as i32));
    let mut list = LimitedArrayBuilder::new(call.operator.name);
    list.extend(numbers)?;
    Ok(list.finish().into())
}

pub(crate) fn reverse_array<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let input = array(&value, 34435, "The argument to $reverseArray")?;
    let values = LimitedVec::collect_from(input.iter(), call.operator.name)?;
    Ok(values.iter().rev().copied().collect::<ArrayBuf>().into())
}

pub(crate) fn size<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    let array = array(&value, 17124, "The argument to $size")?;
    let array = indexed_array(call, context, &value, array);
    Ok((array.count() as i32).into())
}

/// `$slice`: `[array, count]` or `[array, position, count]`. A negative number counts from the end.
pub(crate) fn slice<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    const SECOND: IntArgument<'_> = IntArgument {
        name: "Second argument to $slice",
        not_number: 28725,
        not_int: 28726,
    };
    const THIRD: IntArgument<'_> = IntArgument {
        name: "Third argument to $slice",
        not_number: 28727,
        not_int: 28728,
    };
    let (value, second) = (call.value(0, context)?, call.value(1, context)?);
    if value.is_nullish() || second.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let elements = array(&value, 28724, "First argument to $slice")?;
    let number = SECOND.read(&second)?;
    let count = elements.count();
    let (start, length) = if call.argument(2).is_absent() {
        let length = number.unsigned_abs() as usize;
        (
            if number < 0 {
                count.saturating_sub(length)
            } else {
                0
            },
            length,
        )
    } else {
        let third = call.value(2, context)?;
        if third.is_nullish() {
            return Ok(ExprValue::NULL);
        }
        let length = THIRD.read(&third)?;
        if length <= 0 {
            let message = format!("Third argument to $slice must be positive: {length}");
            return Err(Error::new(28729, message));
        }
        (index_of(number, || count).unwrap_or(0), length as usize)
    };
    Ok(elements
        .iter()
        .skip(start)
        .take(length)
        .collect::<ArrayBuf>()
        .into())
}
