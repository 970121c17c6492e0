//! All operators of an update as one tree over their paths.
//!
//! The tree finds conflicts while it is built, visits each part of a document once however many
//! operators there are, and defines the order in which new fields are added.

use std::sync::Arc;

use windrow_invariant::Bug;

use super::array_filter::ArrayFilter;
use super::modifier::{Execution, Modifier};
use super::path::{self, Name};
use crate::Error;

/// The operators on one value and on its parts.
#[derive(Clone, Debug)]
pub(super) enum OperatorNode {
    Leaf(Leaf),
    Fields(Fields),
    Elements(Elements),
}

/// When an operator is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenApplied {
    Always,
    /// Only if an upsert inserts the document: `$setOnInsert`.
    OnInsert,
}

/// An operator at the end of its path.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub path: Arc<str>,
    pub modifier: Arc<dyn Modifier>,
    pub when: WhenApplied,
    /// The nesting depth of the operand: 0 for a number. `None` if the value is not in the operand.
    pub depth: Option<usize>,
}

impl Leaf {
    /// Returns `true` if the operator is applied in this execution.
    pub fn applies(&self, execution: &Execution<'_>) -> bool {
        self.when == WhenApplied::Always || execution.is_insert
    }
}

/// The children that are fields of a document, or indexes of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    /// Sorted by [`path::order`].
    pub children: Vec<(Name, OperatorNode)>,
    /// The child `$`.
    pub matched: Option<Box<OperatorNode>>,
}

/// The children that are selected elements of an array: all elements (`None`), or those that an
/// array filter selects. Sorted by identifier.
#[derive(Clone, Debug, Default)]
pub(super) struct Elements {
    pub children: Vec<(Option<Arc<ArrayFilter>>, OperatorNode)>,
}

/// Finds the array filter with an identifier.
pub(super) type Filters<'f> = &'f dyn Fn(&str) -> Option<Arc<ArrayFilter>>;

impl Fields {
    /// Adds an operator at its path.
    ///
    /// # Errors
    ///
    /// - 40: another operator has this path, a prefix of it, or a longer path.
    /// - 2: no array filter has the identifier.
    pub fn insert(
        &mut self,
        names: &[Name],
        leaf: Leaf,
        filters: Filters<'_>,
    ) -> Result<(), Error> {
        let Some((name, rest)) = names.split_first() else {
            return Err(Bug::new("a path has no names").into());
        };
        if name.is_positional() {
            return match &mut self.matched {
                Some(child) => child.insert(rest, leaf, filters, name),
                None => {
                    self.matched = Some(Box::new(OperatorNode::chain(rest, leaf, filters)?));
                    Ok(())
                }
            };
        }
        match self.search(name.text().as_bytes()) {
            Ok(index) => {
                let child = self.children.get_mut(index);
                let (_, child) = child.ok_or_else(|| no_child(index))?;
                child.insert(rest, leaf, filters, name)
            }
            Err(index) => {
                self.children.insert(
                    index,
                    (name.clone(), OperatorNode::chain(rest, leaf, filters)?),
                );
                Ok(())
            }
        }
    }

    /// Returns the index of the child with this name, or the index at which to insert it.
    fn search(&self, name: &[u8]) -> Result<usize, usize> {
        self.children
            .binary_search_by(|(known, _)| known.order(name))
    }

    /// Returns the child with this name. A linear search is faster for few children, and this runs
    /// for every field of a document.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        const FEW: usize = 8;
        if self.children.len() > FEW {
            return self.search(name).ok();
        }
        self.children
            .iter()
            .position(|(known, _)| known.text().as_bytes() == name)
    }

    /// Returns the tree with `$` replaced by an array index.
    pub fn with_match(&self, position: usize) -> Result<Fields, Error> {
        let mut children = Vec::with_capacity(self.children.len() + 1);
        for (name, child) in &self.children {
            children.push((name.clone(), child.with_match(position)?));
        }
        let mut resolved = Fields {
            children,
            matched: None,
        };
        if let Some(matched) = &self.matched {
            let name = Name::new(&position.to_string());
            resolved.add(name, matched.with_match(position)?)?;
        }
        Ok(resolved)
    }

    fn add(&mut self, name: Name, node: OperatorNode) -> Result<(), Error> {
        match self.search(name.text().as_bytes()) {
            Ok(index) => {
                let child = self.children.get_mut(index);
                let (_, child) = child.ok_or_else(|| no_child(index))?;
                *child = child.merge(&node)?;
            }
            Err(index) => self.children.insert(index, (name, node)),
        }
        Ok(())
    }

    fn merge(&self, other: &Fields) -> Result<Fields, Error> {
        let mut merged = self.clone();
        for (name, child) in &other.children {
            merged.add(name.clone(), child.clone())?;
        }
        Ok(merged)
    }
}

