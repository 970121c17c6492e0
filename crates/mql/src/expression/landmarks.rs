//! Where the elements of long arrays stand, for expressions that ask for them in a loop: an array is read
//! from its begin, and so each element would cost as much as all before it.
//!
//! An array is known again by its address. That holds for those that were there before the loop began and
//! live until it ends, the parts of the document and of variables defined around it, and for no others.

use std::cell::RefCell;

use windrow_document::{Array, ValueRef};

/// Shorter arrays are read from their begin.
const BYTES_MIN: usize = 1 << 10;
/// Elements between two that are remembered.
const STEP: usize = 16;
/// Arrays that one loop remembers.
const ARRAYS_MAX: usize = 8;

/// What the round of a loop leaves to the next.
#[derive(Debug)]
pub(crate) struct Landmarks<'a> {
    /// The first frame of the loop: those with lower numbers are older.
    frame: u32,
    arrays: RefCell<Vec<Known>>,
    around: Option<&'a Landmarks<'a>>,
}

/// An array that was asked for.
#[derive(Debug)]
struct Known {
    address: usize,
    bytes: usize,
    /// From the second question on.
    offsets: Option<(Vec<u32>, usize)>,
}

impl<'a> Landmarks<'a> {
    /// Of a loop whose first frame is this, within another.
    pub fn new(frame: u32, around: Option<&'a Landmarks<'a>>) -> Landmarks<'a> {
        Landmarks {
            frame,
            arrays: RefCell::default(),
            around,
        }
    }

    /// Those of the outermost loop that began after the variable of this frame was there; None: after the
    /// document was.
    pub fn of_older(&self, frame: Option<u32>) -> Option<&Landmarks<'a>> {
        let own = frame.is_none_or(|frame| frame < self.frame).then_some(self);
        let outer = self.around.and_then(|around| around.of_older(frame));
        outer.or(own)
    }

    /// What `ask` finds by the offsets of an array; None where they are not worth it.
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

/// An array, and what is known of its elements.
pub(crate) struct Landmarked<'l, 'v> {
    array: Array<'v>,
    landmarks: Option<&'l Landmarks<'l>>,
}

impl<'l, 'v> Landmarked<'l, 'v> {
    /// `landmarks`: of a loop that began when the array was there.
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
    fn elements_are_found_as_without() {
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

    /// A variable of a loop is another in each of its rounds, perhaps at the address of the last.
    #[test]
    fn the_outermost_loop_that_is_younger_remembers() {
        let outer = Landmarks::new(1, None);
        let inner = Landmarks::new(2, Some(&outer));
        let frame = |number| inner.of_older(number).map(|found| found.frame);
        assert_eq!(frame(None), Some(1));
        assert_eq!(frame(Some(0)), Some(1));
        assert_eq!(frame(Some(1)), Some(2));
        assert_eq!(frame(Some(2)), None);
    }
}
