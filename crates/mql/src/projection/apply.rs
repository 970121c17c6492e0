//! Applies a projection to a document in one walk over its bytes.

use windrow_document::document::Element;
use windrow_document::{Array, Document, DocumentBuf, DocumentBuilder, ValueRef};
use windrow_invariant::Bug;

use super::slice::Slice;
use super::tree::{Computation, Entry, Tree};
use super::{Inner, ProjectionMode};
use crate::expression::Context;
use crate::memory::check_growth;
use crate::{Error, Meta};

pub(super) fn apply(
    projection: &Inner,
    input: Document<'_>,
    meta: &Meta,
) -> Result<DocumentBuf, Error> {
    let context = Context::new(input)
        .with_variables(&projection.environment.variables)
        .with_now(projection.environment.now)
        .with_collation(projection.environment.collation.as_deref())
        .with_meta(meta);
    let mut writer = Writer {
        keeps_unnamed: projection.mode == ProjectionMode::Exclusion,
        in_nested_array: false,
        context,
        out: DocumentBuilder::with_buffer(Vec::with_capacity(input.as_bytes().len().min(4096))),
    };
    writer.document(&projection.root, input)?;
    Ok(writer.out.finish())
}

struct Writer<'a> {
    keeps_unnamed: bool,
    /// `true` within an array that is an element of an array. `$slice` enters at most one array per
    /// path component, so it has no effect here. Inclusions and exclusions enter all arrays.
    in_nested_array: bool,
    context: Context<'a>,
    out: DocumentBuilder,
}

impl<'a> Writer<'a> {
    /// Writes the fields of a document: first those of the input, then the computed ones.
    fn document(&mut self, tree: &'a Tree, input: Document<'_>) -> Result<(), Error> {
        let mut elements = input.elements();
        while let Some(element) = elements.next_raw() {
            match tree.find(element.name) {
                None if self.keeps_unnamed => self.out.append_element(&element),
                None | Some(Entry::Exclude) => {}
                Some(Entry::Include) => self.out.append_element(&element),
                Some(Entry::Slice(slice)) => self.slice(slice, &element),
                Some(Entry::Children(tree)) => self.children(tree, &element)?,
                Some(Entry::Computed(computation)) if self.keeps_unnamed => {
                    let Some(name) = element.name_str() else {
                        return Err(Bug::new("a projected name is not UTF-8").into());
                    };
                    self.computed(name, computation)?;
                }
                Some(Entry::Computed(_)) => {}
            }
        }
        if tree.computes() {
            self.computed_fields(tree, input)?;
        }
        Ok(())
    }

    /// Writes the computed fields that the input does not have.
    fn computed_fields(&mut self, tree: &'a Tree, input: Document<'_>) -> Result<(), Error> {
        for (name, entry) in tree.entries() {
            match entry {
                Entry::Computed(computation) if !(self.keeps_unnamed && input.contains(name)) => {
                    self.computed(name, computation)?;
                }
                Entry::Children(inner) if inner.computes() && !input.contains(name) => {
                    self.out.begin_document(name);
                    self.document(inner, Document::EMPTY)?;
                    self.out.end();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn computed(&mut self, name: &str, computation: &'a Computation) -> Result<(), Error> {
        match computation {
            Computation::Expression(expression) => {
                if let Some(value) = expression.evaluate(&self.context)?.as_ref() {
                    check_growth(self.out.len(), name, value)?;
                    self.out.append(name, value);
                }
            }
            Computation::ElemMatch(filter) => {
                let root = self.context.root;
                let found = filter.matching_position(root)?;
                let index = found.and_then(|found| found.element);
                let array = root.get(name).and_then(ValueRef::as_array);
                let element = array.zip(index).and_then(|(array, index)| array.get(index));
                if let Some(element) = element {
                    self.out.begin_array(name);
                    self.out.append("0", element);
                    self.out.end();
                }
            }
        }
        Ok(())
    }

    fn slice(&mut self, slice: &Slice, element: &Element<'_>) {
        match (element.value(), element.name_str()) {
            (Some(ValueRef::Array(array)), Some(name)) if !self.in_nested_array => {
                self.out.begin_array(name);
                for (index, value) in slice.select(array).enumerate() {
                    self.out.append(&index.to_string(), value);
                }
                self.out.end();
            }
            _ => self.out.append_element(element),
        }
    }

    fn children(&mut self, tree: &'a Tree, element: &Element<'_>) -> Result<(), Error> {
        match (element.value(), element.name_str()) {
            (Some(value), Some(name)) => self.value(tree, name, value).map(drop),
            _ => Ok(()),
        }
    }

    /// Writes a value that the projection enters. Returns `false` if nothing was written: a scalar
    /// has nothing to include, unless something is computed below it.
    fn value(&mut self, tree: &'a Tree, name: &str, value: ValueRef<'_>) -> Result<bool, Error> {
        match value {
            ValueRef::Document(inner) => {
                self.out.begin_document(name);
                self.document(tree, inner)?;
                self.out.end();
            }
            ValueRef::Array(array) => {
                self.out.begin_array(name);
                self.elements(tree, array)?;
                self.out.end();
            }
            _ if tree.computes() => {
                self.out.begin_document(name);
                self.document(tree, Document::EMPTY)?;
                self.out.end();
            }
            other if self.keeps_unnamed => self.out.append(name, other),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn elements(&mut self, tree: &'a Tree, array: Array<'_>) -> Result<(), Error> {
        let was_nested = self.in_nested_array;
        let mut index = 0usize;
        for value in array {
            self.in_nested_array = was_nested || matches!(value, ValueRef::Array(_));
            index += usize::from(self.value(tree, &index.to_string(), value)?);
        }
        self.in_nested_array = was_nested;
        Ok(())
    }
}
