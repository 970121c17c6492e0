//! Bounds as ranges of key bytes, which a scan reads.
//!
//! Leading fields with points, and the first field with other intervals, give ranges of whole keys.
//! The restrictions of later fields are checked for each entry.
//!
//! ```text
//! a = 1 or 2, b > 5, c < 7   →   [1 5… , 1 …) [2 5…, 2 …), checked: the third value below 7
//! ```

use windrow_index::{Definition, KeyKind};

use super::IndexBounds;
use super::interval::{Intervals, after};
use crate::key_range::KeyRange;

/// Above this number of ranges, the restrictions of further fields are checked for each entry.
const RANGES_MAX: usize = 4096;

/// The part of an index that a scan reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanRanges {
    /// The ranges of keys, in the order of the index.
    pub ranges: Vec<KeyRange>,
    /// For each field the ranges of its key bytes that have to be checked. `None`: no check.
    pub checks: Vec<Option<Vec<KeyRange>>>,
    /// Which fields are descending.
    pub descending: Vec<bool>,
    /// `true` if each range contains only one key, and begins with it.
    pub are_keys: bool,
}

impl ScanRanges {
    /// Computes the ranges and checks from the bounds of an index.
    pub fn new(definition: &Definition, bounds: &IndexBounds) -> ScanRanges {
        let directions = definition
            .fields
            .iter()
            .map(|field| field.kind == KeyKind::Descending);
        let descending: Vec<bool> = directions.collect();
        let directed: Vec<Vec<KeyRange>> = bounds
            .fields
            .iter()
            .zip(&descending)
            .map(|(intervals, descending)| directed(intervals, *descending))
            .collect();
        let (mut ranges, mut done) = (vec![Vec::new()], 0);
        for (intervals, own) in bounds.fields.iter().zip(&directed) {
            if !intervals.are_points() || are_too_many(&ranges, own) {
                break;
            }
            ranges = product(&ranges, own).map(|range| range.from).collect();
            done += 1;
        }
        let next = bounds.fields.get(done).zip(directed.get(done));
        let ranges = match next {
            Some((intervals, own)) if !intervals.is_full() && !are_too_many(&ranges, own) => {
                done += 1;
                product(&ranges, own).collect()
            }
            _ => ranges.iter().map(|prefix| whole(prefix)).collect(),
        };
        let check = |(number, (intervals, own)): (usize, (&Intervals, Vec<KeyRange>))| {
            (number >= done && !intervals.is_full()).then_some(own)
        };
        let checks = bounds
            .fields
            .iter()
            .zip(directed)
            .enumerate()
            .map(check)
            .collect();
        let are_points = bounds.fields.iter().all(Intervals::are_points);
        ScanRanges {
            ranges,
            checks,
            descending,
            are_keys: are_points && done == bounds.fields.len(),
        }
    }

    /// Returns `true` if no entry within the ranges has to be checked.
    pub fn is_plain(&self) -> bool {
        self.checks.iter().all(Option::is_none)
    }
}

/// Returns `true` if combining the ranges with those of another field gives too many ranges. If one
/// side has only one range, the number of ranges does not grow beyond that of the bounds.
fn are_too_many(prefixes: &[Vec<u8>], own: &[KeyRange]) -> bool {
    prefixes.len() > 1 && own.len() > 1 && prefixes.len() * own.len() > RANGES_MAX
}

fn whole(prefix: &[u8]) -> KeyRange {
    let to = if prefix.is_empty() {
        vec![0xFF; 2]
    } else {
        after(prefix)
    };
    KeyRange {
        from: prefix.to_vec(),
        to,
    }
}

/// Returns the ranges of key bytes of a field, in the order of the index.
pub fn directed(intervals: &Intervals, descending: bool) -> Vec<KeyRange> {
    let ranges = intervals
        .as_slice()
        .iter()
        .map(|interval| interval.key_range(descending));
    let mut ranges: Vec<KeyRange> = ranges.collect();
    if descending {
        ranges.reverse();
    }
    ranges
}

fn product<'p>(
    prefixes: &'p [Vec<u8>],
    ranges: &'p [KeyRange],
) -> impl Iterator<Item = KeyRange> + 'p {
    prefixes
        .iter()
        .flat_map(move |prefix| ranges.iter().map(move |range| range.with_prefix(prefix)))
}

