//! The documents of a window, by index or by the range of their sort values.

use std::cmp::Ordering;
use std::ops::Range;

use windrow_document::{Value, ValueRef};
use windrow_invariant::Bug;

use super::Partition;
use crate::Error;
use crate::expression::arithmetic::sum;
use crate::expression::date::shift::add_units;
use crate::expression::date::unit::Unit;
use crate::expression::date::zone::Zone;
use crate::expression::number::Number;
use crate::interrupt::count_work;
use crate::sort::SortField;

/// The bounds of a window. Both are inclusive.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bounds {
    Documents(Bound<i64>, Bound<i64>),
    Range {
        lower: Bound<Value>,
        upper: Bound<Value>,
        unit: Option<Unit>,
    },
}

/// One bound, relative to the current document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bound<T> {
    Unbounded,
    /// The current document. Also in a range this excludes other documents with the same sort
    /// value.
    Current,
    Offset(T),
}

/// The documents of a window: those from index `start` up to but not including index `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub start: usize,
    pub end: usize,
}

impl Window {
    /// Returns the number of documents.
    pub fn length(self) -> usize {
        self.end.saturating_sub(self.start)
    }
}

impl Bounds {
    /// The whole partition.
    pub const WHOLE: Bounds = Bounds::Documents(Bound::Unbounded, Bound::Unbounded);

    /// Returns `true` if the first document of a window is not always the first of the partition.
    pub(super) fn has_moving_start(&self) -> bool {
        match self {
            Bounds::Documents(lower, _) => *lower != Bound::Unbounded,
            Bounds::Range { lower, .. } => *lower != Bound::Unbounded,
        }
    }

    /// Returns the window of each document. Fails with 5429413, 5429414 or 5429513 if the range
    /// does not fit the type of the sort values.
    pub(super) fn windows(&self, partition: &Partition<'_>) -> Result<Vec<Window>, Error> {
        let count = partition.documents.len();
        match self {
            Bounds::Documents(lower, upper) => {
                let window = |index| by_indexes(index, count, lower, upper);
                Ok((0..count).map(window).collect())
            }
            Bounds::Range { lower, upper, unit } => by_range(partition, lower, upper, *unit),
        }
    }
}

fn by_indexes(index: usize, count: usize, lower: &Bound<i64>, upper: &Bound<i64>) -> Window {
    let at = |offset: i64| {
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        usize::try_from(index.saturating_add(offset).max(0)).unwrap_or(count)
    };
    let start = match lower {
        Bound::Unbounded => 0,
        Bound::Current => index,
        Bound::Offset(offset) => at(*offset).min(count),
    };
    let end = match upper {
        Bound::Unbounded => count,
        Bound::Current => index + 1,
        Bound::Offset(offset) => at(offset.saturating_add(1)).min(count),
    };
    Window {
        start,
        end: end.max(start),
    }
}

/// Returns the broken invariant that a window is outside of its partition.
pub(super) fn outside(window: Range<usize>, count: usize) -> Bug {
    Bug::new(format!("the window {window:?} of {count} documents"))
}

/// Returns the value of the only sort field in each document. Null if it is missing.
pub(super) fn sort_values(partition: &Partition<'_>) -> Vec<Value> {
    let path = partition.sort.and_then(|sort| match sort.pattern() {
        [SortField::Path { path, .. }] => Some(path),
        _ => None,
    });
    let value = |document: &windrow_document::Document<'_>| {
        let mut value = Some(ValueRef::Document(*document));
        for name in path.iter().flat_map(|path| path.components()) {
            let inner = value.and_then(ValueRef::as_document);
            value = inner.and_then(|inner| inner.get(name.name()));
        }
        value.map_or(Value::Null, ValueRef::to_value)
    };
    partition.documents.iter().map(value).collect()
}

fn by_range(
    partition: &Partition<'_>,
    lower: &Bound<Value>,
    upper: &Bound<Value>,
    unit: Option<Unit>,
) -> Result<Vec<Window>, Error> {
    let values = sort_values(partition);
    let index_of = |limit: Value, is_before: fn(Ordering) -> bool| {
        values.partition_point(|other| is_before(other.as_ref().compare(limit.as_ref())))
    };
    let mut windows = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        count_work(1)?;
        check_base(value.as_ref(), unit)?;
        let start = match lower {
            Bound::Unbounded => 0,
            Bound::Current => index,
            Bound::Offset(offset) => index_of(limit(value, offset, unit)?, Ordering::is_lt),
        };
        let end = match upper {
            Bound::Unbounded => values.len(),
            Bound::Current => index + 1,
            Bound::Offset(offset) => index_of(limit(value, offset, unit)?, Ordering::is_le),
        };
        windows.push(Window {
            start,
            end: end.max(start),
        });
    }
    Ok(windows)
}

fn check_base(value: ValueRef<'_>, unit: Option<Unit>) -> Result<(), Error> {
    let found = value.type_of().name();
    match (value, unit) {
        (ValueRef::DateTime(_), Some(_)) => Ok(()),
        (ValueRef::DateTime(_), None) => Err(Error::new(
            5429413,
            "For windows that involve date or time ranges, a unit must be provided.",
        )),
        (_, Some(_)) => Err(Error::new(
            5429513,
            format!("Invalid range: Expected the sortBy field to be a Date, but it was {found}"),
        )),
        (value, None) if value.is_number() => Ok(()),
        _ => Err(Error::new(
            5429414,
            format!("Invalid range: Expected the sortBy field to be a number, but it was {found}"),
        )),
    }
}

/// Returns the sort value moved by an offset. Offsets that do not fit the type were refused before.
fn limit(base: &Value, offset: &Value, unit: Option<Unit>) -> Result<Value, Bug> {
    let (base, offset) = (base.as_ref(), offset.as_ref());
    let mismatch = || Bug::new(format!("moving a value of a window by {offset}"));
    if let (ValueRef::DateTime(millis), Some(unit)) = (base, unit) {
        let amount = offset.as_whole().ok_or_else(mismatch)?;
        let added = add_units(millis, unit, amount, &Zone::UTC);
        let end = if amount < 0 { i64::MIN } else { i64::MAX };
        return Ok(Value::DateTime(added.unwrap_or(end)));
    }
    let numbers = Number::from_value(base).zip(Number::from_value(offset));
    let (base, offset) = numbers.ok_or_else(mismatch)?;
    Ok(sum(base.pair(offset)).to_value_ref().to_value())
}
