//! Dotted paths: "a.b.0.c".

use std::fmt;

use crate::{Document, ValueRef};

/// A parsed dotted path.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path {
    components: Vec<Component>,
}

/// A component of a path: a field name, which can also be an array index.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Component {
    name: Box<str>,
    index: Option<u32>,
}

impl Component {
    /// Creates a component.
    pub fn new(name: &str) -> Component {
        Component {
            name: name.into(),
            index: array_index(name),
        }
    }

    /// The field name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The array index, if the name is one: digits without a leading zero.
    pub fn index(&self) -> Option<usize> {
        self.index.map(|index| index as usize)
    }
}

/// Returns the array index that a name represents: "0" or "17", but not "01", "-1" or "1e3".
pub fn array_index(name: &str) -> Option<u32> {
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let is_canonical = name == "0" || !name.starts_with('0');
    if digits && is_canonical {
        name.parse().ok()
    } else {
        None
    }
}

impl Path {
    /// Splits the text at its dots. Empty components are preserved; callers refuse them with
    /// MongoDB's error.
    pub fn parse(text: &str) -> Path {
        Path {
            components: text.split('.').map(Component::new).collect(),
        }
    }

    /// The components.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Returns the value at the path. Descends into documents only, not into arrays.
    pub fn get<'a>(&self, document: Document<'a>) -> Option<ValueRef<'a>> {
        let (last, inner) = self.components.split_last()?;
        let mut document = document;
        for component in inner {
            document = document.get(component.name())?.as_document()?;
        }
        document.get(last.name())
    }

    /// Returns `true` if the paths are equal or one contains the other.
    pub fn overlaps(&self, other: &Path) -> bool {
        let pairs = self.components.iter().zip(&other.components);
        pairs
            .into_iter()
            .all(|(component, other)| component == other)
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
    fn paths_descend_into_documents() {
        let document = doc! { "a": { "b": { "c": 1 } }, "d": [{ "e": 1 }] };
        let get = |path| Path::parse(path).get(document.as_document());
        assert_eq!(get("a.b.c"), Some(ValueRef::Int32(1)));
        assert_eq!(get("a.x"), None);
        assert_eq!(get("d.e"), None);
    }

    #[test]
    fn array_indexes_have_no_leading_zero() {
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
    fn paths_overlap_if_one_is_a_prefix() {
        let overlaps = |a, b| Path::parse(a).overlaps(&Path::parse(b));
        assert!(overlaps("a.b", "a.b.c") && overlaps("a", "a.b") && overlaps("a", "a"));
        assert!(!overlaps("a.b", "a.c") && !overlaps("ab", "a"));
    }
}
