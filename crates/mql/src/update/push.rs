//! `$push`: appends a value, or each value of `{$each: […]}` with `$position`, `$sort` and
//! `$slice`, which are applied in this order.

use std::cmp::Ordering;
use std::sync::Arc;

use windrow_document::{Array, ArrayBuf, Document, DocumentBuilder, Value, ValueRef};

use super::modifier::{Change, Execution, FieldTarget, Modifier, NewValue};
use crate::Error;
use crate::interrupt::sort_by;
use crate::sort::direction::SortDirection;

#[derive(Debug)]
struct Push {
    values: Vec<Value>,
    /// The index at which values are inserted. Negative values count from the end.
    position: Option<i64>,
    sort: Option<PushSort>,
    /// The number of elements to keep. A negative value keeps the last ones.
    slice: Option<i64>,
}

#[derive(Debug)]
enum PushSort {
    /// Sorts by the elements themselves.
    Whole(SortDirection),
    /// Sorts by paths within the elements.
    Fields(Vec<(Box<str>, SortDirection)>),
}

pub(super) fn parse(_path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    let modifiers = operand
        .as_document()
        .filter(|document| document.contains("$each"));
    let push = match modifiers {
        Some(modifiers) => parse_modifiers(modifiers)?,
        None => Push {
            values: vec![operand.to_value()],
            position: None,
            sort: None,
            slice: None,
        },
    };
    Ok(Arc::new(push))
}

fn parse_modifiers(modifiers: Document<'_>) -> Result<Push, Error> {
    let mut push = Push {
        values: Vec::new(),
        position: None,
        sort: None,
        slice: None,
    };
    for (name, value) in modifiers {
        match name {
            "$each" => push.values = parse_each(value)?,
            "$position" => push.position = Some(parse_integer(name, value)?),
            "$slice" => push.slice = Some(parse_integer(name, value)?),
            "$sort" => push.sort = Some(parse_sort(value)?),
            _ => {
                return Err(Error::bad_value(format!(
                    "Unrecognized clause in $push: {name}"
                )));
            }
        }
    }
    Ok(push)
}

fn parse_each(value: ValueRef<'_>) -> Result<Vec<Value>, Error> {
    match value.as_array() {
        Some(array) => Ok(array.iter().map(ValueRef::to_value).collect()),
        None => Err(Error::bad_value(format!(
            "The argument to $each in $push must be an array but it was of type: {}",
            value.type_of().name()
        ))),
    }
}

fn parse_integer(name: &str, value: ValueRef<'_>) -> Result<i64, Error> {
    value.as_whole().ok_or_else(|| {
        Error::bad_value(format!(
            "The value for {name} must be an integer value but was given: {value}"
        ))
    })
}

fn parse_sort(value: ValueRef<'_>) -> Result<PushSort, Error> {
    let Some(fields) = value.as_document() else {
        return parse_direction(value).map(PushSort::Whole);
    };
    let mut parsed = Vec::new();
    for (path, direction) in fields {
        if path.split('.').any(str::is_empty) {
            return Err(Error::bad_value(format!(
                "The $sort field is a dotted field but has an empty part: {path}"
            )));
        }
        parsed.push((path.into(), parse_direction(direction)?));
    }
    if parsed.is_empty() {
        return Err(Error::bad_value(
            "The $sort pattern is empty when it should be a set of fields.",
        ));
    }
    Ok(PushSort::Fields(parsed))
}

fn parse_direction(value: ValueRef<'_>) -> Result<SortDirection, Error> {
    SortDirection::from_value(value).ok_or_else(|| {
        Error::bad_value(format!(
            "The $sort element value must be either 1 or -1, not {value}"
        ))
    })
}

impl Push {
    fn is_plain(&self) -> bool {
        self.position.is_none() && self.sort.is_none() && self.slice.is_none()
    }

