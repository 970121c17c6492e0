//! Applies the tree of operators to a document.
//!
//! At each document or array on a path, one walk finds the elements of all children. Then the
//! children are applied in the order of the tree, which decides whose error is reported. Then the
//! bytes are written, with new fields last. A value that no operator changes is not written.

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef};

use super::modifier::{At, Change, Put, Run};
use super::path::{self, Name};
use super::rewrite::{Found, Rewrite, locate};
use super::storable::{self, DEPTH_MAX};
use super::tree::{Elements, Fields, Leaf, Node};
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
    fn within(self, in_array: bool) -> NodePosition {
        NodePosition {
            depth: self.depth + 1,
            in_array: self.in_array || in_array,
            is_element: in_array,
        }
    }
}

/// Calls `work` with a name appended to the current path.
fn named<T>(run: &Run<'_>, name: &str, work: impl FnOnce() -> T) -> T {
    let step = run.trace.borrow_mut().enter(name);
    let done = work();
    run.trace.borrow_mut().leave(step);
    done
}

/// The result of a child of the tree: the existing element, if there is one, and its change.
struct ChildChange<'a> {
    name: &'a Name,
    found: Option<Found<'a>>,
    change: Change<'a>,
}

/// Applies all operators. Returns `None` if none of them had an effect.
pub(super) fn apply(fields: &Fields, run: &Run<'_>) -> Result<Option<DocumentBuf>, Error> {
    let position = NodePosition {
        depth: 0,
        in_array: false,
        is_element: false,
    };
    let child_changes = document_changes(fields, run.root, run, position)?;
    storable::check_top_level(
        run,
        child_changes
            .iter()
            .filter(|child_change| !child_change.change.is_keep())
            .map(|child_change| (child_change.name.text(), child_change.found.is_some())),
    )?;
    write(run.root, child_changes, false)
}

fn existing<'a>(
    node: &'a Node,
    value: ValueRef<'a>,
    run: &'a Run<'a>,
    position: NodePosition,
) -> Result<Change<'a>, Error> {
    match (node, value) {
        (Node::Leaf(leaf), _) => leaf_existing(leaf, value, run, position),
        (Node::Elements(elements), ValueRef::Array(array)) => {
            Ok(changed_array(in_elements(elements, array, run, position)?))
        }
        (Node::Elements(_), _) => Err(Error::bad_value(format!(
            "Cannot apply array updates to non-array element {value}"
        ))),
        (Node::Fields(fields), ValueRef::Document(document)) => {
            let child_changes = document_changes(fields, document, run, position.within(false))?;
            let written = write(document, child_changes, false)?;
            Ok(written.map_or(Change::Keep, Change::owned))
        }
        (Node::Fields(fields), ValueRef::Array(array)) => Ok(changed_array(in_array(
            fields,
            array,
            run,
            position.within(true),
        )?)),
        (Node::Fields(fields), _) => {
            for (name, child) in &fields.children {
                blocked(child, name, value, run, position)?;
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

fn at<'a>(leaf: &'a Leaf, run: &'a Run<'a>, position: NodePosition) -> At<'a> {
    At {
        run,
        path: &leaf.path,
        in_array: position.in_array,
    }
}

fn leaf_existing<'a>(
    leaf: &'a Leaf,
    value: ValueRef<'a>,
    run: &'a Run<'a>,
    position: NodePosition,
) -> Result<Change<'a>, Error> {
    if leaf.insert_only && !run.is_insert {
        return Ok(Change::Keep);
    }
    let at = at(leaf, run, position);
    let change = leaf.modifier.change(value, &at)?;
    if let Change::Put(put) = &change {
        check_depth(leaf, put, position)?;
    }
    note(leaf, value, &change, run, position);
    Ok(change)
}

