//! Reads fields of documents with the errors of this crate.

use windrow_document::{Array, Document, ValueRef};

use crate::error::Error;

/// The fields of a document. `name` is its name in errors.
pub struct Fields<'a> {
    document: Document<'a>,
    name: &'a str,
}

impl<'a> Fields<'a> {
    pub fn new(document: Document<'a>, name: &'a str) -> Fields<'a> {
        Fields { document, name }
    }

    /// Returns a required string. Fails if it is missing or has another type.
    pub fn string(&self, field: &str) -> Result<&'a str, Error> {
        let text = self.document.get(field).and_then(ValueRef::as_str);
        text.ok_or_else(|| self.wrong(field, "a string"))
    }

    /// Returns an optional array, which is empty if it is missing. Fails if it has another type.
    pub fn array(&self, field: &str) -> Result<Array<'a>, Error> {
        match self.document.get(field) {
            None => Ok(Array::EMPTY),
            Some(value) => value
                .as_array()
                .ok_or_else(|| self.wrong(field, "an array")),
        }
    }

    /// Returns an optional document. Fails if it has another type.
    pub fn document(&self, field: &str) -> Result<Option<Document<'a>>, Error> {
        match self.document.get(field) {
            None => Ok(None),
            Some(value) => value
                .as_document()
                .map(Some)
                .ok_or_else(|| self.wrong(field, "an object")),
        }
    }

    /// Fails if a field has none of these names.
    pub fn only(&self, known: &[&str]) -> Result<(), Error> {
        match self.document.iter().find(|(name, _)| !known.contains(name)) {
            None => Ok(()),
            Some((name, _)) => Err(Error::Invalid(format!(
                "{} has an unknown field {name:?}",
                self.name
            ))),
        }
    }

    pub fn wrong(&self, field: &str, expected: &str) -> Error {
        Error::Invalid(format!(
            "the field {field:?} of {} must be {expected}",
            self.name
        ))
    }
}
