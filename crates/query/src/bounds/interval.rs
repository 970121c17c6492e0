//! Intervals of values in MongoDB's sort order, and sorted lists of intervals.

mod print;

use std::cmp::Ordering;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::sync::Arc;

use windrow_document::collation;
use windrow_document::{ArrayBuf, Collation, DocumentBuf, ObjectId, Timestamp, Type, Value, key};

use crate::key_range::KeyRange;

/// A range of values. Each end is inclusive or exclusive.
#[derive(Clone, Debug)]
pub struct Interval {
    /// The lower end.
    pub low: Value,
    /// The upper end.
    pub high: Value,
    /// `true` if the lower end is part of the interval.
    pub includes_low: bool,
    /// `true` if the upper end is part of the interval.
    pub includes_high: bool,
    /// The range of the ascending key bytes of the values.
    keys: KeyRange,
    /// The collation of strings. `None`: by their bytes.
    collation: Option<Arc<Collation>>,
}

impl PartialEq for Interval {
    fn eq(&self, other: &Interval) -> bool {
        self.keys == other.keys
    }
}

/// How many values of a type an interval contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// No values.
    None,
    /// Some values.
    Some,
    /// All values.
    All,
}

/// Returns the smallest bytes that are greater than all bytes with this prefix.
pub fn after(bytes: &[u8]) -> Vec<u8> {
    let mut next = bytes.to_vec();
    while let Some(last) = next.pop() {
        if last < 0xFF {
            next.push(last + 1);
            return next;
        }
    }
    vec![0xFF; 2]
}

fn key_bytes(value: &Value, descending: bool, collation: Option<&Collation>) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::append_with_collation(&mut bytes, value.as_ref(), descending, collation);
    bytes
}

/// An end of an interval.
pub fn end(value: Value, is_included: bool) -> Bound<Value> {
    if is_included {
        Included(value)
    } else {
        Excluded(value)
    }
}

impl Interval {
    /// Returns the interval between two values. Without bounds it reaches from MinKey to MaxKey,
    /// both inclusive.
    pub fn new(low: Bound<Value>, high: Bound<Value>) -> Interval {
        Interval::with_collation(low, high, None)
    }

    fn with_collation(
        low: Bound<Value>,
        high: Bound<Value>,
        collation: Option<Arc<Collation>>,
    ) -> Interval {
        let is_included = |end: &Bound<Value>| !matches!(end, Excluded(_));
        let (includes_low, includes_high) = (is_included(&low), is_included(&high));
        let value = |end, unbounded| match end {
            Included(value) | Excluded(value) => value,
            Unbounded => unbounded,
        };
        let mut interval = Interval {
            low: value(low, Value::MinKey),
            high: value(high, Value::MaxKey),
            includes_low,
            includes_high,
            keys: KeyRange {
                from: Vec::new(),
                to: Vec::new(),
            },
            collation,
        };
        interval.keys = interval.encode(false);
        interval
    }

    /// The same interval, in the order of a collation.
    fn collated(&self, collation: &Arc<Collation>) -> Interval {
        let low = end(self.low.clone(), self.includes_low);
        let high = end(self.high.clone(), self.includes_high);
        Interval::with_collation(low, high, Some(collation.clone()))
    }

    /// `[value, value]`.
    pub fn point(value: Value) -> Interval {
        let from = key_bytes(&value, false, None);
        Interval {
            low: value.clone(),
            high: value,
            includes_low: true,
            includes_high: true,
            keys: KeyRange {
                to: after(&from),
                from,
            },
            collation: None,
        }
    }

    /// `[MinKey, MaxKey]`.
    pub fn full() -> Interval {
        Interval::new(Unbounded, Unbounded)
    }

    /// Returns `true` if the interval contains all values.
    pub fn is_full(&self) -> bool {
        self.low == Value::MinKey
            && self.high == Value::MaxKey
            && self.includes_low
            && self.includes_high
    }

    /// Returns `true` if the interval contains exactly one value.
    pub fn is_point(&self) -> bool {
        self.includes_low && self.includes_high && self.keys.to == after(&self.keys.from)
    }

    fn is_empty(&self) -> bool {
        self.keys.from >= self.keys.to
    }

