//! The documents of a request, in place in the message.

use std::borrow::Cow;
use std::ops::Range;

use windrow_document::{Array, Document, ValueRef};

use crate::code::ErrorCode;
use crate::command_error::CommandError;

/// The documents of a document sequence or of an array in the body. They are not copied: this is
/// the message's buffer and the offset of each document. All have been validated.
#[derive(Clone, Debug)]
pub struct RequestDocuments<'a> {
    buffer: &'a [u8],
    starts: Cow<'a, [u32]>,
    end: usize,
}

impl<'a> RequestDocuments<'a> {
    pub(crate) fn new(buffer: &'a [u8], starts: &'a [u32], end: usize) -> RequestDocuments<'a> {
        RequestDocuments {
            buffer,
            starts: Cow::Borrowed(starts),
            end,
        }
    }

    /// Returns the documents of an array. Fails with `TypeMismatch` if an element is not a
    /// document. `field` is the array's name in the error message, for example "insert.documents".
    pub fn from_array(array: Array<'a>, field: &str) -> Result<RequestDocuments<'a>, CommandError> {
        let buffer = array.as_bytes();
        let mut starts = Vec::new();
        let mut elements = array.as_document().elements();
        // The first element follows the array's length.
        let mut end = 4;
        while let Some(element) = elements.next_raw() {
            let Some(ValueRef::Document(document)) = element.value() else {
                let found = element.type_of.name();
                let path = format!("{field}.{}", starts.len());
                return Err(CommandError::new(
                    ErrorCode::TypeMismatch,
                    format!(
                        "BSON field '{path}' is the wrong type '{found}', expected type 'object'"
                    ),
                ));
            };
            end += 1 + element.name.len() + 1 + element.bytes.len();
            starts.push((end - document.as_bytes().len()) as u32);
        }
        Ok(RequestDocuments {
            buffer,
            starts: Cow::Owned(starts),
            end,
        })
    }

    /// Returns the number of documents.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns `true` if there are no documents.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the bytes that contain all of the documents. Documents of a sequence are adjacent.
    /// In an array, each follows its type and key.
    pub fn buffer(&self) -> &'a [u8] {
        self.buffer
    }

    /// Returns the document with this index.
    pub fn get(&self, index: usize) -> Option<Document<'a>> {
        self.buffer
            .get(self.range(index)?)
            .map(Document::from_validated)
    }

    /// Iterates over the documents.
    pub fn iter(&self) -> impl Iterator<Item = Document<'a>> + '_ {
        (0..self.count()).filter_map(|index| self.get(index))
    }

    /// Returns the range of the buffer from the start of the first document to the end of the last.
    pub fn extent(&self) -> Range<usize> {
        self.starts
            .first()
            .map_or(0..0, |&start| start as usize..self.end)
    }

    /// Returns the range of the document with this index in [`buffer`](Self::buffer).
    pub fn range(&self, index: usize) -> Option<Range<usize>> {
        let start = *self.starts.get(index)? as usize;
        let range = self.range_at(start);
        debug_assert!(range.is_some(), "no document at byte {start} of a message");
        range
    }

    fn range_at(&self, start: usize) -> Option<Range<usize>> {
        let length = i32::from_le_bytes(*self.buffer.get(start..)?.first_chunk()?);
        let range = start..start + usize::try_from(length).ok()?;
        (range.end <= self.buffer.len()).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{ArrayBuf, array, doc};

    #[test]
    fn array_elements_are_located_in_place() {
        let list: ArrayBuf = (0..120)
            .map(|n| windrow_document::Value::from(doc! { "n": n }))
            .collect();
        let documents = RequestDocuments::from_array(list.as_array(), "insert.documents").unwrap();
        assert_eq!(documents.count(), 120);
        for (index, document) in documents.iter().enumerate() {
            assert_eq!(document.get("n"), Some(ValueRef::Int32(index as i32)));
        }
        let last = documents.get(119).unwrap();
        assert_eq!(
            &documents.buffer()[documents.extent()][documents.extent().len() - 12..],
            last.as_bytes()
        );
        assert_eq!(documents.get(120), None);
    }

    #[test]
    fn an_element_that_is_not_a_document_is_named() {
        let list = array![{ "a": 1 }, 5];
        let error = RequestDocuments::from_array(list.as_array(), "insert.documents").unwrap_err();
        assert_eq!(error.code, ErrorCode::TypeMismatch);
        assert!(
            error
                .message
                .starts_with("BSON field 'insert.documents.1' is the wrong type 'int'")
        );
    }
}
