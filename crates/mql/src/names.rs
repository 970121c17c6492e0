//! Places of names, where a document's fields are looked up among those that somebody wrote.

use std::collections::HashMap;

/// So few names are looked for one by one.
const FEW: usize = 16;

/// The places of names in a list; of a short one nothing is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Names(HashMap<Box<[u8]>, usize>);

impl Names {
    /// Takes the list in again, whose last entry is new.
    pub fn note_last<T>(&mut self, entries: &[(Box<str>, T)]) {
        match entries.split_last() {
            Some(((name, _), before)) if before.len() > FEW => {
                self.0.insert(name.as_bytes().into(), before.len());
            }
            Some((_, before)) if before.len() == FEW => self.note_all(entries),
            _ => {}
        }
    }

    /// Takes the whole list in again.
    pub fn note_all<T>(&mut self, entries: &[(Box<str>, T)]) {
        self.0.clear();
        if entries.len() > FEW {
            let places = entries.iter().enumerate();
            self.0 = places
                .map(|(place, (name, _))| (name.as_bytes().into(), place))
                .collect();
        }
    }

    /// The place of a name in the list, which no two have.
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
    fn few_names_and_many_are_found() {
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
