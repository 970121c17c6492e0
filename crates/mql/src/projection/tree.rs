//! The tree of a projection: an entry for each named field, level by level.

use windrow_document::path::{Component, Path};

use super::slice::Slice;
use crate::Error;
use crate::expression::{Dependencies, Expression};
use crate::filter::Filter;
use crate::name_index::NameIndex;

/// The fields of one level, in the order of the projection.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    entries: Vec<(Box<str>, Entry)>,
    names: NameIndex,
    /// `true` if a field on this level or below is computed.
    computes: bool,
}

/// What the projection does with a field.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Include,
    Exclude,
    /// Includes the field. If it is an array, includes only a part of it.
    Slice(Slice),
    Computed(Computation),
    Children(Tree),
}

#[derive(Clone, Debug)]
pub(super) enum Computation {
    Expression(Expression),
    /// The first matching element of the array. The filter applies to the whole document.
    ElemMatch(Filter),
}

impl Tree {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn computes(&self) -> bool {
        self.computes
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (&**name, entry))
    }

    /// Returns the entry with this name.
    pub(super) fn find(&self, name: &[u8]) -> Option<&Entry> {
        let found = self.entries.get(self.names.find(&self.entries, name)?);
        found.map(|(_, entry)| entry)
    }

    fn push(&mut self, name: &str, entry: Entry) {
        self.entries.push((name.into(), entry));
        self.names.record_last(&self.entries);
    }

    /// Adds an entry at a path.
    ///
    /// # Errors
    ///
    /// - 31249: a prefix of the path has an entry.
    /// - 31250: the path or a longer one has an entry.
    pub(super) fn insert(&mut self, path: &Path, entry: Entry) -> Result<(), Error> {
        let collision = |code, remaining: &[Component]| {
            let remaining = remaining
                .iter()
                .map(Component::name)
                .collect::<Vec<_>>()
                .join(".");
            Error::new(
                code,
                format!("Path collision at {path} remaining portion {remaining}"),
            )
        };
        let computes = matches!(entry, Entry::Computed(_));
        let (mut tree, mut components) = (self, path.components());
        while let Some((first, rest)) = components.split_first() {
            tree.computes |= computes;
            let name = first.name();
            let index = tree.names.find(&tree.entries, name.as_bytes());
            if rest.is_empty() {
                if index.is_some() {
                    return Err(collision(31250, components));
                }
                tree.push(name, entry);
                return Ok(());
            }
            let index = index.unwrap_or_else(|| {
                tree.push(name, Entry::Children(Tree::default()));
                tree.entries.len() - 1
            });
            match tree.entries.get_mut(index) {
                Some((_, Entry::Children(inner))) => tree = inner,
                _ => return Err(collision(31249, rest)),
            }
            components = rest;
        }
        Ok(())
    }

    /// Adds the field at the front if it has no entry.
    pub(super) fn insert_first(&mut self, name: &str, entry: Entry) {
        if self.find(name.as_bytes()).is_none() {
            self.entries.insert(0, (name.into(), entry));
            self.names.rebuild(&self.entries);
        }
    }

    /// Returns the included paths, if all entries are inclusions or exclusions. An excluded field
    /// adds no path.
    pub(super) fn plain_paths(&self) -> Option<Vec<Path>> {
        let mut paths = Vec::new();
        self.collect_plain("", &mut paths).then_some(paths)
    }

    fn collect_plain(&self, prefix: &str, paths: &mut Vec<Path>) -> bool {
        self.entries().all(|(name, entry)| match entry {
            Entry::Include => {
                paths.push(Path::parse(&format!("{prefix}{name}")));
                true
            }
            Entry::Exclude => true,
            Entry::Children(tree) => tree.collect_plain(&format!("{prefix}{name}."), paths),
            Entry::Slice(_) | Entry::Computed(_) => false,
        })
    }

    pub(super) fn add_dependencies(&self, prefix: &str, dependencies: &mut Dependencies) {
        for (name, entry) in self.entries() {
            let path = format!("{prefix}{name}");
            match entry {
                Entry::Include | Entry::Slice(_) => dependencies.add(&path),
                Entry::Exclude => {}
                Entry::Computed(Computation::ElemMatch(_)) => dependencies.add(&path),
                Entry::Computed(Computation::Expression(expression)) => {
                    dependencies.extend(expression.dependencies());
                    // If an array is on the path, each of its documents gets the computed field.
                    if !prefix.is_empty() {
                        dependencies.add(prefix.trim_end_matches('.'));
                    }
                }
                Entry::Children(tree) => tree.add_dependencies(&format!("{path}."), dependencies),
            }
        }
    }
}
