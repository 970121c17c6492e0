//! Reads the fields of a document whose names and types are fixed, with MongoDB's error codes.

use windrow_document::{Array, Document, Type, ValueRef};

use crate::error::{Error, code};
use crate::token::Token;

/// The subtypes of binary data.
pub const GENERIC: u8 = 0;
const UUID: u8 = 4;
/// MongoDB's error codes for tokens and UUIDs of a wrong length.
const TOKEN_LENGTH: i32 = 6_373_501;
const UUID_LENGTH: i32 = 207;

/// A document, with the name under which errors show it.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    name: &'a str,
    document: Document<'a>,
}

impl<'a> Reader<'a> {
    /// Fails if a field is not among the known ones, or occurs twice.
    pub fn new(name: &'a str, document: Document<'a>, known: &[&str]) -> Result<Reader<'a>, Error> {
        let mut seen: Vec<&str> = Vec::new();
        for (field, _) in document {
            if !known.contains(&field) {
                let message = format!("BSON field '{name}.{field}' is an unknown field.");
                return Err(Error::invalid(code::UNKNOWN_FIELD, message));
            }
            if seen.contains(&field) {
                let message = format!("BSON field '{name}.{field}' is a duplicate field");
                return Err(Error::invalid(code::DUPLICATE_FIELD, message));
            }
            seen.push(field);
        }
        Ok(Reader { name, document })
    }

    /// Returns a reader of a document that may have other fields besides those that are read.
    pub fn unchecked(name: &'a str, document: Document<'a>) -> Reader<'a> {
        Reader { name, document }
    }

    pub fn get(&self, field: &str) -> Option<ValueRef<'a>> {
        self.document.get(field)
    }

    pub fn required(&self, field: &str) -> Result<ValueRef<'a>, Error> {
        self.get(field).ok_or_else(|| {
            let message = format!(
                "BSON field '{}.{field}' is missing but a required field",
                self.name
            );
            Error::invalid(code::MISSING_FIELD, message)
        })
    }

    /// Returns the error for a value of another type.
    pub fn wrong_type(&self, field: &str, found: ValueRef<'_>, expected: &str) -> Error {
        let message = format!(
            "BSON field '{}.{field}' is the wrong type '{}', expected type '{expected}'",
            self.name,
            found.type_of().name()
        );
        Error::invalid(code::TYPE_MISMATCH, message)
    }

    fn binary(&self, field: &str, subtype: u8, kind: &str) -> Result<&'a [u8], Error> {
        match self.required(field)? {
            ValueRef::Binary {
                subtype: found,
                bytes,
            } if found == subtype => Ok(bytes),
            ValueRef::Binary { subtype: found, .. } => {
                let message = format!(
                    "BSON field '{}.{field}' is the wrong binData type '{found}', expected type \
                     '{kind}'",
                    self.name
                );
                Err(Error::invalid(code::TYPE_MISMATCH, message))
            }
            other => Err(self.wrong_type(field, other, "binData")),
        }
    }

    /// Returns binary data with the generic subtype.
    pub fn bytes(&self, field: &str) -> Result<&'a [u8], Error> {
        self.binary(field, GENERIC, "general")
    }

    pub fn token(&self, field: &str) -> Result<Token, Error> {
        let bytes = self.bytes(field)?;
        let token = bytes.try_into().map_err(|_| {
            let (name, length) = (self.name, bytes.len());
            let message = format!("'{name}.{field}' must have 32 bytes, but has {length}");
            Error::invalid(TOKEN_LENGTH, message)
        })?;
        Ok(Token::new(token))
    }

    pub fn uuid(&self, field: &str) -> Result<[u8; 16], Error> {
        let bytes = self.binary(field, UUID, "UUID")?;
        bytes.try_into().map_err(|_| {
            let message = "uuid must be a 16-byte binary field with UUID (4) subtype";
            Error::invalid(UUID_LENGTH, message)
        })
    }

    pub fn string(&self, field: &str) -> Result<&'a str, Error> {
        let value = self.required(field)?;
        value
            .as_str()
            .ok_or_else(|| self.wrong_type(field, value, "string"))
    }

    pub fn optional_string(&self, field: &str) -> Result<Option<&'a str>, Error> {
        self.get(field).map(|_| self.string(field)).transpose()
    }

    pub fn document(&self, field: &str) -> Result<Document<'a>, Error> {
        let value = self.required(field)?;
        value
            .as_document()
            .ok_or_else(|| self.wrong_type(field, value, "object"))
    }

    pub fn array(&self, field: &str) -> Result<Array<'a>, Error> {
        let value = self.required(field)?;
        value
            .as_array()
            .ok_or_else(|| self.wrong_type(field, value, "array"))
    }

    /// Returns a whole number that is not negative. Fails if the field has another value.
    pub fn whole(&self, field: &str) -> Result<u64, Error> {
        let value = self.required(field)?;
        let expected = Type::Int64.name();
        let number = value
            .as_whole()
            .ok_or_else(|| self.wrong_type(field, value, expected))?;
        u64::try_from(number).map_err(|_| {
            let message =
                format!("BSON field '{field}' value must be >= 0, actual value '{number}'");
            Error::bad_value(message)
        })
    }

    pub fn optional_whole(&self, field: &str) -> Result<Option<u64>, Error> {
        self.get(field).map(|_| self.whole(field)).transpose()
    }
}