impl Elements {
    fn insert(&mut self, names: &[Name], leaf: Leaf, filters: Filters<'_>) -> Result<(), Error> {
        let named = names.split_first();
        let named = named.and_then(|(name, rest)| Some((name, name.identifier()?, rest)));
        let Some((name, identifier, rest)) = named else {
            return Err(Bug::new("a path of elements begins with another name").into());
        };
        match self.search(identifier) {
            Ok(index) => {
                let child = self.children.get_mut(index);
                let (_, child) = child.ok_or_else(|| no_child(index))?;
                child.insert(rest, leaf, filters, name)
            }
            Err(index) => {
                let filter = find_filter(identifier, &leaf.path, filters)?;
                let child = OperatorNode::chain(rest, leaf, filters)?;
                self.children.insert(index, (filter, child));
                Ok(())
            }
        }
    }

    fn search(&self, identifier: &str) -> Result<usize, usize> {
        self.children.binary_search_by(|(filter, _)| {
            let known = filter.as_ref().map_or("", |filter| filter.identifier());
            known.cmp(identifier)
        })
    }

    fn with_match(&self, position: usize) -> Result<Elements, Error> {
        let mut children = Vec::with_capacity(self.children.len());
        for (filter, child) in &self.children {
            children.push((filter.clone(), child.with_match(position)?));
        }
        Ok(Elements { children })
    }

    fn merge(&self, other: &Elements) -> Result<Elements, Error> {
        let mut merged = self.clone();
        for (filter, node) in &other.children {
            let identifier = filter.as_ref().map_or("", |filter| filter.identifier());
            match merged.search(identifier) {
                Ok(index) => {
                    let child = merged.children.get_mut(index);
                    let (_, child) = child.ok_or_else(|| no_child(index))?;
                    *child = child.merge(node)?;
                }
                Err(index) => merged
                    .children
                    .insert(index, (filter.clone(), node.clone())),
            }
        }
        Ok(merged)
    }
}

/// Returns the broken invariant that a child was found and is missing.
fn no_child(index: usize) -> Bug {
    Bug::new(format!("there is no child {index}"))
}

/// Returns the array filter with this identifier. `None` for `$[]`.
fn find_filter(
    identifier: &str,
    path: &str,
    filters: Filters<'_>,
) -> Result<Option<Arc<ArrayFilter>>, Error> {
    if identifier.is_empty() {
        return Ok(None);
    }
    match filters(identifier) {
        Some(filter) => Ok(Some(filter)),
        None => Err(Error::bad_value(format!(
            "No array filter found for identifier '{identifier}' in path '{path}'"
        ))),
    }
}

impl OperatorNode {
    /// Returns a branch with one operator at its end.
    fn chain(names: &[Name], leaf: Leaf, filters: Filters<'_>) -> Result<OperatorNode, Error> {
        let Some(name) = names.first() else {
            return Ok(OperatorNode::Leaf(leaf));
        };
        if name.identifier().is_some() {
            let mut elements = Elements::default();
            elements.insert(names, leaf, filters)?;
            Ok(OperatorNode::Elements(elements))
        } else {
            let mut fields = Fields::default();
            fields.insert(names, leaf, filters)?;
            Ok(OperatorNode::Fields(fields))
        }
    }

    /// Adds an operator below this node. `index` is the name of this node.
    fn insert(
        &mut self,
        names: &[Name],
        leaf: Leaf,
        filters: Filters<'_>,
        index: &Name,
    ) -> Result<(), Error> {
        let elements_next = names.first().map(|name| name.identifier().is_some());
        match (self, elements_next) {
            (OperatorNode::Fields(fields), Some(false)) => fields.insert(names, leaf, filters),
            (OperatorNode::Elements(elements), Some(true)) => elements.insert(names, leaf, filters),
            _ => Err(path::conflict(&leaf.path, index.text())),
        }
    }

    fn with_match(&self, position: usize) -> Result<OperatorNode, Error> {
        Ok(match self {
            OperatorNode::Leaf(leaf) => OperatorNode::Leaf(leaf.clone()),
            OperatorNode::Fields(fields) => OperatorNode::Fields(fields.with_match(position)?),
            OperatorNode::Elements(elements) => {
                OperatorNode::Elements(elements.with_match(position)?)
            }
        })
    }

    /// Returns the union of two nodes at the same path. Fails with 40 if they conflict.
    pub fn merge(&self, other: &OperatorNode) -> Result<OperatorNode, Error> {
        match (self, other) {
            (OperatorNode::Fields(one), OperatorNode::Fields(other)) => {
                Ok(OperatorNode::Fields(one.merge(other)?))
            }
            (OperatorNode::Elements(one), OperatorNode::Elements(other)) => {
                Ok(OperatorNode::Elements(one.merge(other)?))
            }
            _ => Err(path::conflict(other.any_path(), self.any_path())),
        }
    }

    /// Returns the path of the first operator, for messages.
    pub fn any_path(&self) -> &str {
        match self {
            OperatorNode::Leaf(leaf) => &leaf.path,
            OperatorNode::Fields(fields) => {
                let first = fields.children.first().map(|(_, child)| child);
                first
                    .or(fields.matched.as_deref())
                    .map_or("", OperatorNode::any_path)
            }
            OperatorNode::Elements(elements) => elements
                .children
                .first()
                .map_or("", |(_, child)| child.any_path()),
        }
    }
}
