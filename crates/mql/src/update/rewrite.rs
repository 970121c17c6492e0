//! Writes a document or an array with some elements changed. Unchanged elements are copied in
//! contiguous ranges.

use windrow_document::build::write_value;
use windrow_document::document::Element;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_invariant::Bug;

use super::modifier::Change;
use crate::Error;
use crate::memory::check_growth;

/// An element and the range of its bytes in the document.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocatedElement<'a> {
    pub start: usize,
    pub end: usize,
    element: Element<'a>,
}

impl<'a> LocatedElement<'a> {
    pub fn name(&self) -> &'a [u8] {
        self.element.name
    }

    /// Decodes the value. It is decoded on demand because most elements are skipped.
    pub fn value(&self) -> ValueRef<'a> {
        match self.element.value() {
            Some(value) => value,
            None => {
                let name = String::from_utf8_lossy(self.element.name);
                unreachable!("the field {name} of a validated document cannot be decoded");
            }
        }
    }
}

/// Iterates over the elements of a document or an array with their positions.
pub(super) fn locate(document: Document<'_>) -> impl Iterator<Item = LocatedElement<'_>> {
    let mut elements = document.elements();
    let mut end = 4;
    std::iter::from_fn(move || {
        let element = elements.next_raw()?;
        let start = end;
        end += 1 + element.name.len() + 1 + element.bytes.len();
        Some(LocatedElement {
            start,
            end,
            element,
        })
    })
}

/// What contains the elements that are rewritten.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Document,
    Array,
}

/// A document or an array that is being written.
pub(super) struct Rewrite<'a> {
    original: &'a [u8],
    container: Container,
    copied: usize,
    bytes: Vec<u8>,
}

impl<'a> Rewrite<'a> {
    pub fn new(original: Document<'a>, container: Container) -> Rewrite<'a> {
        let original = original.as_bytes();
        let mut bytes = Vec::with_capacity(original.len() + 64);
        bytes.extend_from_slice(&[0; 4]);
        Rewrite {
            original,
            container,
            copied: 4,
            bytes,
        }
    }

    /// Writes the next changed element. Calls must be in the order of the document. Fails with
    /// 13548 if the document becomes too large.
    pub fn change(&mut self, found: &LocatedElement<'_>, change: &Change<'_>) -> Result<(), Error> {
        if found.start < self.copied {
            let (start, copied) = (found.start, self.copied);
            let message = format!("a change at {start} comes after one that ends at {copied}");
            return Err(Bug::new(message).into());
        }
        match change {
            Change::Keep => return Ok(()),
            Change::Set(value) => {
                self.copy_until(found.start)?;
                self.append_bytes(found.name(), value.as_ref())?;
            }
            // Removing an element would move the following ones, so it is replaced by null.
            Change::Remove if self.container == Container::Array => {
                self.copy_until(found.start)?;
                self.append_bytes(found.name(), ValueRef::Null)?;
            }
            Change::Remove => self.copy_until(found.start)?,
        }
        self.copied = found.end;
        Ok(())
    }

    /// Copies the rest of the original. New elements can follow.
    pub fn copy_rest(&mut self) -> Result<(), Bug> {
        self.copy_until(self.original.len().saturating_sub(1))
    }

    fn copy_until(&mut self, end: usize) -> Result<(), Bug> {
        let range = self.copied..end;
        let Some(bytes) = self.original.get(range.clone()) else {
            let length = self.original.len();
            return Err(Bug::new(format!("copying {range:?} of {length} bytes")));
        };
        self.bytes.extend_from_slice(bytes);
        self.copied = end;
        Ok(())
    }

    pub fn append(&mut self, name: &str, value: ValueRef<'_>) -> Result<(), Error> {
        self.append_bytes(name.as_bytes(), value)
    }

    fn append_bytes(&mut self, name: &[u8], value: ValueRef<'_>) -> Result<(), Error> {
        check_growth(self.bytes.len(), name, value)?;
        self.bytes.push(value.type_of() as u8);
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        write_value(&mut self.bytes, value);
        Ok(())
    }

    pub fn finish(mut self) -> DocumentBuf {
        self.bytes.push(0);
        let length = self.bytes.len() as u32;
        if let Some(slot) = self.bytes.first_chunk_mut() {
            *slot = length.to_le_bytes();
        }
        DocumentBuf::from_validated(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;
    use windrow_invariant::tolerate_bugs;

    /// Changes in a wrong order used to be ignored, and the update stored the document without
    /// them.
    #[test]
    fn changes_in_a_wrong_order_fail() {
        let document = doc! { "a": 1, "b": 2 };
        let found: Vec<LocatedElement<'_>> = locate(document.as_document()).collect();
        let change = Change::Remove;
        let mut rewrite = Rewrite::new(document.as_document(), Container::Document);
        rewrite.change(&found[1], &change).unwrap();
        let refused = tolerate_bugs(|| rewrite.change(&found[0], &change));
        assert_eq!(refused.unwrap_err().code, 8);
    }
}