/// Records the change of an existing value.
fn note(
    leaf: &Leaf,
    value: ValueRef<'_>,
    change: &Change<'_>,
    run: &Run<'_>,
    position: NodePosition,
) {
    let mut trace = run.trace.borrow_mut();
    match change {
        Change::Keep => {}
        Change::Put(new) if leaf.modifier.only_appends(value) => {
            let count = |value: ValueRef<'_>| value.as_array().map_or(0, Array::count);
            for index in count(value)..count(new.as_ref()) {
                let step = trace.enter(&index.to_string());
                trace.note_updated();
                trace.leave(step);
            }
        }
        // An array element is not removed but becomes null.
        Change::Remove if !position.is_element => trace.note_removed(),
        Change::Put(_) | Change::Remove => trace.note_updated(),
    }
}

/// Checks the nesting depth of a new value. Existing values are within the limit.
fn check_depth(leaf: &Leaf, put: &Put<'_>, position: NodePosition) -> Result<(), Error> {
    let depth = leaf.depth.unwrap_or_else(|| depth(put.as_ref()));
    if position.depth + depth > DEPTH_MAX {
        return Err(storable::too_deep(&leaf.path));
    }
    Ok(())
}

fn document_changes<'a>(
    fields: &'a Fields,
    document: Document<'a>,
    run: &'a Run<'a>,
    position: NodePosition,
) -> Result<Vec<ChildChange<'a>>, Error> {
    let mut elements: Vec<Option<Found<'a>>> = vec![None; fields.children.len()];
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
        let change = named(run, name.text(), || match found {
            Some(found) => existing(child, found.value(), run, position),
            None => absent(child, run, position),
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

/// Writes the document with the changes. Returns `None` if nothing changes.
fn write(
    original: Document<'_>,
    mut child_changes: Vec<ChildChange<'_>>,
    in_array: bool,
) -> Result<Option<DocumentBuf>, Error> {
    if child_changes
        .iter()
        .all(|child_change| child_change.change.is_keep())
    {
        return Ok(None);
    }
    let mut rewrite = Rewrite::new(original);
    // The sort is stable: new fields keep the order of the tree, after the existing fields.
    child_changes
        .sort_by_key(|child_change| child_change.found.map_or(usize::MAX, |found| found.start));
    for child_change in &child_changes {
        if let Some(found) = &child_change.found {
            rewrite.change(found, &child_change.change, in_array)?;
        }
    }
    rewrite.copy_rest()?;
    for child_change in child_changes
        .iter()
        .filter(|child_change| child_change.found.is_none())
    {
        if let Change::Put(value) = &child_change.change {
            rewrite.append(child_change.name.text(), value.as_ref())?;
        }
    }
    Ok(Some(rewrite.finish()))
}

/// Applies children that are array indexes.
fn in_array<'a>(
    fields: &'a Fields,
    array: Array<'a>,
    run: &'a Run<'a>,
    position: NodePosition,
) -> Result<Option<DocumentBuf>, Error> {
    let elements: Vec<Found<'a>> = locate(array.as_document()).collect();
    let mut child_changes = Vec::with_capacity(fields.children.len());
    let mut added: Vec<(usize, Put<'a>)> = Vec::new();
    for (name, child) in &fields.children {
        let Some(index) = name.index() else {
            blocked(child, name, ValueRef::Array(array), run, position)?;
            continue;
        };
        if let Some(found) = elements.get(index) {
            let change = named(run, name.text(), || {
                existing(child, found.value(), run, position)
            })?;
            child_changes.push(ChildChange {
                name,
                found: Some(*found),
                change,
            });
        } else if let Change::Put(value) = named(run, name.text(), || absent(child, run, position))?
        {
            check_padding(elements.len(), index)?;
            added.push((index, value));
        }
    }
    if added.is_empty() {
        return write(array.as_document(), child_changes, true);
    }
    let mut rewrite = Rewrite::new(array.as_document());
    for child_change in &child_changes {
        if let Some(found) = &child_change.found {
            rewrite.change(found, &child_change.change, true)?;
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
    added: Vec<(usize, Put<'_>)>,
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
    run: &'a Run<'a>,
    position: NodePosition,
) -> Result<Option<DocumentBuf>, Error> {
    let position = position.within(true);
    let noted = run.trace.borrow().noted();
    let mut changes = Vec::new();
    for (index, found) in locate(array.as_document()).enumerate() {
        let change = named(run, &index.to_string(), || {
            in_element(elements, found.value(), run, position)
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
            let mut trace = run.trace.borrow_mut();
            trace.forget_since(noted);
            trace.note_updated();
        }
    }
    let mut rewrite = Rewrite::new(array.as_document());
    for (found, change) in &changes {
        rewrite.change(found, change, true)?;
    }
    rewrite.copy_rest()?;
    Ok(Some(rewrite.finish()))
}

fn in_element<'a>(
    elements: &'a Elements,
    value: ValueRef<'a>,
    run: &'a Run<'a>,
    position: NodePosition,
) -> Result<Change<'a>, Error> {
    count_work(1 + elements.children.len())?;
    let mut picked: Vec<&'a Node> = Vec::new();
    for (filter, node) in &elements.children {
        let matches = match filter {
            None => true,
            Some(filter) => filter.matches(value, run.collation)?,
        };
        if matches {
            picked.push(node);
        }
    }
    match picked.split_first() {
        None => Ok(Change::Keep),
        Some((only, [])) => existing(only, value, run, position),
        Some((first, others)) => {
            let mut merged = (*first).clone();
            for other in others {
                merged = merged.merge(other)?;
            }
            Ok(existing(&merged, value, run, position)?.into_owned())
        }
    }
}

/// The change of a missing value: `Put`, or `Keep` if no value is created.
fn absent<'a>(
    node: &'a Node,
    run: &'a Run<'a>,
    position: NodePosition,
) -> Result<Change<'a>, Error> {
    match node {
        Node::Leaf(leaf) => {
            if leaf.insert_only && !run.is_insert {
                return Ok(Change::Keep);
            }
            let at = at(leaf, run, position);
            let Some(put) = leaf.modifier.create(&at)? else {
                return Ok(Change::Keep);
            };
            check_depth(leaf, &put, position)?;
            run.trace.borrow_mut().note_updated();
            Ok(Change::Put(put))
        }
        Node::Fields(fields) => {
            let mut created: Option<Rewrite<'_>> = None;
            for (name, child) in &fields.children {
                let created_field = named(run, name.text(), || {
                    absent(child, run, position.within(false))
                })?;
                if let Change::Put(value) = created_field {
                    let rewrite = created.get_or_insert_with(|| Rewrite::new(Document::EMPTY));
                    rewrite.append(name.text(), value.as_ref())?;
                }
            }
            let created = created.map(|rewrite| Value::Document(rewrite.finish()));
            Ok(created.map_or(Change::Keep, Change::owned))
        }
        Node::Elements(_) => Err(missing_array(node)),
    }
}

fn missing_array(node: &Node) -> Error {
    Error::bad_value(format!(
        "The path to the array of '{}' must exist in the document in order to apply array updates.",
        node.any_path()
    ))
}

/// Handles a value on the path that cannot contain the field. Fails for all operators that would
/// create the field, and for most others.
fn blocked<'a>(
    node: &'a Node,
    name: &Name,
    value: ValueRef<'_>,
    run: &'a Run<'a>,
    position: NodePosition,
) -> Result<(), Error> {
    match node {
        Node::Leaf(leaf) if leaf.insert_only && !run.is_insert => Ok(()),
        Node::Leaf(leaf) => {
            let at = at(leaf, run, position);
            let creates = leaf.modifier.create(&at)?.is_some();
            if creates || !leaf.modifier.forgives_blocked_path() {
                return Err(path::not_viable(name.text(), value));
            }
            Ok(())
        }
        Node::Fields(fields) => fields
            .children
            .iter()
            .try_for_each(|(_, child)| blocked(child, name, value, run, position)),
        Node::Elements(_) => Err(missing_array(node)),
    }
}
