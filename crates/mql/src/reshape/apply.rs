//! Applies the tree. Existing fields come first, in the order of the document, then new fields in
//! the order of the specification.

use windrow_document::document::Element;
use windrow_document::{Document, DocumentBuilder, ValueRef};
use windrow_invariant::Bug;

use super::removed_fields::{Recorder, RemovedFields};
use super::{ReshapeField, ReshapeNode, ReshapeOutput, UnnamedFields};
use crate::Error;
use crate::expression::Context;
use crate::memory::check_growth;

/// Applies the tree to a document. `records` is `true` if the positions of removed fields are
/// recorded.
pub(super) fn document<'a>(
    node: &'a ReshapeNode,
    document: Document<'a>,
    removed_fields: &RemovedFields,
    records: bool,
    context: &Context<'a>,
) -> Result<ReshapeOutput, Error> {
    let mut output = Output {
        builder: DocumentBuilder::new(),
        recorder: Recorder::new(removed_fields, records),
    };
    let source = Source {
        document,
        offset: Some(0),
    };
    write_fields(node, source, context, &mut output)?;
    Ok(ReshapeOutput {
        document: output.builder.finish(),
        removed_fields: output.recorder.finish(),
    })
}

/// The output document and the positions of its removed fields.
struct Output<'v> {
    builder: DocumentBuilder,
    recorder: Recorder<'v>,
}

impl Output<'_> {
    /// Records that a field was removed at the end of the output.
    fn record_removed(&mut self, name: &str) {
        self.recorder.record(self.builder.len(), name);
    }

    /// Copies an element. It has `length` bytes, from `offset` on in the source.
    fn copy(&mut self, element: &Element<'_>, offset: Option<usize>, length: usize) {
        if let Some(offset) = offset {
            self.recorder
                .copy(offset..offset + length, self.builder.len());
        }
        self.builder.append_element(element);
    }

    /// Skips an element and the removed fields within it.
    fn skip(&mut self, offset: Option<usize>, length: usize) {
        if let Some(offset) = offset {
            self.recorder.skip(offset + length);
        }
    }
}

/// A document or an array, and its offset in the whole source document. A document that is created
/// has no offset.
struct Source<'a> {
    document: Document<'a>,
    offset: Option<usize>,
}

/// The bytes before the first element of a document: its length.
const HEADER_BYTES: usize = 4;

/// Returns the bytes before the value of an element: its type, its name and a null byte.
fn value_offset(element: &Element<'_>) -> usize {
    element.name.len() + 2
}

/// A set of field indexes as bits: the first 64, and the others, which are rare.
#[derive(Default)]
struct WrittenFields {
    bits: u64,
    more: Vec<u64>,
}

impl WrittenFields {
    fn insert(&mut self, index: usize) {
        let (word, bit) = (index / 64, 1 << (index % 64));
        let Some(word) = word.checked_sub(1) else {
            self.bits |= bit;
            return;
        };
        if self.more.len() <= word {
            self.more.resize(word + 1, 0);
        }
        if let Some(bits) = self.more.get_mut(word) {
            *bits |= bit;
        }
    }

    fn contains(&self, index: usize) -> bool {
        let bits = match (index / 64).checked_sub(1) {
            None => self.bits,
            Some(word) => self.more.get(word).copied().unwrap_or(0),
        };
        bits >> (index % 64) & 1 == 1
    }
}

fn write_fields<'a>(
    node: &'a ReshapeNode,
    source: Source<'a>,
    context: &Context<'a>,
    output: &mut Output<'_>,
) -> Result<(), Error> {
    let mut written = WrittenFields::default();
    let mut elements = source.document.elements();
    let mut offset = source.offset.map(|offset| offset + HEADER_BYTES);
    while let Some(element) = elements.next_raw() {
        restore_removed_fields(node, offset, &mut written, context, output)?;
        let length = value_offset(&element) + element.bytes.len();
        match node.find(element.name) {
            None if node.unnamed_fields == UnnamedFields::Keep => {
                output.copy(&element, offset, length)
            }
            None => output.skip(offset, length),
            Some((_, ReshapeField::Included)) => output.copy(&element, offset, length),
            Some((_, ReshapeField::Excluded)) => {
                output.skip(offset, length);
                if let (UnnamedFields::Keep, Some(name)) = (node.unnamed_fields, element.name_str())
                {
                    output.record_removed(name);
                }
            }
            // An inclusion appends computed fields. Added fields replace existing ones in their
            // positions.
            Some((_, ReshapeField::Computed(_))) if node.unnamed_fields == UnnamedFields::Drop => {
                output.skip(offset, length);
            }
            Some((index, field)) => {
                written.insert(index);
                write_element(field, &element, offset, context, output)?;
                output.skip(offset, length);
            }
        }
        offset = offset.map(|offset| offset + length);
    }
    restore_removed_fields(node, offset, &mut written, context, output)?;
    for (index, (name, field)) in node.fields.iter().enumerate() {
        if !written.contains(index) {
            write_new(name, field, context, output)?;
        }
    }
    Ok(())
}

