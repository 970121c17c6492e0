//! Applying the tree: the document's fields in their order, then what is new in the order of the
//! specification.

use windrow_document::document::Element;
use windrow_document::{Document, DocumentBuf, DocumentBuilder, ValueRef};

use super::{Field, Node, Rest};
use crate::Error;
use crate::expression::Context;
use crate::memory::check_growth;

pub(super) fn document<'a>(
    node: &'a Node,
    document: Document<'a>,
    context: &Context<'a>,
) -> Result<DocumentBuf, Error> {
    let mut output = DocumentBuilder::new();
    write_fields(node, document, context, &mut output)?;
    Ok(output.finish())
}

/// Places of fields that are written, as bits: the first 64, and the others, which few have.
#[derive(Default)]
struct Written {
    bits: u64,
    more: Vec<u64>,
}

impl Written {
    fn add(&mut self, place: usize) {
        let (word, bit) = (place / 64, 1 << (place % 64));
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

    fn has(&self, place: usize) -> bool {
        let bits = match (place / 64).checked_sub(1) {
            None => self.bits,
            Some(word) => self.more.get(word).copied().unwrap_or(0),
        };
        bits >> (place % 64) & 1 == 1
    }
}

fn write_fields<'a>(
    node: &'a Node,
    document: Document<'a>,
    context: &Context<'a>,
    output: &mut DocumentBuilder,
) -> Result<(), Error> {
    let mut written = Written::default();
    let mut elements = document.elements();
    while let Some(element) = elements.next_raw() {
        match node.find(element.name) {
            None if node.rest == Rest::Kept => output.append_element(&element),
            None | Some((_, Field::Excluded)) => {}
            Some((_, Field::Included)) => output.append_element(&element),
            // An inclusion puts computed fields last; added ones replace in place.
            Some((_, Field::Computed(_))) if node.rest == Rest::Dropped => {}
            Some((place, field)) => {
                written.add(place);
                write_element(field, &element, context, output)?;
            }
        }
    }
    for (place, (name, field)) in node.fields.iter().enumerate() {
        if !written.has(place) {
            write_new(name, field, context, output)?;
        }
    }
    Ok(())
}

fn write_element<'a>(
    field: &'a Field,
    element: &Element<'a>,
    context: &Context<'a>,
    output: &mut DocumentBuilder,
) -> Result<(), Error> {
    let (Some(name), Some(value)) = (element.name_str(), element.value()) else {
        return Ok(());
    };
    match field {
        Field::Within(node) => {
            write_within(node, name, value, context, output)?;
            Ok(())
        }
        field => write_new(name, field, context, output),
    }
}

/// A field that the document has not, or that replaces what it has.
fn write_new<'a>(
    name: &str,
    field: &'a Field,
    context: &Context<'a>,
    output: &mut DocumentBuilder,
) -> Result<(), Error> {
    match field {
        Field::Computed(expression) => {
            if let Some(value) = expression.evaluate(context)?.as_ref() {
                check_growth(output.len(), name, value)?;
                output.append(name, value);
            }
        }
        Field::Within(node) if node.computes => write_made(node, name, context, output)?,
        Field::Within(_) | Field::Included | Field::Excluded => {}
    }
    Ok(())
}

/// A document of nothing but the computed fields.
fn write_made<'a>(
    node: &'a Node,
    name: &str,
    context: &Context<'a>,
    output: &mut DocumentBuilder,
) -> Result<(), Error> {
    output.begin_document(name);
    write_fields(node, Document::EMPTY, context, output)?;
    output.end();
    Ok(())
}

/// The value of a field whose parts are named; arrays element by element. Whether it was written.
fn write_within<'a>(
    node: &'a Node,
    name: &str,
    value: ValueRef<'a>,
    context: &Context<'a>,
    output: &mut DocumentBuilder,
) -> Result<bool, Error> {
    match value {
        ValueRef::Document(document) => {
            output.begin_document(name);
            write_fields(node, document, context, output)?;
            output.end();
        }
        ValueRef::Array(array) => {
            output.begin_array(name);
            let mut count = 0usize;
            for element in array {
                let written = write_within(node, &count.to_string(), element, context, output)?;
                count += usize::from(written);
            }
            output.end();
        }
        _ if node.computes => write_made(node, name, context, output)?,
        scalar if node.rest == Rest::Kept => output.append(name, scalar),
        _ => return Ok(false),
    }
    Ok(true)
}
