//! Applies the tree of operators to a document.
//!
//! At each document or array on a path, one walk finds the elements of all children. Then the
//! children are applied in the order of the tree, which decides whose error is reported. Then the
//! bytes are written, with new fields last. A value that no operator changes is not written.

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef};

use super::document_checks::{self, DEPTH_MAX};
use super::modifier::{Change, Execution, FieldTarget, NewValue};
use super::path::{self, Name};
use super::rewrite::{Container, LocatedElement, Rewrite, locate};
use super::tree::{Elements, Fields, Leaf, OperatorNode};
use crate::Error;
use crate::interrupt::count_work;
use crate::memory::{check_written, depth};

/// Maximum number of nulls that an update may add before a new array element.
const PADDING_MAX: usize = 1_500_000;

/// The position of a value in the document.
#[derive(Clone, Copy)]
struct NodePosition {
    depth: usize,
    in_array: bool,
    /// `true` if the value is an array element itself.
    is_element: bool,
}

impl NodePosition {
    /// Returns the position of a field of this document.
    fn field(self) -> NodePosition {
        NodePosition {
            depth: self.depth + 1,
            in_array: self.in_array,
            is_element: false,
        }
    }

    /// Returns the position of an element of this array.
    fn element(self) -> NodePosition {
        NodePosition {
            depth: self.depth + 1,
            in_array: true,
            is_element: true,
        }
    }
}

/// Calls `work` with a name appended to the current path.
fn named<T>(execution: &Execution<'_>, name: &str, work: impl FnOnce() -> T) -> T {
    let mark = execution.description_builder.borrow_mut().enter(name);
    let done = work();
    execution.description_builder.borrow_mut().leave(mark);
    done
}

/// The result of a child of the tree: the existing element, if there is one, and its change.
struct ChildChange<'a> {
    name: &'a Name,
    found: Option<LocatedElement<'a>>,
    change: Change<'a>,
}

/// Applies all operators. Returns `None` if none of them had an effect.
pub(super) fn apply(
    fields: &Fields,
    execution: &Execution<'_>,
) -> Result<Option<DocumentBuf>, Error> {
    let position = NodePosition {
        depth: 0,
        in_array: false,
        is_element: false,
    };
    let child_changes = document_changes(fields, execution.root, execution, position)?;
    document_checks::check_top_level(
        execution,
        child_changes
            .iter()
            .filter(|child_change| !child_change.change.is_keep())
            .map(|child_change| (child_change.name.text(), child_change.found.is_some())),
    )?;
    write(execution.root, Container::Document, child_changes)
}

fn existing<'a>(
    node: &'a OperatorNode,
    value: ValueRef<'a>,
    execution: &'a Execution<'a>,
    position: NodePosition,
) -> Result<Change<'a>, Error> {
    match (node, value) {
        (OperatorNode::Leaf(leaf), _) => leaf_existing(leaf, value, execution, position),
        (OperatorNode::Elements(elements), ValueRef::Array(array)) => Ok(changed_array(
            in_elements(elements, array, execution, position)?,
        )),
        (OperatorNode::Elements(_), _) => Err(Error::bad_value(format!(
            "Cannot apply array updates to non-array element {value}"
        ))),
        (OperatorNode::Fields(fields), ValueRef::Document(document)) => {
            let child_changes = document_changes(fields, document, execution, position.field())?;
            let written = write(document, Container::Document, child_changes)?;
            Ok(written.map_or(Change::Keep, Change::owned))
        }
        (OperatorNode::Fields(fields), ValueRef::Array(array)) => Ok(changed_array(in_array(
            fields,
            array,
            execution,
            position.element(),
        )?)),
        (OperatorNode::Fields(fields), _) => {
            for (name, child) in &fields.children {
                blocked(child, name, value, execution, position)?;
            }
            Ok(Change::Keep)
        }
    }
}

fn changed_array<'a>(written: Option<DocumentBuf>) -> Change<'a> {
    written.map_or(Change::Keep, |document| {
        Change::owned(ArrayBuf::from_document(document))
    })
}

fn at<'a>(leaf: &'a Leaf, execution: &'a Execution<'a>, position: NodePosition) -> FieldTarget<'a> {
    FieldTarget {
        execution,
        path: &leaf.path,
        in_array: position.in_array,
    }
}

fn leaf_existing<'a>(
    leaf: &'a Leaf,
    value: ValueRef<'a>,
    execution: &'a Execution<'a>,
    position: NodePosition,
) -> Result<Change<'a>, Error> {
    if !leaf.applies(execution) {
        return Ok(Change::Keep);
    }
    let at = at(leaf, execution, position);
    let change = leaf.modifier.change(value, &at)?;
    if let Change::Set(new_value) = &change {
        check_depth(leaf, new_value, position)?;
    }
    record(leaf, value, &change, execution, position);
    Ok(change)
}