/// Sets removed fields again at their former positions, up to an offset of the source. If fields
/// that are not named are kept, the positions of other removed fields are recorded again.
fn restore_removed_fields<'a>(
    node: &'a ReshapeNode,
    offset: Option<usize>,
    written: &mut WrittenFields,
    context: &Context<'a>,
    output: &mut Output<'_>,
) -> Result<(), Error> {
    let Some(offset) = offset else {
        return Ok(());
    };
    while let Some(name) = output.recorder.take_until(offset) {
        if node.unnamed_fields == UnnamedFields::Drop {
            continue;
        }
        match node.find(name.as_bytes()) {
            Some((index, field)) if field.computes() && !written.contains(index) => {
                written.insert(index);
                write_new(name, field, context, output)?;
            }
            _ => output.record_removed(name),
        }
    }
    Ok(())
}

fn write_element<'a>(
    field: &'a ReshapeField,
    element: &Element<'a>,
    offset: Option<usize>,
    context: &Context<'a>,
    output: &mut Output<'_>,
) -> Result<(), Error> {
    let (Some(name), Some(value)) = (element.name_str(), element.value()) else {
        return Err(undecodable(element).into());
    };
    match field {
        ReshapeField::Nested(node) => {
            let offset = offset.map(|offset| offset + value_offset(element));
            let value = SourceValue { value, offset };
            write_nested(node, name, value, context, output)?;
            Ok(())
        }
        field => write_new(name, field, context, output),
    }
}

/// Returns the broken invariant that an element cannot be decoded. Documents are validated before.
fn undecodable(element: &Element<'_>) -> Bug {
    let name = String::from_utf8_lossy(element.name);
    Bug::new(format!("the field {name} cannot be decoded"))
}

/// Writes a field that the document does not have, or that replaces an existing one.
fn write_new<'a>(
    name: &str,
    field: &'a ReshapeField,
    context: &Context<'a>,
    output: &mut Output<'_>,
) -> Result<(), Error> {
    match field {
        ReshapeField::Computed(expression) => match expression.evaluate(context)?.as_ref() {
            Some(value) => {
                check_growth(output.builder.len(), name, value)?;
                output.builder.append(name, value);
            }
            None => output.record_removed(name),
        },
        ReshapeField::Nested(node) if node.computes => write_created(node, name, context, output)?,
        ReshapeField::Nested(_) | ReshapeField::Included | ReshapeField::Excluded => {}
    }
    Ok(())
}

/// Writes a document that consists of computed fields only.
fn write_created<'a>(
    node: &'a ReshapeNode,
    name: &str,
    context: &Context<'a>,
    output: &mut Output<'_>,
) -> Result<(), Error> {
    let source = Source {
        document: Document::EMPTY,
        offset: None,
    };
    output.builder.begin_document(name);
    write_fields(node, source, context, output)?;
    output.builder.end();
    Ok(())
}

/// A value and its offset in the whole source document.
struct SourceValue<'a> {
    value: ValueRef<'a>,
    offset: Option<usize>,
}

/// Writes a value whose subfields are named. An array is written element by element. Returns `true`
/// if anything was written.
fn write_nested<'a>(
    node: &'a ReshapeNode,
    name: &str,
    value: SourceValue<'a>,
    context: &Context<'a>,
    output: &mut Output<'_>,
) -> Result<bool, Error> {
    let SourceValue { value, offset } = value;
    match value {
        ValueRef::Document(document) => {
            output.builder.begin_document(name);
            write_fields(node, Source { document, offset }, context, output)?;
            output.builder.end();
        }
        ValueRef::Array(array) => {
            let document = array.as_document();
            output.builder.begin_array(name);
            write_elements(node, Source { document, offset }, context, output)?;
            output.builder.end();
        }
        _ if node.computes => write_created(node, name, context, output)?,
        scalar if node.unnamed_fields == UnnamedFields::Keep => output.builder.append(name, scalar),
        _ => return Ok(false),
    }
    Ok(true)
}

fn write_elements<'a>(
    node: &'a ReshapeNode,
    source: Source<'a>,
    context: &Context<'a>,
    output: &mut Output<'_>,
) -> Result<(), Error> {
    let mut count = 0usize;
    let mut elements = source.document.elements();
    let mut offset = source.offset.map(|offset| offset + HEADER_BYTES);
    while let Some(element) = elements.next_raw() {
        let length = value_offset(&element) + element.bytes.len();
        let value = SourceValue {
            value: element.value().ok_or_else(|| undecodable(&element))?,
            offset: offset.map(|offset| offset + value_offset(&element)),
        };
        let written = write_nested(node, &count.to_string(), value, context, output)?;
        count += usize::from(written);
        output.skip(offset, length);
        offset = offset.map(|offset| offset + length);
    }
    Ok(())
}
