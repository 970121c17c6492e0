//! Which documents a window has: by their places, or by how far the value of the sort is away.

use std::cmp::Ordering;
use std::ops::Range;

use windrow_document::{Value, ValueRef};
use windrow_invariant::Bug;

use super::{Check, Partition};
use crate::Error;
use crate::expression::arithmetic::sum;
use crate::expression::date::shift::shifted;
use crate::expression::date::unit::Unit;
use crate::expression::date::zone::Zone;
use crate::expression::number::Number;
use crate::sort::SortField;

/// The ends of a window, both within it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bounds {
    Documents(Bound<i64>, Bound<i64>),
    Range {
        lower: Bound<Value>,
        upper: Bound<Value>,
        unit: Option<Unit>,
    },
}

/// One end, seen from the current document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bound<T> {
    Unbounded,
    /// The document itself: of a range, too, not those that are ordered by the same value.
    Current,
    Offset(T),
}

/// The documents from the first place up to but without the second.
pub(super) type Window = (usize, usize);

impl Bounds {
    /// The whole partition.
    pub const WHOLE: Bounds = Bounds::Documents(Bound::Unbounded, Bound::Unbounded);

    /// Whether the first document of a window is not always that of the partition.
    pub(super) fn begin_moves(&self) -> bool {
        match self {
            Bounds::Documents(lower, _) => *lower != Bound::Unbounded,
            Bounds::Range { lower, .. } => *lower != Bound::Unbounded,
        }
    }

    /// The window of each document. Errors 5429413, 5429414 and 5429513 where a range does not fit the
    /// values that the documents are ordered by.
    pub(super) fn windows(
        &self,
        partition: &Partition<'_>,
        check: &mut Check<'_>,
    ) -> Result<Vec<Window>, Error> {
        let count = partition.documents.len();
        match self {
            Bounds::Documents(lower, upper) => {
                let window = |place| by_places(place, count, lower, upper);
                Ok((0..count).map(window).collect())
            }
            Bounds::Range { lower, upper, unit } => {
                by_range(partition, (lower, upper), *unit, check)
            }
        }
    }
}

fn by_places(place: usize, count: usize, lower: &Bound<i64>, upper: &Bound<i64>) -> Window {
    let at = |offset: i64| {
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        usize::try_from(place.saturating_add(offset).max(0)).unwrap_or(count)
    };
    let begin = match lower {
        Bound::Unbounded => 0,
        Bound::Current => place,
        Bound::Offset(offset) => at(*offset).min(count),
    };
    let end = match upper {
        Bound::Unbounded => count,
        Bound::Current => place + 1,
        Bound::Offset(offset) => at(offset.saturating_add(1)).min(count),
    };
    (begin, end.max(begin))
}

/// For an index or a range of documents that a partition does not have.
pub(super) fn outside(window: Range<usize>, count: usize) -> Bug {
    Bug::new(format!("the window {window:?} of {count} documents"))
}

/// The value of the sort's one field in each document; null where it is missing.
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
    (lower, upper): (&Bound<Value>, &Bound<Value>),
    unit: Option<Unit>,
    check: &mut Check<'_>,
) -> Result<Vec<Window>, Error> {
    let values = sort_values(partition);
    let place_of = |limit: Value, is_before: fn(Ordering) -> bool| {
        values.partition_point(|other| is_before(other.as_ref().compare(limit.as_ref())))
    };
    let mut windows = Vec::with_capacity(values.len());
    for (place, value) in values.iter().enumerate() {
        check()?;
        check_base(value.as_ref(), unit)?;
        let begin = match lower {
            Bound::Unbounded => 0,
            Bound::Current => place,
            Bound::Offset(offset) => place_of(limit(value, offset, unit)?, Ordering::is_lt),
        };
        let end = match upper {
            Bound::Unbounded => values.len(),
            Bound::Current => place + 1,
            Bound::Offset(offset) => place_of(limit(value, offset, unit)?, Ordering::is_le),
        };
        windows.push((begin, end.max(begin)));
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

/// The base moved by an offset. Bases and offsets that do not fit together are refused before.
fn limit(base: &Value, offset: &Value, unit: Option<Unit>) -> Result<Value, Bug> {
    let (base, offset) = (base.as_ref(), offset.as_ref());
    let mismatch = || Bug::new(format!("moving a value of a window by {offset}"));
    if let (ValueRef::DateTime(millis), Some(unit)) = (base, unit) {
        let amount = offset.as_whole().ok_or_else(mismatch)?;
        let moved = shifted(millis, unit, amount, &Zone::UTC);
        let end = if amount < 0 { i64::MIN } else { i64::MAX };
        return Ok(Value::DateTime(moved.unwrap_or(end)));
    }
    let numbers = Number::of(base).zip(Number::of(offset));
    let (base, offset) = numbers.ok_or_else(mismatch)?;
    Ok(sum(base.pair(offset)).to_value_ref().to_value())
}
