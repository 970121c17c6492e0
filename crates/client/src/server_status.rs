//! Reads `serverStatus`: numbers by their path, and percentiles of the histograms in `opLatencies`.

use windrow_document::{Document, ValueRef};

/// Returns the value at a path of names.
pub fn section<'a>(document: Document<'a>, path: &[&str]) -> Option<ValueRef<'a>> {
    let (last, names) = path.split_last()?;
    let mut within = document;
    for name in names {
        within = within.get(name)?.as_document()?;
    }
    within.get(last)
}

/// Returns the number at a path. 0 if there is none: an older server does not have all of them.
pub fn number(document: Document<'_>, path: &[&str]) -> f64 {
    section(document, path)
        .and_then(ValueRef::as_f64)
        .unwrap_or(0.0)
}

/// A range of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeCount {
    /// The lower bound.
    pub lower_micros: f64,
    /// The number of operations.
    pub count: f64,
}

/// Returns the operations of a class between two states of a server.
pub fn latencies_between(
    before: Document<'_>,
    after: Document<'_>,
    class: &str,
) -> Vec<RangeCount> {
    let known = ranges(before, class);
    let count_before = |lower: f64| {
        let found = known.iter().find(|range| range.lower_micros == lower);
        found.map_or(0.0, |range| range.count)
    };
    let mut counts = ranges(after, class);
    for range in &mut counts {
        range.count = (range.count - count_before(range.lower_micros)).max(0.0);
    }
    counts.retain(|range| range.count > 0.0);
    counts
}

fn ranges(status: Document<'_>, class: &str) -> Vec<RangeCount> {
    let list = section(status, &["opLatencies", class, "histogram"]);
    let list = list.and_then(ValueRef::as_array).into_iter().flatten();
    let ranges = list.filter_map(|range| {
        let range = range.as_document()?;
        Some(RangeCount {
            lower_micros: range.get("micros")?.as_f64()?,
            count: range.get("count")?.as_f64()?,
        })
    });
    ranges.collect()
}

/// Returns the latency in milliseconds below which this part of the operations was. Within a range
/// it is interpolated. `None` without operations.
pub fn percentile_ms(counts: &[RangeCount], part: f64) -> Option<f64> {
    let total: f64 = counts.iter().map(|range| range.count).sum();
    let mut rank = total * part;
    for range in counts {
        if rank <= range.count {
            let width = upper_micros(range.lower_micros) - range.lower_micros;
            return Some((range.lower_micros + width * rank / range.count) / 1e3);
        }
        rank -= range.count;
    }
    None
}

/// The upper bound of a range. Bounds double, with one more bound in each range between 2 ms and
/// 2 s, as MongoDB has them.
fn upper_micros(lower: f64) -> f64 {
    const FINE: std::ops::Range<f64> = 2048.0..2_097_152.0;
    let is_power_of_two = lower > 0.0 && lower.log2().fract() == 0.0;
    match lower {
        0.0 => 2.0,
        _ if !is_power_of_two => lower / 3.0 * 4.0,
        _ if FINE.contains(&lower) => lower * 1.5,
        _ => lower * 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    #[test]
    fn ranges_have_upper_bounds() {
        let bounds = [
            (0.0, 2.0),
            (2.0, 4.0),
            (2048.0, 3072.0),
            (3072.0, 4096.0),
            (2_097_152.0, 4_194_304.0),
        ];
        for (lower, upper) in bounds {
            assert_eq!(upper_micros(lower), upper);
        }
    }

    #[test]
    fn percentiles_are_of_the_operations_in_between() {
        let status = |counts: &[(i64, i64)]| -> DocumentBuf {
            let ranges: Vec<windrow_document::Value> = counts
                .iter()
                .map(|(micros, count)| doc! { "micros": (*micros), "count": (*count) }.into())
                .collect();
            doc! { "opLatencies": { "reads": { "histogram": ranges } } }
        };
        let (old, new) = (status(&[(1024, 5)]), status(&[(1024, 105), (4096, 1)]));
        let counts = latencies_between(old.as_document(), new.as_document(), "reads");
        assert_eq!(counts.len(), 2);
        let p50 = percentile_ms(&counts, 0.5).unwrap();
        assert!((1.5..1.6).contains(&p50), "{p50}");
        assert!(percentile_ms(&counts, 0.999).unwrap() > 4.0);
        let none = latencies_between(new.as_document(), new.as_document(), "reads");
        assert_eq!(percentile_ms(&none, 0.5), None);
    }
}
