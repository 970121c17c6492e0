//! Caches offsets of the elements of long arrays, for expressions that index into an array in a
//! loop. BSON arrays have no index, so each access would read all elements before it.
//!
//! The cache identifies an array by its address. This is safe only for arrays that exist before the
//! loop starts and live until it ends: parts of the document, and of variables that are defined
//! outside of the loop.

use std::cell::RefCell;

use windrow_document::{Array, ValueRef};

/// Shorter arrays are not cached.
const BYTES_MIN: usize = 1 << 10;
/// The number of elements between two cached offsets.
const ELEMENTS_PER_OFFSET: usize = 16;
/// The maximum number of arrays in the cache of one loop.
const ARRAYS_MAX: usize = 8;

/// The offsets that one loop has cached.
#[derive(Debug)]
pub(crate) struct OffsetCache<'a> {
    /// The first frame of the loop. Frames with lower numbers are older than the loop.
    frame: u32,
    arrays: RefCell<Vec<CachedArray>>,
    outer: Option<&'a OffsetCache<'a>>,
}

/// An array that was accessed in the loop.
#[derive(Debug)]
struct CachedArray {
    address: usize,
    bytes: usize,
    /// The offsets and the number of elements. They are computed on the second access.
    offsets: Option<(Vec<u32>, usize)>,
}

impl<'a> OffsetCache<'a> {
    /// Creates a cache for a loop whose first frame is `frame`, within another loop.
    pub fn new(frame: u32, outer: Option<&'a OffsetCache<'a>>) -> OffsetCache<'a> {
        OffsetCache {
            frame,
            arrays: RefCell::default(),
            outer,
        }
    }

    /// Returns the cache of the outermost loop that started after the variable of this frame was
    /// bound. `None` is the document, which is older than every loop.
    pub fn for_variable(&self, frame: Option<u32>) -> Option<&OffsetCache<'a>> {
        let own = frame.is_none_or(|frame| frame < self.frame).then_some(self);
        let outer = self.outer.and_then(|outer| outer.for_variable(frame));
        outer.or(own)
    }

    /// Calls `access` with the offsets and the number of elements of an array. Returns `None` if
    /// they are not cached.
    fn with<R>(&self, array: Array<'_>, access: impl FnOnce(&[u32], usize) -> R) -> Option<R> {
        let (address, bytes) = (array.as_bytes().as_ptr() as usize, array.as_bytes().len());
        let mut arrays = self.arrays.borrow_mut();
        let is_same =
            |cached: &&mut CachedArray| (cached.address, cached.bytes) == (address, bytes);
        match arrays.iter_mut().find(is_same) {
            Some(cached) => {
                let offsets = cached
                    .offsets
                    .get_or_insert_with(|| array.offsets(ELEMENTS_PER_OFFSET));
                Some(access(&offsets.0, offsets.1))
            }
            None => {
                if arrays.len() < ARRAYS_MAX {
                    arrays.push(CachedArray {
                        address,
                        bytes,
                        offsets: None,
                    });
                }
                None
            }
        }
    }
}

/// An array with its cached offsets.
pub(crate) struct IndexedArray<'l, 'v> {
    array: Array<'v>,
    offset_cache: Option<&'l OffsetCache<'l>>,
}

impl<'l, 'v> IndexedArray<'l, 'v> {
    /// `offset_cache` is the cache of a loop that started when the array already existed.
    pub fn new(
        array: Array<'v>,
        offset_cache: Option<&'l OffsetCache<'l>>,
    ) -> IndexedArray<'l, 'v> {
        let offset_cache = offset_cache.filter(|_| array.as_bytes().len() >= BYTES_MIN);
        IndexedArray {
            array,
            offset_cache,
        }
    }

    pub fn count(&self) -> usize {
        let cached = self.offset_cache;
        let cached = cached.and_then(|cached| cached.with(self.array, |_, count| count));
        cached.unwrap_or_else(|| self.array.count())
    }

    pub fn get(&self, index: usize) -> Option<ValueRef<'v>> {
        let by_offset = |offsets: &[u32], _| {
            let offset = offsets.get(index / ELEMENTS_PER_OFFSET)?;
            self.array.get_after(*offset, index % ELEMENTS_PER_OFFSET)
        };
        let cached = self.offset_cache;
        let found = cached.and_then(|cached| cached.with(self.array, by_offset));
        found.unwrap_or_else(|| self.array.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{ArrayBuf, Value};

    #[test]
    fn cached_offsets_return_the_same_elements() {
        for count in [0, 1, 15, 16, 17, 300] {
            let array: ArrayBuf = (0..count)
                .map(|number| Value::from("x".repeat(number)))
                .collect();
            let offset_cache = OffsetCache::new(0, None);
            for _ in 0..3 {
                let marked = IndexedArray::new(array.as_array(), Some(&offset_cache));
                assert_eq!(marked.count(), count);
                for index in 0..count + 20 {
                    assert_eq!(
                        marked.get(index),
                        array.as_array().get(index),
                        "{index} of {count}"
                    );
                }
            }
        }
    }

    /// A variable of a loop has another value in each iteration, possibly at the same address as
    /// before.
    #[test]
    fn the_outermost_younger_loop_has_the_cache() {
        let outer = OffsetCache::new(1, None);
        let inner = OffsetCache::new(2, Some(&outer));
        let frame = |number| inner.for_variable(number).map(|found| found.frame);
        assert_eq!(frame(None), Some(1));
        assert_eq!(frame(Some(0)), Some(1));
        assert_eq!(frame(Some(1)), Some(2));
        assert_eq!(frame(Some(2)), None);
    }
}
