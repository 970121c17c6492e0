//! The fields that an update can change. Indexes of other fields need no update.

use std::sync::Arc;

use windrow_document::path::{Path, array_index};

use super::path::Name;

/// The fields that an update can change. It is known when the update is parsed. An update of one
/// document may change fewer fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AffectedFields {
    /// All fields: a replacement or a pipeline.
    All,
    /// These fields and the fields within them: "a.b" for "a.$[].b", "a" for "a.0.b".
    Paths(Arc<[Path]>),
}

impl AffectedFields {
    /// Returns `true` if the value at the path, or the index entries made from it, can change.
    /// Array indexes in the path are ignored.
    pub fn overlaps(&self, path: &Path) -> bool {
        let AffectedFields::Paths(paths) = self else {
            return true;
        };
        let plain = || {
            path.components()
                .iter()
                .filter(|part| part.index().is_none())
        };
        paths.iter().any(|one| {
            let mut pairs = one.components().iter().zip(plain());
            pairs.all(|(one, other)| one.name() == other.name())
        })
    }
}

/// Returns the path up to the first array index, where an update can add elements. `$[…]` is left
/// out, because it only selects existing elements.
pub(super) fn plain_path(names: &[Name]) -> Path {
    let adds = |name: &&Name| name.is_positional() || array_index(name.text()).is_some();
    let sure = names.iter().take_while(|name| !adds(name));
    let parts: Vec<&str> = sure
        .filter(|name| name.identifier().is_none())
        .map(Name::text)
        .collect();
    Path::parse(&parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_indexes_are_ignored() {
        let affected_fields = |path: &str| {
            let names = super::super::path::parse(path).unwrap();
            AffectedFields::Paths(Arc::new([plain_path(&names)]))
        };
        let cases = [
            ("a.$[].b", "a.b", true),
            ("a.0.b", "a", true),
            ("a.$", "a.b.c", true),
            ("a.1.b", "a.c", true),
            ("a.$.b", "a.c", true),
            ("a.b", "a.0.b", true),
            ("a.b", "a.c", false),
            ("a.$[i].b", "a.c", false),
            ("ab", "a", false),
        ];
        for (update, index, expected) in cases {
            assert_eq!(
                affected_fields(update).overlaps(&Path::parse(index)),
                expected,
                "{update} {index}"
            );
        }
    }
}