    /// All values that are comparable with this type, with the ends that MongoDB prints.
    pub fn from_type(type_of: Type) -> Interval {
        let text = |text: &str| Value::String(text.to_owned());
        let code = || Value::JavaScript(String::new());
        let scoped = || Value::JavaScriptWithScope {
            code: String::new(),
            scope: DocumentBuf::new(),
        };
        let binary = || Value::Binary {
            subtype: 0,
            bytes: Vec::new(),
        };
        let pointer = || Value::DbPointer {
            namespace: String::new(),
            id: ObjectId([0; 12]),
        };
        let regex = || Value::Regex {
            pattern: String::new(),
            options: String::new(),
        };
        let (low, high, includes_high) = match type_of {
            Type::MinKey => return Interval::point(Value::MinKey),
            Type::MaxKey => return Interval::point(Value::MaxKey),
            Type::Undefined => return Interval::point(Value::Undefined),
            Type::Null => return Interval::point(Value::Null),
            Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128 => {
                (Value::Double(f64::NAN), Value::Double(f64::INFINITY), true)
            }
            Type::String | Type::Symbol => (text(""), Value::Document(DocumentBuf::new()), false),
            Type::Document => (
                Value::Document(DocumentBuf::new()),
                Value::Array(ArrayBuf::new()),
                false,
            ),
            Type::Array => (Value::Array(ArrayBuf::new()), binary(), false),
            Type::Binary => (binary(), Value::ObjectId(ObjectId([0; 12])), false),
            Type::ObjectId => (
                Value::ObjectId(ObjectId([0; 12])),
                Value::ObjectId(ObjectId([0xFF; 12])),
                true,
            ),
            Type::Bool => (Value::Bool(false), Value::Bool(true), true),
            Type::DateTime => (Value::DateTime(i64::MIN), Value::DateTime(i64::MAX), true),
            Type::Timestamp => (
                Value::Timestamp(Timestamp::from_bits(0)),
                Value::Timestamp(Timestamp::from_bits(u64::MAX)),
                true,
            ),
            Type::Regex => (regex(), pointer(), false),
            Type::DbPointer => (pointer(), code(), false),
            Type::JavaScript => (code(), scoped(), false),
            Type::JavaScriptWithScope => (scoped(), Value::MaxKey, false),
        };
        Interval::new(Included(low), end(high, includes_high))
    }

    /// The strings with this prefix.
    pub fn from_prefix(prefix: &str) -> Interval {
        let low = Included(Value::String(prefix.to_owned()));
        let mut characters: Vec<char> = prefix.chars().collect();
        while let Some(last) = characters.pop() {
            if let Some(next) = following(last) {
                characters.push(next);
                let high = Value::String(characters.into_iter().collect());
                return Interval::new(low, Excluded(high));
            }
        }
        Interval::new(low, Excluded(Interval::from_type(Type::String).high))
    }

    fn intersect(&self, other: &Interval) -> Interval {
        let (lower, upper) = (
            if self.keys.from >= other.keys.from {
                self
            } else {
                other
            },
            if self.keys.to <= other.keys.to {
                self
            } else {
                other
            },
        );
        Interval {
            low: lower.low.clone(),
            includes_low: lower.includes_low,
            high: upper.high.clone(),
            includes_high: upper.includes_high,
            keys: KeyRange {
                from: lower.keys.from.clone(),
                to: upper.keys.to.clone(),
            },
            collation: lower.collation.clone().or_else(|| upper.collation.clone()),
        }
    }

    /// Returns the range of the key bytes of the values, ascending or descending.
    pub fn key_range(&self, descending: bool) -> KeyRange {
        if descending {
            self.encode(true)
        } else {
            self.keys.clone()
        }
    }

    /// Encodes the values as key bytes, and returns their range.
    fn encode(&self, descending: bool) -> KeyRange {
        let bytes = |value| key_bytes(value, descending, self.collation.as_deref());
        let (low, high) = (bytes(&self.low), bytes(&self.high));
        let after_if =
            |is_after: bool, bytes: Vec<u8>| if is_after { after(&bytes) } else { bytes };
        if descending {
            KeyRange {
                from: after_if(!self.includes_high, high),
                to: after_if(self.includes_low, low),
            }
        } else {
            KeyRange {
                from: after_if(!self.includes_low, low),
                to: after_if(self.includes_high, high),
            }
        }
    }
}

fn following(character: char) -> Option<char> {
    (character as u32 + 1..=char::MAX as u32).find_map(char::from_u32)
}

/// Intervals in ascending order that do not overlap or touch.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals(Vec<Interval>);

impl Intervals {
    /// No values.
    pub fn none() -> Intervals {
        Intervals(Vec::new())
    }

    /// All values.
    pub fn full() -> Intervals {
        Intervals(vec![Interval::full()])
    }

    /// A list of one interval. The list is empty if the interval is empty.
    pub fn from_interval(interval: Interval) -> Intervals {
        Intervals::union([interval])
    }

