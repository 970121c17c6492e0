//! The range, the size and the score bound of the postings of a key in one source.
//!
//! All segments are visited for them. Those of a long list in a section are kept with the section,
//! which does not change, if all snapshots see the same postings.

use windrow_storage::StorageError;

use super::segments::{Segment, SegmentCursor};
use crate::entry::RecordId;
use crate::extents::{Bounds, KeptExtent, KeptExtents, SourceExtent, both};

/// Lists with fewer groups are visited again each time.
const GROUPS_KEPT_MIN: usize = 4;
/// The bounds of lists with more groups than this are not computed each time.
const GROUPS_BOUNDED: usize = 256;

/// Returns the extent of the postings from the segment of a cursor on. `is_whole` tells that this
/// is the first segment. The cursor takes the rows that were decoded last.
pub fn extent_from(
    place: &mut SegmentCursor,
    is_whole: bool,
) -> Result<SourceExtent, StorageError> {
    if let Some(kept) = kept_extent(place, is_whole) {
        return Ok(kept.extent);
    }
    let mut extent = SourceExtent {
        first_id: place.first_id().unwrap_or(RecordId::MAX),
        ..SourceExtent::default()
    };
    let mut segments = place.clone();
    while let Some(last_id) = segments.last_id() {
        let (records, deletions) = segments.len();
        extent.last_id = last_id;
        extent.records += records as u64;
        extent.deletions += deletions as u64;
        extent.groups += segments.groups();
        segments.advance()?;
    }
    extent.is_constant = is_whole && !segments.has_versions;
    place.share_decoded(&segments);
    keep(place, &extent, None);
    Ok(extent)
}

/// Returns the score bound of the postings from the segment of a cursor on, a loose one if the list
/// is long and not kept.
pub fn bounds_from(
    place: &mut SegmentCursor,
    extent: &SourceExtent,
) -> Result<Bounds, StorageError> {
    if let Some(bounds) = kept_extent(place, extent.is_constant).and_then(|kept| kept.bounds) {
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
    keep(place, extent, Some(bounds));
    Ok(bounds)
}

/// Returns where the extent of a list is kept, which begins at the cursor. Long lists begin with a
/// piece.
fn kept_extents(place: &SegmentCursor) -> Option<&KeptExtents> {
    let (section, ..) = place.piece_at()?;
    matches!(place.here, Segment::Piece { .. }).then_some(&section.extents)
}

fn kept_extent(place: &SegmentCursor, is_whole: bool) -> Option<KeptExtent> {
    let kept = kept_extents(place).filter(|_| is_whole)?;
    kept.get(place.key())
}

fn keep(place: &SegmentCursor, extent: &SourceExtent, bounds: Option<Bounds>) {
    if !extent.is_constant || extent.groups < GROUPS_KEPT_MIN {
        return;
    }
    if let Some(kept) = kept_extents(place) {
        let extent = *extent;
        kept.keep(place.key(), KeptExtent { extent, bounds });
    }
}
