//! The range, the size and the score bound of the postings of a key in one source.
//!
//! All segments are visited for them. Those of a long list in a section are cached with the
//! section, which does not change, if all snapshots see the same postings.

use windrow_storage::StorageError;

use super::segments::{Segment, SegmentCounts, SegmentCursor};
use crate::entry::RecordId;
use crate::extents::{Bounds, CachedExtent, ExtentCache, SourceExtent, both};

/// Lists with fewer groups are visited again each time.
const GROUPS_CACHED_MIN: usize = 4;
/// The bounds of lists with more groups than this are not computed each time.
const GROUPS_BOUNDED: usize = 256;

/// Returns the extent of the postings from the segment of a cursor on. `is_whole` is `true` if this
/// is the first segment. The cursor keeps the rows that were decoded last.
pub fn extent_from(
    place: &mut SegmentCursor,
    is_whole: bool,
) -> Result<SourceExtent, StorageError> {
    if let Some(cached) = cached_extent(place, is_whole) {
        return Ok(cached.extent);
    }
    let mut extent = SourceExtent {
        first_id: place.first_id().unwrap_or(RecordId::MAX),
        ..SourceExtent::default()
    };
    let mut segments = place.clone();
    while let Some(last_id) = segments.last_id() {
        let SegmentCounts { records, deletions } = segments.counts();
        extent.last_id = last_id;
        extent.records += records as u64;
        extent.deletions += deletions as u64;
        extent.groups += segments.groups();
        segments.advance()?;
    }
    extent.is_constant = is_whole && !segments.has_versions;
    place.share_decoded(&segments);
    cache_extent(place, &extent, None);
    Ok(extent)
}

/// Returns the score bound of the postings from the segment of a cursor on, a loose one if the list
/// is long and not cached.
pub fn bounds_from(
    place: &mut SegmentCursor,
    extent: &SourceExtent,
) -> Result<Bounds, StorageError> {
    if let Some(bounds) = cached_extent(place, extent.is_constant).and_then(|cached| cached.bounds)
    {
        return Ok(bounds);
    }
    if extent.groups > GROUPS_BOUNDED && !extent.is_constant {
        return Ok(Bounds::LOOSE);
    }
    let mut segments = place.clone();
    let mut bounds: Option<Bounds> = None;
    while segments.last_id().is_some() {
        for group in 0..segments.groups() {
            let (impacts, score) = segments
                .bound_of(group)
                .ok_or_else(|| segments.undecodable())?;
            bounds = Some(match bounds {
                None => Bounds { impacts, score },
                Some(known) => Bounds {
                    impacts: both(known.impacts, impacts),
                    score: known.score.max(score),
                },
            });
        }
        segments.advance()?;
    }
    let bounds = bounds.unwrap_or_default();
    place.share_decoded(&segments);
    cache_extent(place, extent, Some(bounds));
    Ok(bounds)
}

/// Returns the cache for the extent of the list that begins at the cursor. Only lists that begin
/// with a piece, which are long, are cached.
fn extent_cache(place: &SegmentCursor) -> Option<&ExtentCache> {
    let section = &place.section_location()?.section;
    matches!(place.here, Segment::Piece { .. }).then_some(&section.extents)
}

fn cached_extent(place: &SegmentCursor, is_whole: bool) -> Option<CachedExtent> {
    let cache = extent_cache(place).filter(|_| is_whole)?;
    cache.get(place.key())
}

fn cache_extent(place: &SegmentCursor, extent: &SourceExtent, bounds: Option<Bounds>) {
    if !extent.is_constant || extent.groups < GROUPS_CACHED_MIN {
        return;
    }
    if let Some(cache) = extent_cache(place) {
        let extent = *extent;
        cache.insert(place.key(), CachedExtent { extent, bounds });
    }
}
