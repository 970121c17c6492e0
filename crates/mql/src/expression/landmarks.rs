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
const STEP: usize = 16;
/// The maximum number of arrays in the cache of one loop.
const ARRAYS_MAX: usize = 8;

/// The offsets that one loop has cached.
#[derive(Debug)]
pub(crate) struct Landmarks<'a> {
    /// The first frame of the loop. Frames with lower numbers are older than the loop.
    frame: u32,
    arrays: RefCell<Vec<Known>>,
    around: Option<&'a Landmarks<'a>>,
}

/// An array that was accessed in the loop.
#[derive(Debug)]
struct Known {
    address: usize,
    bytes: usize,
    /// The offsets and the number of elements. They are computed on the second access.
    offsets: Option<(Vec<u32>, usize)>,
}

impl<'a> Landmarks<'a> {
    /// A cache for a loop whose first frame is `frame`, within another loop.
    pub fn new(frame: u32, around: Option<&'a Landmarks<'a>>) -> Landmarks<'a> {
        Landmarks {
            frame,
            arrays: RefCell::default(),
            around,
        }
    }

    /// The cache of the outermost loop that started after the variable of this frame was bound.
    /// `None` is the document, which is older than every loop.
    pub fn of_older(&self, frame: Option<u32>) -> Option<&Landmarks<'a>> {
        let own = frame.is_none_or(|frame| frame < self.frame).then_some(self);
        let outer = self.around.and_then(|around| around.of_older(frame));
        outer.or(own)
    }

    /// Calls `ask` with the offsets and the number of elements of an array. Returns `None` if they
    /// are not cached.
    fn with<R>(&self, array: Array<'_>, ask: impl FnOnce(&[u32], usize) -> R) -> Option<R> {
        let (address, bytes) = (array.as_bytes().as_ptr() as usize, array.as_bytes().len());
        let mut arrays = self.arrays.borrow_mut();
        let is_same = |known: &&mut Known| (known.address, known.bytes) == (address, bytes);
        match arrays.iter_mut().find(is_same) {
            Some(known) => {
                let offsets = known.offsets.get_or_insert_with(|| array.offsets(STEP));
                Some(ask(&offsets.0, offsets.1))
            }
            None => {
                if arrays.len() < ARRAYS_MAX {
                    arrays.push(Known {
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
pub(crate) struct Landmarked<'l, 'v> {
    array: Array<'v>,
    landmarks: Option<&'l Landmarks<'l>>,
}

impl<'l, 'v> Landmarked<'l, 'v> {
    /// `landmarks` is the cache of a loop that started when the array already existed.
    pub fn new(array: Array<'v>, landmarks: Option<&'l Landmarks<'l>>) -> Landmarked<'l, 'v> {
        let landmarks = landmarks.filter(|_| array.as_bytes().len() >= BYTES_MIN);
        Landmarked { array, landmarks }
    }

    pub fn count(&self) -> usize {
        let known = self.landmarks;
        let known = known.and_then(|known| known.with(self.array, |_, count| count));
        known.unwrap_or_else(|| self.array.count())
    }

    pub fn get(&self, place: usize) -> Option<ValueRef<'v>> {
        let by_offset = |offsets: &[u32], _| {
            let offset = offsets.get(place / STEP)?;
            self.array.get_after(*offset, place % STEP)
        };
        let known = self.landmarks;
        let found = known.and_then(|known| known.with(self.array, by_offset));
        found.unwrap_or_else(|| self.array.get(place))
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
            let landmarks = Landmarks::new(0, None);
            for _ in 0..3 {
                let marked = Landmarked::new(array.as_array(), Some(&landmarks));
                assert_eq!(marked.count(), count);
                for place in 0..count + 20 {
                    assert_eq!(
                        marked.get(place),
                        array.as_array().get(place),
                        "{place} of {count}"
                    );
                }
            }
        }
    }

    /// A variable of a loop has another value in each iteration, possibly at the same address as
    /// before.
    #[test]
    fn the_outermost_younger_loop_has_the_cache() {
        let outer = Landmarks::new(1, None);
        let inner = Landmarks::new(2, Some(&outer));
        let frame = |number| inner.of_older(number).map(|found| found.frame);
        assert_eq!(frame(None), Some(1));
        assert_eq!(frame(Some(0)), Some(1));
        assert_eq!(frame(Some(1)), Some(2));
        assert_eq!(frame(Some(2)), None);
    }
}
