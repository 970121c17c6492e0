//! The first and the last key of a scan whose bounds are one interval of the index: fields with one
//! value each, then a field with an interval, then unrestricted fields.

use windrow_document::{DocumentBuf, DocumentBuilder, Value, ValueRef};
use windrow_index::{Definition, KeyKind};

use super::IndexBounds;
use super::interval::{Interval, Intervals};
use crate::source::Direction;

/// The first and the last key of a scan, in the direction of the scan.
pub struct KeyEnds {
    /// The first key.
    pub first: DocumentBuf,
    /// `true` if the first key is part of the range.
    pub includes_first: bool,
    /// The last key.
    pub last: DocumentBuf,
    /// `true` if the last key is part of the range.
    pub includes_last: bool,
}

impl KeyEnds {
    /// Returns the ends of the bounds. `None` if the bounds are not one interval of the index.
    pub fn new(
        definition: &Definition,
        bounds: &IndexBounds,
        direction: Direction,
    ) -> Option<KeyEnds> {
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
                // An exclusive end excludes all keys with that prefix.
                first.append(&path, one_of(includes_first, start, end));
                last.append(&path, one_of(includes_last, end, start));
            } else {
                return None;
            }
        }
        Some(KeyEnds {
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
