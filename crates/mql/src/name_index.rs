//! An index from names to their positions in a list, for lookups of a document's fields among the
//! names in a query.

use std::collections::HashMap;

/// Lists up to this length are searched linearly.
const LINEAR_SEARCH_MAX: usize = 16;

/// The positions of the names of a list. Empty if the list is short.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NameIndex(HashMap<Box<[u8]>, usize>);

impl NameIndex {
    /// Updates the index after one entry was appended to the list.
    pub fn record_last<T>(&mut self, entries: &[(Box<str>, T)]) {
        match entries.split_last() {
            Some(((name, _), before)) if before.len() > LINEAR_SEARCH_MAX => {
                self.0.insert(name.as_bytes().into(), before.len());
            }
            Some((_, before)) if before.len() == LINEAR_SEARCH_MAX => self.rebuild(entries),
            _ => {}
        }
    }

    /// Rebuilds the index from the list.
    pub fn rebuild<T>(&mut self, entries: &[(Box<str>, T)]) {
        self.0.clear();
        if entries.len() > LINEAR_SEARCH_MAX {
            let indexes = entries.iter().enumerate();
            self.0 = indexes
                .map(|(index, (name, _))| (name.as_bytes().into(), index))
                .collect();
        }
    }

    /// Returns the position of a name in the list. Names in the list are unique.
    pub fn find<T>(&self, entries: &[(Box<str>, T)], name: &[u8]) -> Option<usize> {
        if entries.len() > LINEAR_SEARCH_MAX {
            self.0.get(name).copied()
        } else {
            entries.iter().position(|(one, _)| one.as_bytes() == name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_short_and_long_lists() {
        let (mut names, mut entries) = (NameIndex::default(), Vec::new());
        for number in 0..50 {
            entries.push((Box::from(format!("n{number}")), ()));
            names.record_last(&entries);
            for index in 0..=number {
                let name = format!("n{index}");
                assert_eq!(names.find(&entries, name.as_bytes()), Some(index));
            }
            assert_eq!(names.find(&entries, b"other"), None);
        }
        entries.insert(0, (Box::from("first"), ()));
        names.rebuild(&entries);
        assert_eq!(names.find(&entries, b"first"), Some(0));
        assert_eq!(names.find(&entries, b"n49"), Some(50));
    }
}