/// Splits sorted ranges at sorted cuts. Returns the ranges of each part.
pub fn cut(ranges: &[KeyRange], cuts: Vec<Vec<u8>>) -> Vec<Vec<KeyRange>> {
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    let mut cuts = cuts.into_iter().peekable();
    for range in ranges {
        let mut rest = range.clone();
        while let Some(cut) = cuts.next_if(|cut| rest.ends_after(cut)) {
            if rest.from < cut {
                part.push(KeyRange {
                    from: std::mem::replace(&mut rest.from, cut.clone()),
                    to: cut,
                });
            }
            if !part.is_empty() {
                parts.push(std::mem::take(&mut part));
            }
        }
        part.push(rest);
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::predicates;
    use crate::source::SourceIndex;
    use std::sync::Arc;
    use windrow_document::{Document, DocumentBuf, Value, doc, key};
    use windrow_index::Multikey;
    use windrow_mql::filter::Filter;

    /// For every key of a small grid, checks that it is within the bounds if and only if the filter
    /// matches.
    fn check(filter: DocumentBuf, ranges: usize, plain: bool) {
        let specification = doc! { "key": { "a": 1, "b": -1, "c": 1 }, "name": "i" };
        let definition = Arc::new(Definition::parse(specification.as_document()).unwrap());
        let index = SourceIndex {
            number: 0,
            definition: definition.clone(),
            multikey: Multikey::new(3),
        };
        let parsed = Filter::parse(filter.as_document()).unwrap();
        let bounds = IndexBounds::new(&index, &predicates(parsed.root(), None));
        let scan = ScanRanges::new(&definition, &bounds);
        assert_eq!(
            (scan.ranges.len(), scan.is_plain()),
            (ranges, plain),
            "{filter}"
        );
        assert!(scan.ranges.is_sorted());
        for number in 0..125 {
            let (a, b, c) = (number / 25, number / 5 % 5, number % 5);
            let document = doc! { "a": a, "b": b, "c": c };
            assert_eq!(
                is_inside(&scan, document.as_document()),
                parsed.matches(document.as_document()).unwrap(),
                "{document} {filter}"
            );
        }
    }

    fn is_inside(scan: &ScanRanges, document: Document<'_>) -> bool {
        let parts: Vec<Vec<u8>> = ["a", "b", "c"]
            .iter()
            .map(|name| {
                let mut bytes = Vec::new();
                let value = document.get(name).unwrap();
                key::append_with_direction(&mut bytes, value, *name == "b");
                bytes
            })
            .collect();
        let whole = parts.concat();
        let within =
            |ranges: &[KeyRange], bytes: &Vec<u8>| ranges.iter().any(|range| range.contains(bytes));
        let checked = scan.checks.iter().zip(&parts);
        within(&scan.ranges, &whole)
            && checked
                .into_iter()
                .all(|(check, part)| check.as_ref().is_none_or(|ranges| within(ranges, part)))
    }

    #[test]
    fn ranges_and_checks_agree_with_the_filter() {
        check(doc! {}, 1, true);
        check(doc! { "a": 1 }, 1, true);
        check(doc! { "a": { "$in": [1, 3] }, "b": 2 }, 2, true);
        check(doc! { "a": { "$in": [1, 3] }, "b": { "$gt": 2 } }, 2, true);
        check(
            doc! { "a": { "$in": [1, 3] }, "b": { "$gt": 2 }, "c": { "$lt": 4 } },
            2,
            false,
        );
        check(doc! { "a": { "$gt": 1 }, "b": { "$in": [0, 4] } }, 1, false);
        check(doc! { "a": 1, "c": { "$ne": 3 } }, 1, false);
        check(
            doc! { "a": { "$gte": 2, "$lt": 4 }, "c": { "$gt": 1 } },
            1,
            false,
        );
        check(doc! { "a": { "$ne": 2 } }, 2, true);
        check(doc! { "a": { "$gt": (Value::Double(f64::NAN)) } }, 0, true);
    }

    #[test]
    fn ranges_are_cut_into_parts() {
        let check = |ranges: &[(&str, &str)], cuts: &[&str], expected: &[&[(&str, &str)]]| {
            let bytes = |text: &str| text.as_bytes().to_vec();
            let owned = |ranges: &[(&str, &str)]| -> Vec<KeyRange> {
                let range = |(from, to): &(&str, &str)| KeyRange {
                    from: bytes(from),
                    to: bytes(to),
                };
                ranges.iter().map(range).collect()
            };
            let found = cut(&owned(ranges), cuts.iter().map(|it| bytes(it)).collect());
            let expected: Vec<Vec<KeyRange>> = expected.iter().map(|it| owned(it)).collect();
            assert_eq!(found, expected, "{ranges:?} {cuts:?}");
        };
        check(&[("b", "f")], &[], &[&[("b", "f")]]);
        check(&[("b", "f")], &["a", "b", "f", "g"], &[&[("b", "f")]]);
        check(
            &[("b", "f")],
            &["c", "d"],
            &[&[("b", "c")], &[("c", "d")], &[("d", "f")]],
        );
        check(
            &[("b", "c"), ("d", "e"), ("f", "h")],
            &["a", "d", "e", "g"],
            &[&[("b", "c")], &[("d", "e")], &[("f", "g")], &[("g", "h")]],
        );
        check(
            &[("b", "c"), ("d", "e"), ("f", "h")],
            &["g"],
            &[&[("b", "c"), ("d", "e"), ("f", "g")], &[("g", "h")]],
        );
    }
}