    /// Returns the changed array, or `None` if nothing changes. Returns the error of the interrupt
    /// if the evaluation must stop.
    fn result(
        &self,
        array: Array<'_>,
        execution: &Execution<'_>,
    ) -> Result<Option<ArrayBuf>, Error> {
        if self.is_plain() {
            let values = self.values.iter().map(Value::as_ref);
            return Ok((!self.values.is_empty()).then(|| with_appended(array, values)));
        }
        let mut elements: Vec<ValueRef<'_>> = array.iter().collect();
        let mut is_changed = !self.values.is_empty();
        let at = insertion_point(self.position, elements.len());
        elements.splice(at..at, self.values.iter().map(Value::as_ref));
        if let Some(sort) = &self.sort {
            sort_by(&mut elements, |one, other| {
                sort.compare(*one, *other, execution)
            })?;
            // A sort of a non-empty array counts as a change, even if the array was sorted before.
            is_changed |= !elements.is_empty();
        }
        if let Some(slice) = self.slice {
            let count = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
            if elements.len() > count {
                let dropped = elements.len() - count;
                let range = if slice < 0 {
                    0..dropped
                } else {
                    count..elements.len()
                };
                elements.drain(range);
                is_changed = true;
            }
        }
        Ok(is_changed.then(|| elements.into_iter().collect()))
    }
}

fn insertion_point(position: Option<i64>, count: usize) -> usize {
    let Some(position) = position else {
        return count;
    };
    let distance = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
    if position < 0 {
        count.saturating_sub(distance)
    } else {
        distance.min(count)
    }
}

impl PushSort {
    /// Compares elements. Arrays compare as a whole here, unlike in the sort of a query.
    fn compare(
        &self,
        one: ValueRef<'_>,
        other: ValueRef<'_>,
        execution: &Execution<'_>,
    ) -> Ordering {
        match self {
            PushSort::Whole(direction) => direction.apply(execution.compare(one, other)),
            PushSort::Fields(fields) => fields
                .iter()
                .map(|(path, direction)| {
                    let order = execution.compare(field(one, path), field(other, path));
                    direction.apply(order)
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal),
        }
    }
}

/// Returns the value at the path within an element. A missing value is null. An array index is a
/// name.
fn field<'a>(element: ValueRef<'a>, path: &str) -> ValueRef<'a> {
    let mut value = element;
    for name in path.split('.') {
        let inner = match value {
            ValueRef::Document(document) => document.get(name),
            ValueRef::Array(array) => array.as_document().get(name),
            _ => None,
        };
        match inner {
            Some(inner) => value = inner,
            None => return ValueRef::Null,
        }
    }
    value
}

/// Returns the array with values appended. The existing bytes are copied as they are.
pub(super) fn with_appended<'v>(
    array: Array<'_>,
    values: impl Iterator<Item = ValueRef<'v>>,
) -> ArrayBuf {
    let mut builder = DocumentBuilder::extend(array.as_bytes().to_vec());
    for (index, value) in (array.count()..).zip(values) {
        builder.append(&index.to_string(), value);
    }
    ArrayBuf::from_document(builder.finish())
}

impl Modifier for Push {
    fn change<'a>(
        &'a self,
        current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        let Some(array) = current.as_array() else {
            return Err(Error::bad_value(format!(
                "The field '{}' must be an array but is of type {} in document {{_id: {}}}",
                at.path,
                current.type_of().name(),
                at.execution.root.get("_id").unwrap_or(ValueRef::Null)
            )));
        };
        Ok(self
            .result(array, at.execution)?
            .map_or(Change::Keep, Change::owned))
    }

    fn create<'a>(&'a self, at: &FieldTarget<'a>) -> Result<Option<NewValue<'a>>, Error> {
        let created = self.result(Array::EMPTY, at.execution)?.unwrap_or_default();
        Ok(Some(NewValue::owned(Value::Array(created))))
    }

    fn only_appends(&self, current: ValueRef<'_>) -> bool {
        let count = current.as_array().map_or(0, Array::count);
        let at_end = insertion_point(self.position, count) == count;
        count > 0 && at_end && self.sort.is_none() && self.slice.is_none()
    }
}
