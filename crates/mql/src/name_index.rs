//! An index from names to their positions in a list, for lookups of a document's fields among the
//! names in a query.

use std::collections::HashMap;

/// Lists up to this length are searched linearly.
const FEW: usize = 16;

/// The positions of the names of a list. Empty if the list is short.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Names(HashMap<Box<[u8]>, usize>);

impl Names {
    /// Updates the index after one entry was appended to the list.
    pub fn note_last<T>(&mut self, entries: &[(Box<str>, T)]) {
        match entries.split_last() {
            Some(((name, _), before)) if before.len() > FEW => {
                self.0.insert(name.as_bytes().into(), before.len());
            }
            Some((_, before)) if before.len() == FEW => self.note_all(entries),
            _ => {}
        }
    }

    /// Rebuilds the index from the list.
    pub fn note_all<T>(&mut self, entries: &[(Box<str>, T)]) {
        self.0.clear();
        if entries.len() > FEW {
            let places = entries.iter().enumerate();
            self.0 = places
                .map(|(place, (name, _))| (name.as_bytes().into(), place))
                .collect();
        }
    }

    /// The position of a name in the list. Names in the list are unique.
    pub fn find<T>(&self, entries: &[(Box<str>, T)], name: &[u8]) -> Option<usize> {
        match entries.len() > FEW {
            true => self.0.get(name).copied(),
            false => entries.iter().position(|(one, _)| one.as_bytes() == name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_short_and_long_lists() {
        let (mut names, mut entries) = (Names::default(), Vec::new());
        for number in 0..50 {
            entries.push((Box::from(format!("n{number}")), ()));
            names.note_last(&entries);
            for place in 0..=number {
                let name = format!("n{place}");
                assert_eq!(names.find(&entries, name.as_bytes()), Some(place));
            }
            assert_eq!(names.find(&entries, b"other"), None);
        }
        entries.insert(0, (Box::from("first"), ()));
        names.note_all(&entries);
        assert_eq!(names.find(&entries, b"first"), Some(0));
        assert_eq!(names.find(&entries, b"n49"), Some(50));
    }
}
