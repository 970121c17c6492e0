//! Checks that the encrypted fields of a document to store have encrypted values.

use windrow_document::{Document, ValueRef};

use super::{EncryptedField, EncryptedFields};
use crate::stored;

/// A field of a document that cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnencryptedField<'f> {
    /// The field.
    pub field: &'f EncryptedField,
    /// The reason. It contains no value, because the client may have forgotten to encrypt it.
    pub reason: &'static str,
}

impl EncryptedFields {
    /// Returns the first field of a document of which the value is not encrypted as the field
    /// requires. Missing fields are allowed.
    pub fn unencrypted(&self, document: Document<'_>) -> Option<UnencryptedField<'_>> {
        self.fields.iter().find_map(|field| {
            let reason = field.refusal(document, &field.path)?;
            Some(UnencryptedField { field, reason })
        })
    }
}

impl EncryptedField {
    /// Returns the reason why the value at this path of a document cannot be stored; `None` if it
    /// can.
    fn refusal(&self, document: Document<'_>, path: &str) -> Option<&'static str> {
        let Some((name, rest)) = path.split_once('.') else {
            return self.refusal_of_value(document.get(path)?);
        };
        match document.get(name)? {
            ValueRef::Document(inner) => self.refusal(inner, rest),
            ValueRef::Array(_) => Some("encrypted field is within an array"),
            _ => None,
        }
    }

    fn refusal_of_value(&self, value: ValueRef<'_>) -> Option<&'static str> {
        let Some(value_type) = stored::value_type(value) else {
            return Some("value was not encrypted");
        };
        let is_other = self.value_type.is_some_and(|it| it != value_type);
        is_other.then_some("encrypted value has wrong type")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, Value, array, doc};

    fn binary(subtype: u8, bytes: Vec<u8>) -> Value {
        Value::Binary { subtype, bytes }
    }

    /// Returns an unindexed value of a type.
    fn encrypted(value_type: u8) -> Value {
        let header = [&[16], &[1; 16][..], &[value_type]].concat();
        binary(6, [header, vec![0; 40]].concat())
    }

    #[test]
    fn encrypted_fields_need_encrypted_values() {
        let key = |byte| binary(4, vec![byte; 16]);
        let fields = doc! { "fields": [
            { "path": "a", "keyId": (key(1)), "bsonType": "string" },
            { "path": "b.c", "keyId": (key(2)) },
        ] };
        let fields = EncryptedFields::parse(fields.as_document()).unwrap();
        let check = |document: DocumentBuf, expected: Option<&str>| {
            let found = fields.unencrypted(document.as_document());
            let found = found.map(|it| it.reason);
            assert_eq!(found, expected, "{document}");
        };
        check(doc! {}, None);
        check(
            doc! { "a": (encrypted(2)), "b": { "c": (encrypted(16)) } },
            None,
        );
        check(doc! { "b": 1 }, None);
        check(doc! { "b": {} }, None);
        check(doc! { "a": "x" }, Some("value was not encrypted"));
        check(doc! { "a": null }, Some("value was not encrypted"));
        check(
            doc! { "a": (binary(5, vec![16; 60])) },
            Some("value was not encrypted"),
        );
        check(
            doc! { "a": (binary(6, vec![11; 60])) },
            Some("value was not encrypted"),
        );
        check(
            doc! { "a": (encrypted(16)) },
            Some("encrypted value has wrong type"),
        );
        check(doc! { "b": { "c": 1 } }, Some("value was not encrypted"));
        let list = array![{ "c": (encrypted(2)) }];
        check(
            doc! { "b": list },
            Some("encrypted field is within an array"),
        );
    }
}
