//! The keyword `encrypt`: a value that the client has encrypted, with its type.
//!
//! Drivers store an encrypted value as binary data of subtype 6:
//!
//! ```text
//! algorithm u8 | the key's UUID, 16 bytes | type of the value u8 | ciphertext
//! ```
//!
//! The algorithm is 1 (deterministic) or 2 (random). Other forms, such as those of queryable
//! encryption, have no type that a schema could check.

use windrow_document::{Document, Type, ValueRef};

use crate::Error;
use crate::filter::type_set::TypeSet;

/// The subtype of encrypted values.
const SUBTYPE: u8 = 6;
const DETERMINISTIC: u8 = 1;
const RANDOM: u8 = 2;
/// The offset of the type of the encrypted value.
const TYPE_OFFSET: usize = 17;
const UUID_SUBTYPE: u8 = 4;
const ALGORITHMS: [&str; 2] = [
    "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic",
    "AEAD_AES_256_CBC_HMAC_SHA_512-Random",
];

/// The parsed keyword.
#[derive(Debug)]
pub(super) struct EncryptKeyword {
    /// The types of the values before they were encrypted. `None` for all types.
    pub types: Option<TypeSet>,
}

impl EncryptKeyword {
    pub fn accepts(&self, value: ValueRef<'_>) -> bool {
        let ValueRef::Binary { subtype, bytes } = value else {
            return false;
        };
        let has_type =
            |types: &TypeSet| original_type(bytes).is_some_and(|type_of| types.contains(type_of));
        subtype == SUBTYPE && self.types.as_ref().is_none_or(has_type)
    }
}

/// Returns `true` if a value is marked as encrypted.
pub(in crate::filter) fn is_encrypted(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Binary { subtype, .. } if subtype == SUBTYPE)
}

fn original_type(bytes: &[u8]) -> Option<Type> {
    match bytes.first() {
        Some(&(DETERMINISTIC | RANDOM)) => Type::from_byte(*bytes.get(TYPE_OFFSET)?),
        _ => None,
    }
}

/// Checks `algorithm` and `keyId` of the keywords `encrypt` and `encryptMetadata`. Clients use
/// them, the server does not.
pub(super) fn check_metadata(
    keyword: &str,
    metadata: Document<'_>,
    other_fields: &[&str],
) -> Result<(), Error> {
    for (name, value) in metadata {
        match name {
            "algorithm" => check_algorithm(keyword, value)?,
            "keyId" => check_key_id(value)?,
            _ if other_fields.contains(&name) => {}
            _ => {
                let message = format!("BSON field '{keyword}.{name}' is an unknown field.");
                return Err(Error::new(40_415, message));
            }
        }
    }
    Ok(())
}

fn check_algorithm(keyword: &str, value: ValueRef<'_>) -> Result<(), Error> {
    let field = format!("{keyword}.algorithm");
    let name = value.as_str().ok_or_else(|| {
        let found = value.type_of().name();
        Error::type_mismatch(format!(
            "BSON field '{field}' is the wrong type '{found}', expected type 'string'"
        ))
    })?;
    if ALGORITHMS.contains(&name) {
        return Ok(());
    }
    Err(Error::bad_value(format!(
        "Enumeration value '{name}' for field '{field}' is not a valid value."
    )))
}

/// Checks a JSON pointer to the name of a key, or the UUIDs of keys.
fn check_key_id(value: ValueRef<'_>) -> Result<(), Error> {
    let list = match value {
        ValueRef::String(_) => return Ok(()),
        ValueRef::Array(list) => list,
        other => {
            let message = "Expected either string or array of UUID for EncryptSchemaKeyId, found";
            let found = other.type_of().name();
            return Err(Error::new(51_085, format!("{message} {found}")));
        }
    };
    list.iter().try_for_each(check_key)
}

fn check_key(key: ValueRef<'_>) -> Result<(), Error> {
    match key {
        ValueRef::Binary { subtype, bytes } if subtype == UUID_SUBTYPE => {
            if bytes.len() == 16 {
                return Ok(());
            }
            let message = "uuid must be a 16-byte binary field with UUID (4) subtype";
            Err(Error::new(207, message))
        }
        ValueRef::Binary { subtype, .. } => Err(Error::new(
            51_084,
            format!("Array elements must have bindata type UUID, found {subtype}"),
        )),
        other => Err(Error::new(
            51_088,
            format!(
                "Array elements must have type BinData, found {}",
                other.type_of().name()
            ),
        )),
    }
}
