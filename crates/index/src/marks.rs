//! Which paths of an index have met arrays, as entries of it: marks.
//!
//! ```text
//! mark     00 | number of the field, u8 | part of its path, u8
//! ```
//! A document has a mark for every part of a path that met an array in it. Marks come and go with the
//! document as its other entries do, so that an index knows its arrays at every snapshot and forgets
//! them with the last. No value's key bytes begin with zero: marks stand before all keys, and no range
//! of values meets one.

use crate::definition::KeyField;

/// For every field of a key, which parts of its path met an array: bit 0 for the first part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Multikey(pub Vec<u32>);

impl Multikey {
    pub fn of(fields: usize) -> Multikey {
        Multikey(vec![0; fields])
    }

    /// What marks say of an index with so many fields. A mark that is not understood says that there may
    /// be arrays everywhere.
    pub fn of_marks<'k>(fields: usize, keys: impl Iterator<Item = &'k [u8]>) -> Multikey {
        let mut multikey = Multikey::of(fields);
        for key in keys {
            let (field, part) = match key {
                [MARK, field, part] => (usize::from(*field), *part),
                _ => return Multikey::everywhere(fields),
            };
            match multikey.0.get_mut(field) {
                Some(parts) => *parts |= 1 << part.min(31),
                None => return Multikey::everywhere(fields),
            }
        }
        multikey
    }

    /// All paths of so many fields may meet arrays wherever they can.
    pub fn everywhere(fields: usize) -> Multikey {
        Multikey(vec![u32::MAX; fields])
    }

    /// Whether all paths of these fields met arrays wherever they can: no document adds anything.
    pub fn is_whole(&self, fields: &[KeyField]) -> bool {
        let is_whole = |(parts, field): (&u32, &KeyField)| {
            let possible = field.path.components().len().min(u32::BITS as usize) as u32;
            parts.trailing_ones() >= possible
        };
        self.0.iter().zip(fields).all(is_whole)
    }

    /// Whether any path met an array.
    pub fn any(&self) -> bool {
        self.0.iter().any(|parts| *parts != 0)
    }
}

/// What the keys of marks begin with.
pub const MARK: u8 = 0;

/// Whether a key is a mark's.
#[inline]
pub fn is_mark(key: &[u8]) -> bool {
    key.first() == Some(&MARK)
}

/// Where a document's paths met arrays: fields and parts, each once.
#[derive(Debug, Default)]
pub(crate) struct Met(Vec<(u8, u8)>);

impl Met {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// There are at most 32 fields; parts from the 32nd on count as one.
    pub fn note(&mut self, field: usize, part: usize) {
        debug_assert!(field < 32, "field {field} of a key");
        let place = (field as u8, part.min(31) as u8);
        if !self.0.contains(&place) {
            self.0.push(place);
        }
    }

    /// Hands out the keys of the marks.
    pub fn each(&self, mut visit: impl FnMut(&[u8])) {
        for (field, part) in &self.0 {
            visit(&[MARK, *field, *part]);
        }
    }
}

#[cfg(test)]
mod tests {
    use windrow_document::{Document, DocumentBuf, array, doc};

    use super::*;
    use crate::{Definition, Scratch};

    fn multikey(key: DocumentBuf, document: Document<'_>) -> Vec<u32> {
        let specification = doc! { "key": key, "name": "n" };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let (mut marks, mut scratch) = (Vec::<Vec<u8>>::new(), Scratch::default());
        let mut note = |key: &[u8], _: &[u8]| {
            if is_mark(key) {
                marks.push(key.to_vec());
            }
        };
        definition
            .entries(document, &mut scratch, &mut note)
            .unwrap();
        let count = marks.len();
        marks.dedup();
        assert_eq!(marks.len(), count, "each once");
        let keys = marks.iter().map(Vec::as_slice);
        Multikey::of_marks(definition.fields.len(), keys).0
    }

    /// A mark that was not understood was passed over: a plan would have taken the index for one that
    /// meets no arrays, and its bounds would have been too narrow.
    #[test]
    fn a_mark_that_is_not_understood_may_be_of_any_path() {
        let check = |mark: &[u8], expected: [u32; 2]| {
            let marks = std::iter::once(mark);
            assert_eq!(Multikey::of_marks(2, marks).0, expected, "{mark:?}");
        };
        check(&[MARK, 1, 0], [0, 1]);
        check(&[MARK, 2, 0], [u32::MAX; 2]);
        check(&[MARK, 1], [u32::MAX; 2]);
        check(&[MARK, 1, 0, 0], [u32::MAX; 2]);
    }

    #[test]
    fn every_path_that_meets_an_array_is_marked() {
        let check = |key: DocumentBuf, document: DocumentBuf, expected: &[u32]| {
            let found = multikey(key, document.as_document());
            assert_eq!(found, expected, "{document}");
        };
        check(doc! { "a": 1 }, doc! { "a": 1 }, &[0]);
        check(doc! { "a": 1 }, doc! { "a": (array![]) }, &[1]);
        check(doc! { "a": 1 }, doc! { "a": (array![1, 2]) }, &[1]);
        let both = || doc! { "a.b": 1, "c": 1, "a.d": -1 };
        check(both(), doc! { "a": { "b": 1 }, "c": 2 }, &[0, 0, 0]);
        check(both(), doc! { "a": { "b": (array![1, 2]) } }, &[2, 0, 0]);
        let inner = doc! { "b": (array![1, 2]), "d": 1 };
        let documents = array![inner.clone(), inner];
        check(both(), doc! { "a": documents, "c": 2 }, &[3, 0, 1]);
        check(both(), doc! { "c": (array![2]) }, &[0, 1, 0]);
        let sphere = || doc! { "p": "2dsphere", "t": 1 };
        let line = array![array![0, 0], array![50, 50]];
        let line = doc! { "type": "LineString", "coordinates": line };
        check(sphere(), doc! { "p": line, "t": (array![1]) }, &[1, 1]);
    }
}