    /// Returns the union of intervals. Intervals that touch become one.
    pub fn union(intervals: impl IntoIterator<Item = Interval>) -> Intervals {
        let mut sorted: Vec<Interval> = intervals
            .into_iter()
            .filter(|interval| !interval.is_empty())
            .collect();
        sorted.sort_by(|one, other| {
            one.keys
                .from
                .cmp(&other.keys.from)
                .then(other.keys.to.cmp(&one.keys.to))
        });
        sorted.dedup_by(|interval, last| {
            let joins = joins(last, interval);
            if joins && interval.keys.to > last.keys.to {
                std::mem::swap(&mut last.keys.to, &mut interval.keys.to);
                std::mem::swap(&mut last.high, &mut interval.high);
                last.includes_high = interval.includes_high;
            }
            joins
        });
        Intervals(sorted)
    }

    /// Returns the intersection, in time linear in the lengths of both lists.
    pub fn intersection(&self, other: &Intervals) -> Intervals {
        if self.is_full() {
            return other.clone();
        }
        let (mut ones, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(one), Some(two)) = (ones.peek(), others.peek()) {
            if one.keys.from < two.keys.to && two.keys.from < one.keys.to {
                both.push(one.intersect(two));
            }
            // The other interval may extend beyond this end.
            if one.keys.to <= two.keys.to {
                ones.next()
            } else {
                others.next()
            };
        }
        Intervals::union(both)
    }

    /// The same intervals, in the order of a collation.
    pub fn collated(&self, collation: &Arc<Collation>) -> Intervals {
        Intervals::union(self.0.iter().map(|one| one.collated(collation)))
    }

    /// Returns `true` if the ends are the same in all collations.
    pub fn is_free_of_strings(&self) -> bool {
        let is_free = |value: &Value| {
            !matches!(
                value,
                Value::String(_) | Value::Symbol(_) | Value::Document(_) | Value::Array(_)
            )
        };
        self.0
            .iter()
            .all(|one| is_free(&one.low) && is_free(&one.high))
    }

    /// Returns `true` if the values have the same order in all collations: they are neither strings
    /// nor can they contain strings.
    pub fn has_one_order(&self) -> bool {
        let kinds = [Type::String, Type::Document, Type::Array];
        kinds
            .into_iter()
            .all(|kind| self.coverage_of(kind) == Coverage::None)
    }

    /// Returns all other values.
    pub fn complement(&self) -> Intervals {
        let collation = self.0.iter().find_map(|one| one.collation.clone());
        let gap = |low, high| Interval::with_collation(low, high, collation.clone());
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut low = Unbounded;
        for interval in &self.0 {
            gaps.push(gap(low, end(interval.low.clone(), !interval.includes_low)));
            low = end(interval.high.clone(), !interval.includes_high);
        }
        gaps.push(gap(low, Unbounded));
        Intervals::union(gaps)
    }

    /// Returns `true` if `other` contains all values of these intervals.
    pub fn is_within(&self, other: &Intervals) -> bool {
        self.0.iter().all(|one| {
            // The intervals do not overlap, so the last one that begins at or before this one
            // extends furthest.
            let behind = other
                .0
                .partition_point(|two| two.keys.from <= one.keys.from);
            let last = behind.checked_sub(1).and_then(|last| other.0.get(last));
            last.is_some_and(|two| one.keys.to <= two.keys.to)
        })
    }

    /// Returns `true` if the intervals contain all values.
    pub fn is_full(&self) -> bool {
        matches!(self.0.as_slice(), [one] if one.is_full())
    }

    /// Returns `true` if each interval is a single value.
    pub fn are_points(&self) -> bool {
        self.0.iter().all(Interval::is_point)
    }

    /// Returns `true` if the intervals contain exactly one value.
    pub fn is_one_point(&self) -> bool {
        matches!(self.0.as_slice(), [one] if one.is_point())
    }

    /// Returns how many values of a type the intervals contain, apart from the empty document and
    /// the empty array.
    pub fn coverage_of(&self, type_of: Type) -> Coverage {
        let all = Intervals::from_interval(Interval::from_type(type_of));
        let empty = [
            Value::Document(DocumentBuf::new()),
            Value::Array(ArrayBuf::new()),
        ];
        let inside = self.intersection(&all);
        match inside.as_slice() {
            [] => Coverage::None,
            [one] if empty.map(Interval::point).contains(one) => Coverage::None,
            _ if inside == all => Coverage::All,
            _ => Coverage::Some,
        }
    }

    /// The intervals in ascending order.
    pub fn as_slice(&self) -> &[Interval] {
        &self.0
    }

