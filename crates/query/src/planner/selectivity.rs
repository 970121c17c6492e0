//! Estimates the fraction of a scan's entries that match by their keys, from a sample of the keys.

use windrow_mql::filter::Filter;
use windrow_mql::interrupt::data_error;

use crate::Error;
use crate::bounds::range::{ScanRanges, cut};
use crate::key_range::KeyRange;
use crate::operators::key_document::KeyDocument;
use crate::plan::KeyOutput;
use crate::source::{Direction, KEYS_END, RecordId, Source, SourceIndex};

/// The number of ranges in which keys are sampled, and the number of keys in total.
const SAMPLED_RANGES: usize = 64;
const KEYS: usize = 256;
/// The largest number of parts into which an index is divided, even if few of them are read.
const CUTS_MAX: u64 = 256;

/// A scan is not sampled if it reads less than one in this many entries of the index. The split
/// keys of the index are too far apart for it, and fetching all its documents costs less than a
/// collection scan.
const SCAN_DIVISOR_MAX: u64 = 64;

/// Estimates the fraction of `entries` entries in the ranges that match the filter by their keys.
/// `None` if there are too few entries. The fraction is never zero: keys outside of the sample may
/// match.
pub fn estimate(
    source: &dyn Source,
    index: &SourceIndex,
    ranges: &ScanRanges,
    entries: u64,
    filter: &Filter,
) -> Result<Option<f64>, Error> {
    if entries < KEYS as u64 {
        return Ok(None);
    }
    let all = source
        .approximate_count(index.number, &[], KEYS_END)?
        .max(entries);
    if entries < all / SCAN_DIVISOR_MAX {
        return Ok(None);
    }
    let count = (SAMPLED_RANGES as u64 * all / entries).min(CUTS_MAX);
    let sampled = sample_ranges(ranges, source.entry_split_keys(index.number, count)?);
    let maker = KeyDocument::new(&index.definition, KeyOutput::Document);
    let mut cursor = source.entries(index.number, Direction::Forward)?;
    let (mut seen, mut matching) = (0, 0);
    for range in &sampled {
        cursor.seek(&range.from, RecordId(0))?;
        for _ in 0..KEYS.div_ceil(sampled.len()) {
            if !cursor.next()? || !range.ends_after(cursor.key()) {
                break;
            }
            let made = maker.make(cursor.key(), cursor.payload()).document;
            let matches = filter.matches(made.as_document());
            // The scan will fail on the same values, if it reads them.
            matching += u32::from(matches.or_else(|error| data_error(error).map(|_| true))?);
            seen += 1;
        }
    }
    Ok(Some((f64::from(matching) + 0.5) / (f64::from(seen) + 1.0)))
}

/// Returns parts of the ranges that are evenly distributed among their entries, at most
/// `SAMPLED_RANGES`.
fn sample_ranges(ranges: &ScanRanges, cuts: Vec<Vec<u8>>) -> Vec<KeyRange> {
    let parts: Vec<KeyRange> = cut(&ranges.ranges, cuts).into_iter().flatten().collect();
    let step = parts.len().div_ceil(SAMPLED_RANGES).max(1);
    parts.into_iter().step_by(step).collect()
}
