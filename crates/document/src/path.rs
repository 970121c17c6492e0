//! Dotted paths: "a.b.0.c".

use std::fmt;

use crate::{Document, ValueRef};

/// A dotted path, split once.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path {
    components: Vec<Component>,
}

/// One part of a path: a field's name, which may also be a place in an array.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Component {
    name: Box<str>,
    index: Option<u32>,
}

impl Component {
    pub fn new(name: &str) -> Component {
        Component {
            name: name.into(),
            index: array_index(name),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The place in an array where the name is one: digits without a leading zero.
    pub fn index(&self) -> Option<usize> {
        self.index.map(|index| index as usize)
    }
}

/// The array index that a name spells: "0", "17", but not "01", "-1" or "1e3".
pub fn array_index(name: &str) -> Option<u32> {
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let plain = name == "0" || !name.starts_with('0');
    if digits && plain {
        name.parse().ok()
    } else {
        None
    }
}

impl Path {
    /// Splits at the dots. Empty parts stay, for callers to refuse.
    pub fn parse(text: &str) -> Path {
        Path {
            components: text.split('.').map(Component::new).collect(),
        }
    }

    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// The value at the path through documents alone: no array is entered.
    pub fn get<'a>(&self, document: Document<'a>) -> Option<ValueRef<'a>> {
        let (last, inner) = self.components.split_last()?;
        let mut document = document;
        for component in inner {
            document = document.get(component.name())?.as_document()?;
        }
        document.get(last.name())
    }

    /// Whether one is the other or lies within it.
    pub fn overlaps(&self, other: &Path) -> bool {
        let pairs = self.components.iter().zip(&other.components);
        pairs.into_iter().all(|(one, other)| one == other)
    }
}

impl FromIterator<Component> for Path {
    fn from_iter<T: IntoIterator<Item = Component>>(components: T) -> Path {
        Path {
            components: components.into_iter().collect(),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, component) in self.components.iter().enumerate() {
            let dot = if number == 0 { "" } else { "." };
            write!(formatter, "{dot}{}", component.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    #[test]
    fn paths_lead_through_documents() {
        let document = doc! { "a": { "b": { "c": 1 } }, "d": [{ "e": 1 }] };
        let get = |path| Path::parse(path).get(document.as_document());
        assert_eq!(get("a.b.c"), Some(ValueRef::Int32(1)));
        assert_eq!(get("a.x"), None);
        assert_eq!(get("d.e"), None);
    }

    #[test]
    fn indexes_are_plain_numbers() {
        let cases = [
            ("0", Some(0)),
            ("10", Some(10)),
            ("01", None),
            ("-1", None),
            ("", None),
        ];
        cases
            .into_iter()
            .for_each(|(name, expected)| assert_eq!(array_index(name), expected, "{name}"));
    }

    #[test]
    fn overlap_is_prefix() {
        let overlaps = |a, b| Path::parse(a).overlaps(&Path::parse(b));
        assert!(overlaps("a.b", "a.b.c") && overlaps("a", "a.b") && overlaps("a", "a"));
        assert!(!overlaps("a.b", "a.c") && !overlaps("ab", "a"));
    }
}
