//! The ranges, the sizes and the score bounds of lists of postings, and the cache of a section for
//! them.

use std::collections::HashMap;

use parking_lot::Mutex;
use windrow_postings::Impact;

use crate::entry::RecordId;

/// An upper bound of the scores of some postings. See
/// [`PostingList::block_end`](crate::PostingList::block_end).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Pairs of a frequency and a field length that dominate those of the postings.
    pub impacts: [Impact; 2],
    /// The greatest stored score.
    pub score: f64,
}

impl Bounds {
    /// The bounds that hold for all postings.
    pub const LOOSE: Bounds = Bounds {
        impacts: [
            Impact {
                frequency: u8::MAX,
                length: 0,
            },
            Impact {
                frequency: 0,
                length: 0,
            },
        ],
        score: f64::INFINITY,
    };
}

/// Combines two pairs of impacts into one that bounds both.
pub fn both(one: [Impact; 2], other: [Impact; 2]) -> [Impact; 2] {
    let all = one.into_iter().chain(other);
    windrow_postings::impact::bounds(all.filter(|impact| impact.frequency > 0))
}

/// The range and the size of a source.
#[derive(Clone, Copy, Debug, Default)]
pub struct SourceExtent {
    pub first_id: RecordId,
    pub last_id: RecordId,
    pub records: u64,
    /// The number of deleted postings.
    pub deletions: u64,
    /// The number of groups of packed postings, and of groups of rows.
    pub groups: usize,
    /// All snapshots see the same postings.
    pub is_constant: bool,
}

/// A cache of the extents and score bounds of long lists of a section, by key.
#[derive(Debug, Default)]
pub struct ExtentCache(Mutex<HashMap<Box<[u8]>, CachedExtent>>);

/// The extent of a list, and its score bounds.
#[derive(Clone, Copy, Debug)]
pub struct CachedExtent {
    pub extent: SourceExtent,
    /// Computed at the first request.
    pub bounds: Option<Bounds>,
}

/// When the cache has this many keys, it is cleared.
const KEYS_MAX: usize = 1_024;
/// The extents of longer keys are not cached.
const KEY_BYTES_MAX: usize = 256;

impl ExtentCache {
    /// Returns the extent of a list, if it is cached.
    pub fn get(&self, key: &[u8]) -> Option<CachedExtent> {
        self.0.lock().get(key).copied()
    }

    /// Caches the extent of a list, unless its key is long.
    pub fn insert(&self, key: &[u8], extent: CachedExtent) {
        if key.len() > KEY_BYTES_MAX {
            return;
        }
        let mut by_key = self.0.lock();
        if by_key.len() >= KEYS_MAX && !by_key.contains_key(key) {
            by_key.clear();
        }
        by_key.insert(key.into(), extent);
    }
}
