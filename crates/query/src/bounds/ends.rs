//! The two keys between which all entries of a scan lie, where it is one interval of the index: each field
//! one value, then a field with an interval, then fields with all their values.

use windrow_document::{DocumentBuf, DocumentBuilder, Value, ValueRef};
use windrow_index::{Definition, KeyKind};

use super::IndexBounds;
use super::interval::{Interval, Intervals};
use crate::source::Direction;

/// See the module.
pub struct Ends {
    pub first: DocumentBuf,
    pub includes_first: bool,
    pub last: DocumentBuf,
    pub includes_last: bool,
}

impl Ends {
    /// None where it is not one interval.
    pub fn of(definition: &Definition, bounds: &IndexBounds, direction: Direction) -> Option<Ends> {
        let (mut first, mut last) = (DocumentBuilder::new(), DocumentBuilder::new());
        let (mut includes_first, mut includes_last) = (true, true);
        let mut are_points = true;
        for (field, intervals) in definition.fields.iter().zip(&bounds.fields) {
            let interval = only(intervals)?;
            let descends = field.kind == KeyKind::Descending;
            let downward = descends != (direction == Direction::Backward);
            let (mut start, mut end) = (&interval.low, &interval.high);
            let (mut with_start, mut with_end) = (interval.includes_low, interval.includes_high);
            if downward {
                std::mem::swap(&mut start, &mut end);
                std::mem::swap(&mut with_start, &mut with_end);
            }
            let path = field.path.to_string();
            if are_points {
                first.append(&path, start.as_ref());
                last.append(&path, end.as_ref());
                (includes_first, includes_last) = (with_start, with_end);
                are_points = interval.is_point();
            } else if interval.is_full() {
                // What is left out is left out with all that stands behind it.
                first.append(&path, one_of(includes_first, start, end));
                last.append(&path, one_of(includes_last, end, start));
            } else {
                return None;
            }
        }
        Some(Ends {
            first: first.finish(),
            includes_first,
            last: last.finish(),
            includes_last,
        })
    }
}

fn only(intervals: &Intervals) -> Option<&Interval> {
    match intervals.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

fn one_of<'a>(is_in: bool, near: &'a Value, far: &'a Value) -> ValueRef<'a> {
    if is_in { near.as_ref() } else { far.as_ref() }
}