/// Records the change of an existing value.
fn record(
    leaf: &Leaf,
    value: ValueRef<'_>,
    change: &Change<'_>,
    execution: &Execution<'_>,
    position: NodePosition,
) {
    let mut description_builder = execution.description_builder.borrow_mut();
    match change {
        Change::Keep => {}
        Change::Set(new) if leaf.modifier.only_appends(value) => {
            let count = |value: ValueRef<'_>| value.as_array().map_or(0, Array::count);
            for index in count(value)..count(new.as_ref()) {
                let mark = description_builder.enter(&index.to_string());
                description_builder.record_updated();
                description_builder.leave(mark);
            }
        }
        // An array element is not removed but becomes null.
        Change::Remove if !position.is_element => description_builder.record_removed(),
        Change::Set(_) | Change::Remove => description_builder.record_updated(),
    }
}

/// Checks the nesting depth of a new value. Existing values are within the limit.
fn check_depth(leaf: &Leaf, new_value: &NewValue<'_>, position: NodePosition) -> Result<(), Error> {
    let depth = leaf.depth.unwrap_or_else(|| depth(new_value.as_ref()));
    if position.depth + depth > DEPTH_MAX {
        return Err(document_checks::too_deep(&leaf.path));
    }
    Ok(())
}

fn document_changes<'a>(
    fields: &'a Fields,
    document: Document<'a>,
    execution: &'a Execution<'a>,
    position: NodePosition,
) -> Result<Vec<ChildChange<'a>>, Error> {
    let mut elements: Vec<Option<LocatedElement<'a>>> = vec![None; fields.children.len()];
    let mut missing = elements.len();
    for found in locate(document) {
        if missing == 0 {
            break;
        }
        let slot = fields
            .find(found.name())
            .and_then(|at| elements.get_mut(at));
        if let Some(slot @ None) = slot {
            *slot = Some(found);
            missing -= 1;
        }
    }
    let mut child_changes = Vec::with_capacity(fields.children.len());
    for ((name, child), found) in fields.children.iter().zip(elements) {
        let change = named(execution, name.text(), || match found {
            Some(found) => existing(child, found.value(), execution, position),
            None => absent(child, execution, position),
        })?;
        check_written()?;
        child_changes.push(ChildChange {
            name,
            found,
            change,
        });
    }
    Ok(child_changes)
}

/// Writes the document or array with the changes. Returns `None` if nothing changes.
fn write(
    original: Document<'_>,
    container: Container,
    mut child_changes: Vec<ChildChange<'_>>,
) -> Result<Option<DocumentBuf>, Error> {
    if child_changes
        .iter()
        .all(|child_change| child_change.change.is_keep())
    {
        return Ok(None);
    }
    let mut rewrite = Rewrite::new(original, container);
    // The sort is stable: new fields keep the order of the tree, after the existing fields.
    child_changes
        .sort_by_key(|child_change| child_change.found.map_or(usize::MAX, |found| found.start));
    for child_change in &child_changes {
        if let Some(found) = &child_change.found {
            rewrite.change(found, &child_change.change)?;
        }
    }
    rewrite.copy_rest()?;
    for child_change in child_changes
        .iter()
        .filter(|child_change| child_change.found.is_none())
    {
        if let Change::Set(value) = &child_change.change {
            rewrite.append(child_change.name.text(), value.as_ref())?;
        }
    }
    Ok(Some(rewrite.finish()))
}

