//! How many entries of a scan match by their keys, where bounds do not tell: some keys are looked at.

use windrow_mql::filter::Filter;
use windrow_mql::interrupt::data_error;

use crate::Error;
use crate::bounds::range::{KeyRange, ScanRanges, cut};
use crate::operators::key_document::KeyDocument;
use crate::plan::KeyOutput;
use crate::source::{BEHIND_KEYS, Direction, RecordId, Source, SourceIndex};

/// Places from which on keys are looked at, and how many in all.
const PLACES: usize = 64;
const KEYS: usize = 256;
/// An index is cut into no more parts than this, however few of them are read.
const CUTS_MAX: u64 = 256;

/// Fewer than this part of an index are not looked at: cuts of all of it tell too little of them, and
/// fetching them all costs less than a scan of the collection.
const PART_MIN: u64 = 64;

/// The share of the entries in these ranges, about so many, that a filter wants by their keys; None of a
/// few. What no key has that was looked at others may have.
pub fn share(
    source: &dyn Source,
    index: &SourceIndex,
    (ranges, entries): (&ScanRanges, u64),
    filter: &Filter,
) -> Result<Option<f64>, Error> {
    if entries < KEYS as u64 {
        return Ok(None);
    }
    let all = source
        .count_about(index.number, &[], BEHIND_KEYS)?
        .max(entries);
    if entries < all / PART_MIN {
        return Ok(None);
    }
    let count = (PLACES as u64 * all / entries).min(CUTS_MAX);
    let places = places(ranges, source.entry_cuts(index.number, count)?);
    let maker = KeyDocument::new(&index.definition, KeyOutput::Document);
    let mut cursor = source.entries(index.number, Direction::Forward)?;
    let (mut seen, mut matching) = (0, 0);
    for (from, to) in &places {
        cursor.seek(from, RecordId(0))?;
        for _ in 0..KEYS.div_ceil(places.len()) {
            if !cursor.next()? || cursor.key() >= to.as_slice() {
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

/// Parts of the ranges that lie evenly among their entries, at most so many as are looked at.
fn places(ranges: &ScanRanges, cuts: Vec<Vec<u8>>) -> Vec<KeyRange> {
    let parts: Vec<KeyRange> = cut(&ranges.ranges, cuts).into_iter().flatten().collect();
    let step = parts.len().div_ceil(PLACES).max(1);
    parts.into_iter().step_by(step).collect()
}