    /// Returns `true` if there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns `true` if an interval overlaps or touches the next one. Two adjacent points stay apart.
fn joins(one: &Interval, next: &Interval) -> bool {
    match next.keys.from.cmp(&one.keys.to) {
        Ordering::Less => true,
        Ordering::Equal => {
            let collation = one.collation.as_deref();
            collation::compare(collation, one.high.as_ref(), next.low.as_ref()).is_eq()
        }
        Ordering::Greater => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Decimal128, array, doc};

    fn decimal(text: &str) -> Value {
        Value::Decimal128(Decimal128::parse(text).unwrap())
    }

    fn print(intervals: &Intervals) -> String {
        let parts = intervals.as_slice().iter().map(|one| one.print(false));
        parts.collect::<Vec<_>>().join(" ")
    }

    fn between(low: i32, high: i32) -> Interval {
        Interval::new(Included(low.into()), Excluded(high.into()))
    }

    #[test]
    fn intervals_print_as_explain_has_them() {
        let cases = [
            (Interval::from_type(Type::String), "[\"\", {})"),
            (Interval::from_type(Type::Int32), "[nan.0, inf.0]"),
            (Interval::from_type(Type::Bool), "[false, true]"),
            (Interval::from_prefix("ab"), "[\"ab\", \"ac\")"),
            (Interval::point(1.into()), "[1, 1]"),
            (Interval::point(2.5.into()), "[2.5, 2.5]"),
            (
                Interval::point(decimal("1.5")),
                "[NumberDecimal(\"1.5\"), NumberDecimal(\"1.5\")]",
            ),
            (
                Interval::point(doc! { "a": 1 }.into()),
                "[{ a: 1 }, { a: 1 }]",
            ),
            (Interval::point(array![1, 2].into()), "[[ 1, 2 ], [ 1, 2 ]]"),
            (Interval::full(), "[MinKey, MaxKey]"),
        ];
        for (interval, expected) in cases {
            assert_eq!(interval.print(false), expected);
        }
        assert_eq!(between(1, 5).print(true), "(5, 1]");
    }

    #[test]
    fn lists_are_joined_intersected_and_complemented() {
        let union = Intervals::union([between(5, 9), between(1, 3), between(3, 4), between(6, 7)]);
        assert_eq!(print(&union), "[1, 4) [5, 9)");
        let points = Intervals::union([Interval::point(2.into()), Interval::point(1.into())]);
        assert_eq!(print(&points), "[1, 1] [2, 2]");
        let both = union.intersection(&Intervals::from_interval(between(2, 6)));
        assert_eq!(print(&both), "[2, 4) [5, 6)");
        assert_eq!(print(&both.complement()), "[MinKey, 2) [4, 5) [6, MaxKey]");
        assert_eq!(print(&Intervals::from_interval(between(3, 3))), "");
        assert!(both.is_within(&union) && !union.is_within(&both));
        let many = Intervals::union((0..9).map(|number| Interval::point(number.into())));
        assert_eq!(
            print(&union.intersection(&many)),
            "[1, 1] [2, 2] [3, 3] [5, 5] [6, 6] [7, 7] [8, 8]"
        );
        assert_eq!(many.intersection(&union), union.intersection(&many));
        assert_eq!(Intervals::full().intersection(&many), many);
        assert!(!many.is_within(&union) && union.intersection(&many).is_within(&union));
    }

    /// The intersection of two lists of 100,000 values took time proportional to the product of
    /// their lengths.
    #[test]
    fn long_lists_are_intersected_in_one_pass() {
        let every = |step: usize| {
            let numbers = (0..300_000).step_by(step);
            Intervals::union(numbers.map(|number| Interval::point(number.into())))
        };
        let both = every(2).intersection(&every(3));
        assert_eq!(both, every(6));
        assert!(both.is_within(&every(2)) && !every(2).is_within(&both));
    }

    #[test]
    fn key_ranges_contain_the_values_in_both_directions() {
        let intervals = [
            between(1, 5),
            Interval::point(3.into()),
            Interval::from_type(Type::String),
        ];
        let values: [Value; 6] = [
            0.into(),
            1.into(),
            3.into(),
            5.into(),
            "".into(),
            "z".into(),
        ];
        for interval in &intervals {
            for value in &values {
                let inside = (&interval.low, &interval.high);
                let low = value.as_ref().compare(inside.0.as_ref());
                let high = value.as_ref().compare(inside.1.as_ref());
                let expected = (low.is_gt() || low.is_eq() && interval.includes_low)
                    && (high.is_lt() || high.is_eq() && interval.includes_high);
                for descending in [false, true] {
                    let range = interval.key_range(descending);
                    let bytes = key_bytes(value, descending, None);
                    assert_eq!(range.contains(&bytes), expected, "{value} in {interval:?}");
                }
            }
        }
    }
}