/// Applies children that are array indexes.
fn in_array<'a>(
    fields: &'a Fields,
    array: Array<'a>,
    execution: &'a Execution<'a>,
    position: NodePosition,
) -> Result<Option<DocumentBuf>, Error> {
    let elements: Vec<LocatedElement<'a>> = locate(array.as_document()).collect();
    let mut child_changes = Vec::with_capacity(fields.children.len());
    let mut added: Vec<(usize, NewValue<'a>)> = Vec::new();
    for (name, child) in &fields.children {
        let Some(index) = name.index() else {
            blocked(child, name, ValueRef::Array(array), execution, position)?;
            continue;
        };
        if let Some(found) = elements.get(index) {
            let change = named(execution, name.text(), || {
                existing(child, found.value(), execution, position)
            })?;
            child_changes.push(ChildChange {
                name,
                found: Some(*found),
                change,
            });
        } else if let Change::Set(value) = named(execution, name.text(), || {
            absent(child, execution, position)
        })? {
            check_padding(elements.len(), index)?;
            added.push((index, value));
        }
    }
    if added.is_empty() {
        return write(array.as_document(), Container::Array, child_changes);
    }
    let mut rewrite = Rewrite::new(array.as_document(), Container::Array);
    for child_change in &child_changes {
        if let Some(found) = &child_change.found {
            rewrite.change(found, &child_change.change)?;
        }
    }
    rewrite.copy_rest()?;
    append_elements(&mut rewrite, elements.len(), added)?;
    Ok(Some(rewrite.finish()))
}

fn check_padding(count: usize, index: usize) -> Result<(), Error> {
    if index - count > PADDING_MAX {
        return Err(Error::new(
            34,
            format!("can't backfill more than {PADDING_MAX} elements"),
        ));
    }
    Ok(())
}

/// Appends elements in ascending order of their indexes, with nulls between them.
fn append_elements(
    rewrite: &mut Rewrite<'_>,
    mut count: usize,
    added: Vec<(usize, NewValue<'_>)>,
) -> Result<(), Error> {
    for (index, value) in added {
        while count < index {
            rewrite.append(&count.to_string(), ValueRef::Null)?;
            count += 1;
        }
        if count == index {
            rewrite.append(&count.to_string(), value.as_ref())?;
            count += 1;
        }
    }
    Ok(())
}

/// Applies children to all elements, or to those that an array filter selects.
fn in_elements<'a>(
    elements: &'a Elements,
    array: Array<'a>,
    execution: &'a Execution<'a>,
    position: NodePosition,
) -> Result<Option<DocumentBuf>, Error> {
    let position = position.element();
    let recorded_counts = execution.description_builder.borrow().recorded_counts();
    let mut changes = Vec::new();
    for (index, found) in locate(array.as_document()).enumerate() {
        let change = named(execution, &index.to_string(), || {
            in_element(elements, found.value(), execution, position)
        })?;
        check_written()?;
        if !change.is_keep() {
            changes.push((found, change));
        }
    }
    match changes.len() {
        0 => return Ok(None),
        1 => {}
        // If several elements change, the description contains the whole array.
        _ => {
            let mut description_builder = execution.description_builder.borrow_mut();
            description_builder.truncate_to(recorded_counts);
            description_builder.record_updated();
        }
    }
    let mut rewrite = Rewrite::new(array.as_document(), Container::Array);
    for (found, change) in &changes {
        rewrite.change(found, change)?;
    }
    rewrite.copy_rest()?;
    Ok(Some(rewrite.finish()))
}

fn in_element<'a>(
    elements: &'a Elements,
    value: ValueRef<'a>,
    execution: &'a Execution<'a>,
    position: NodePosition,
) -> Result<Change<'a>, Error> {
    count_work(1 + elements.children.len())?;
    let mut picked: Vec<&'a OperatorNode> = Vec::new();
    for (filter, node) in &elements.children {
        let matches = match filter {
            None => true,
            Some(filter) => filter.matches(value, execution.collation)?,
        };
        if matches {
            picked.push(node);
        }
    }
    match picked.split_first() {
        None => Ok(Change::Keep),
        Some((only, [])) => existing(only, value, execution, position),
        Some((first, others)) => {
            let mut merged = (*first).clone();
            for other in others {
                merged = merged.merge(other)?;
            }
            Ok(existing(&merged, value, execution, position)?.into_owned())
        }
    }
}

/// Returns the change of a missing value: `Set`, or `Keep` if no value is created.
fn absent<'a>(
    node: &'a OperatorNode,
    execution: &'a Execution<'a>,
    position: NodePosition,
) -> Result<Change<'a>, Error> {
    match node {
        OperatorNode::Leaf(leaf) => {
            if !leaf.applies(execution) {
                return Ok(Change::Keep);
            }
            let at = at(leaf, execution, position);
            let Some(new_value) = leaf.modifier.create(&at)? else {
                return Ok(Change::Keep);
            };
            check_depth(leaf, &new_value, position)?;
            execution.description_builder.borrow_mut().record_updated();
            Ok(Change::Set(new_value))
        }
        OperatorNode::Fields(fields) => {
            let mut created: Option<Rewrite<'_>> = None;
            for (name, child) in &fields.children {
                let created_field = named(execution, name.text(), || {
                    absent(child, execution, position.field())
                })?;
                if let Change::Set(value) = created_field {
                    let rewrite = created
                        .get_or_insert_with(|| Rewrite::new(Document::EMPTY, Container::Document));
                    rewrite.append(name.text(), value.as_ref())?;
                }
            }
            let created = created.map(|rewrite| Value::Document(rewrite.finish()));
            Ok(created.map_or(Change::Keep, Change::owned))
        }
        OperatorNode::Elements(_) => Err(missing_array(node)),
    }
}

fn missing_array(node: &OperatorNode) -> Error {
    Error::bad_value(format!(
        "The path to the array of '{}' must exist in the document in order to apply array updates.",
        node.any_path()
    ))
}

/// Handles a value on the path that cannot contain the field. Fails for all operators that would
/// create the field, and for most others.
fn blocked<'a>(
    node: &'a OperatorNode,
    name: &Name,
    value: ValueRef<'_>,
    execution: &'a Execution<'a>,
    position: NodePosition,
) -> Result<(), Error> {
    match node {
        OperatorNode::Leaf(leaf) if !leaf.applies(execution) => Ok(()),
        OperatorNode::Leaf(leaf) => {
            let at = at(leaf, execution, position);
            let creates = leaf.modifier.create(&at)?.is_some();
            if creates || !leaf.modifier.ignores_blocked_path() {
                return Err(path::not_viable(name.text(), value));
            }
            Ok(())
        }
        OperatorNode::Fields(fields) => fields
            .children
            .iter()
            .try_for_each(|(_, child)| blocked(child, name, value, execution, position)),
        OperatorNode::Elements(_) => Err(missing_array(node)),
    }
}
