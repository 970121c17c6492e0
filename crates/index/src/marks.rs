//! Marks: index entries that record which paths of an index met arrays.
//!
//! ```text
//! mark     00 | index of the field, u8 | index of the path component, u8
//! ```
//! A document has one mark for each path component that met an array. Marks are inserted and
//! removed with the other entries of the document. So each snapshot of an index has exact
//! information about arrays, and the information disappears with the last array. The key bytes of
//! values never start with zero, so marks sort before all keys and no range of values contains one.

use crate::definition::KeyField;

/// The path components that met an array in any document of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Multikey(
    /// One bit set per field of the key. Bit i is set if component i of the path met an array. Bit
    /// 31 also stands for all later components.
    pub Vec<u32>,
);

impl Multikey {
    /// Returns a value for an index with this number of fields that met no arrays.
    pub fn new(fields: usize) -> Multikey {
        Multikey(vec![0; fields])
    }

    /// Combines the marks of an index with this number of fields. Returns [`Multikey::everywhere`]
    /// if a mark is malformed: arrays that are assumed cost time, but arrays that are overlooked
    /// give wrong results.
    pub fn from_marks<'k>(fields: usize, keys: impl Iterator<Item = &'k [u8]>) -> Multikey {
        let mut multikey = Multikey::new(fields);
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

    /// Returns a value for an index with this number of fields whose paths may meet arrays at every
    /// component.
    pub fn everywhere(fields: usize) -> Multikey {
        Multikey(vec![u32::MAX; fields])
    }

    /// Returns `true` if every component of every path met an array, so that further marks change
    /// nothing.
    pub fn is_whole(&self, fields: &[KeyField]) -> bool {
        let is_whole = |(parts, field): (&u32, &KeyField)| {
            let possible = field.path.components().len().min(u32::BITS as usize) as u32;
            parts.trailing_ones() >= possible
        };
        self.0.iter().zip(fields).all(is_whole)
    }

    /// Returns `true` if any path met an array.
    pub fn any(&self) -> bool {
        self.0.iter().any(|parts| *parts != 0)
    }
}

/// The first byte of the keys of marks.
pub const MARK: u8 = 0;

/// Returns `true` if `key` is the key of a mark.
#[inline]
pub fn is_mark(key: &[u8]) -> bool {
    key.first() == Some(&MARK)
}

/// The marks of one document: distinct pairs of a field and a path component that meets an array.
#[derive(Debug, Default)]
pub(crate) struct DocumentMarks(Vec<(u8, u8)>);

impl DocumentMarks {
    /// Removes all marks.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Records that a component of the path of a field meets an array. MongoDB limits a key to 32
    /// fields. All components from the 32nd on are recorded as one.
    pub fn record(&mut self, field: usize, part: usize) {
        debug_assert!(field < 32, "field {field} of a key");
        let mark = (field as u8, part.min(31) as u8);
        if !self.0.contains(&mark) {
            self.0.push(mark);
        }
    }

    /// Calls `visit` with the key of each mark.
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
        Multikey::from_marks(definition.fields.len(), keys).0
    }

    /// A malformed mark was ignored. A plan then assumed that the index met no arrays, and its
    /// bounds were too narrow.
    #[test]
    fn a_malformed_mark_means_arrays_everywhere() {
        let check = |mark: &[u8], expected: [u32; 2]| {
            let marks = std::iter::once(mark);
            assert_eq!(Multikey::from_marks(2, marks).0, expected, "{mark:?}");
        };
        check(&[MARK, 1, 0], [0, 1]);
        check(&[MARK, 2, 0], [u32::MAX; 2]);
        check(&[MARK, 1], [u32::MAX; 2]);
        check(&[MARK, 1, 0, 0], [u32::MAX; 2]);
    }

    #[test]
    fn every_path_component_that_meets_an_array_is_marked() {
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
