//! The encrypted fields of a collection: the option `encryptedFields` of `create`.

mod index;
mod stored_values;

use windrow_document::{Document, Type, ValueRef};

use crate::error::{Error, code};
use crate::reader::Reader;

pub use index::{FieldIndex, RangeBounds};
pub use stored_values::UnencryptedField;

/// MongoDB's error codes for the rules on encrypted fields.
const EMPTY_PATH: i32 = 6_316_402;
const ENCRYPTED_ID: i32 = 6_316_403;
const DUPLICATE_KEY_IDS: i32 = 6_338_401;
const DUPLICATE_PATHS: i32 = 6_338_402;
const CONFLICTING_PATHS: i32 = 6_338_403;
const UNINDEXED_TYPE: i32 = 6_338_406;
const STATE_NAME: i32 = 7_406_900;
const COMPACTION_NAME: i32 = 7_406_902;
const OBSOLETE_NAME: i32 = 7_568_300;

/// The encrypted fields of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct EncryptedFields {
    /// The name of the state collection, if it is stated.
    pub state_collection: Option<String>,
    /// The name of the compaction collection, if it is stated.
    pub compaction_collection: Option<String>,
    /// The fields.
    pub fields: Vec<EncryptedField>,
}

/// One encrypted field.
#[derive(Clone, Debug, PartialEq)]
pub struct EncryptedField {
    /// The dotted path.
    pub path: String,
    /// The UUID of the key of its index.
    pub key_id: [u8; 16],
    /// The type of its values before encryption, if it is stated.
    pub value_type: Option<Type>,
    /// The kind of queries that find its values. `None` if they are not indexed.
    pub index: Option<FieldIndex>,
}

impl EncryptedFields {
    /// Parses and checks `encryptedFields`.
    pub fn parse(document: Document<'_>) -> Result<EncryptedFields, Error> {
        const KNOWN: &[&str] = &[
            "escCollection",
            "eccCollection",
            "ecocCollection",
            "fields",
            "strEncodeVersion",
        ];
        let reader = Reader::new("encryptedFields", document, KNOWN)?;
        if reader.get("eccCollection").is_some() {
            let message = "the field 'eccCollection' of protocol version 1 is obsolete";
            return Err(Error::invalid(OBSOLETE_NAME, message));
        }
        let state = reader.optional_string("escCollection")?;
        let compaction = reader.optional_string("ecocCollection")?;
        let mut fields: Vec<EncryptedField> = Vec::new();
        for value in reader.array("fields")? {
            let field = value
                .as_document()
                .ok_or_else(|| reader.wrong_type("fields", value, "object"))?;
            let field = EncryptedField::parse(field)?;
            field.check_beside(&fields)?;
            fields.push(field);
        }
        Ok(EncryptedFields {
            state_collection: state.map(str::to_owned),
            compaction_collection: compaction.map(str::to_owned),
            fields,
        })
    }

    /// Fails if the state collections are not those of this collection. The server writes to them
    /// for clients that need not have rights on them.
    pub fn check_names(&self, collection: &str) -> Result<(), Error> {
        let check = |given: &Option<String>, name: String, code: i32, field: &str| match given {
            Some(given) if *given != name => {
                let message = format!("the name in '{field}' must be {name}, but is {given}");
                Err(Error::invalid(code, message))
            }
            _ => Ok(()),
        };
        let state = state_collection_of(collection);
        check(&self.state_collection, state, STATE_NAME, "escCollection")?;
        let compaction = compaction_collection_of(collection);
        let given = &self.compaction_collection;
        check(given, compaction, COMPACTION_NAME, "ecocCollection")
    }

    /// Returns the field with this path.
    pub fn field(&self, path: &str) -> Option<&EncryptedField> {
        self.fields.iter().find(|field| field.path == path)
    }
}

/// Returns the default name of the state collection (`esc`) of a collection.
pub fn state_collection_of(collection: &str) -> String {
    format!("{STATE_PREFIX}{collection}.esc")
}

/// Returns the default name of the compaction collection (`ecoc`) of a collection.
pub fn compaction_collection_of(collection: &str) -> String {
    format!("{STATE_PREFIX}{collection}.ecoc")
}

const STATE_PREFIX: &str = "enxcol_.";
impl EncryptedField {
    fn parse(document: Document<'_>) -> Result<EncryptedField, Error> {
        const KNOWN: &[&str] = &["keyId", "path", "bsonType", "queries"];
        let reader = Reader::new("encryptedFields.fields", document, KNOWN)?;
        let path = reader.string("path")?;
        let value_type = value_type(&reader)?;
        let index = match reader.get("queries") {
            None => None,
            Some(ValueRef::Array(list)) if list.is_empty() => None,
            Some(queries) => Some(FieldIndex::parse(queries, value_type)?),
        };
        let refused = value_type.filter(|it| index.is_none() && !can_be_encrypted(*it));
        if let Some(refused) = refused {
            let name = refused.name();
            let message = format!("values of type '{name}' cannot be encrypted");
            return Err(Error::invalid(UNINDEXED_TYPE, message));
        }
        if path.is_empty() || path.split('.').any(str::is_empty) {
            let message = "the path of an encrypted field, or a part of it, is empty";
            return Err(Error::invalid(EMPTY_PATH, message));
        }
        if path.split('.').next() == Some("_id") {
            let message = "_id and its fields cannot be encrypted";
            return Err(Error::invalid(ENCRYPTED_ID, message));
        }
        Ok(EncryptedField {
            path: path.to_owned(),
            key_id: reader.uuid("keyId")?,
            value_type,
            index,
        })
    }

    /// Fails if a field has the same key as an earlier one, or is within it.
    fn check_beside(&self, earlier: &[EncryptedField]) -> Result<(), Error> {
        for other in earlier {
            if other.key_id == self.key_id {
                let message = "two encrypted fields have the same key";
                return Err(Error::invalid(DUPLICATE_KEY_IDS, message));
            }
            if other.path == self.path {
                let message = "two encrypted fields have the same path";
                return Err(Error::invalid(DUPLICATE_PATHS, message));
            }
            if paths_overlap(&other.path, &self.path) {
                let message = format!(
                    "of the encrypted fields '{}' and '{}', one is within the other",
                    self.path, other.path
                );
                return Err(Error::invalid(CONFLICTING_PATHS, message));
            }
        }
        Ok(())
    }
}

/// Returns `true` if two dotted paths are equal or one is within the other.
pub fn paths_overlap(one: &str, other: &str) -> bool {
    let begins = |long: &str, short: &str| {
        long.strip_prefix(short)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    begins(one, other) || begins(other, one)
}

/// Returns the `bsonType` of a field.
fn value_type(reader: &Reader<'_>) -> Result<Option<Type>, Error> {
    let Some(name) = reader.optional_string("bsonType")? else {
        return Ok(None);
    };
    let known = Type::from_name(name).ok_or_else(|| {
        let message = format!("BSON type name '{name}' is not recognized");
        Error::invalid(code::BAD_VALUE, message)
    })?;
    Ok(Some(known))
}

/// Returns `true` for types whose values clients can encrypt: not those that have only one value.
fn can_be_encrypted(value_type: Type) -> bool {
    !matches!(
        value_type,
        Type::Null | Type::Undefined | Type::MinKey | Type::MaxKey
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, Value, doc};

    fn key(byte: u8) -> Value {
        Value::Binary {
            subtype: 4,
            bytes: vec![byte; 16],
        }
    }

    fn code_of(document: &DocumentBuf) -> i32 {
        match EncryptedFields::parse(document.as_document()) {
            Ok(_) => 0,
            Err(Error::Invalid { code, .. }) => code,
            Err(Error::Unsupported(_)) => -1,
            Err(other) => panic!("{other}"),
        }
    }

    /// Other names would let a client write to the state of collections that it has no rights on.
    #[test]
    fn state_collections_are_those_of_the_collection() {
        let check = |document: DocumentBuf, expected: i32| {
            let fields = EncryptedFields::parse(document.as_document()).unwrap();
            let code = match fields.check_names("c") {
                Err(Error::Invalid { code, .. }) => code,
                Err(error) => panic!("{document}: {error}"),
                Ok(()) => 0,
            };
            assert_eq!(code, expected, "{document}");
        };
        check(doc! { "fields": [] }, 0);
        check(doc! { "fields": [], "escCollection": "enxcol_.c.esc" }, 0);
        check(doc! { "fields": [], "escCollection": "users" }, STATE_NAME);
        let other = doc! { "fields": [], "escCollection": "enxcol_.other.esc" };
        check(other, STATE_NAME);
        check(doc! { "fields": [], "ecocCollection": "enxcol_.c.ecoc" }, 0);
        let other = doc! { "fields": [], "ecocCollection": "enxcol_.other.ecoc" };
        check(other, COMPACTION_NAME);
    }

    #[test]
    fn fields_are_checked() {
        let one = |field: DocumentBuf| doc! { "fields": [field] };
        let two = |a: &str, b: &str, other_key: u8| {
            doc! { "fields": [
                { "keyId": (key(1)), "path": a }, { "keyId": (key(other_key)), "path": b },
            ] }
        };
        for (document, expected) in [
            (doc! { "fields": [] }, 0),
            (doc! {}, 40_414),
            (doc! { "fields": [1] }, 14),
            (doc! { "fields": [], "x": 1 }, 40_415),
            (doc! { "fields": [], "eccCollection": "x" }, OBSOLETE_NAME),
            (doc! { "fields": [], "escCollection": 1 }, 14),
            (one(doc! { "keyId": (key(1)), "path": "a.b" }), 0),
            (one(doc! { "path": "a" }), 40_414),
            (one(doc! { "keyId": "x", "path": "a" }), 14),
            (one(doc! { "keyId": (key(1)), "path": "" }), EMPTY_PATH),
            (one(doc! { "keyId": (key(1)), "path": "a..b" }), EMPTY_PATH),
            (
                one(doc! { "keyId": (key(1)), "path": "_id.a" }),
                ENCRYPTED_ID,
            ),
            (
                one(doc! { "keyId": (key(1)), "path": "a", "bsonType": "text" }),
                2,
            ),
            (
                one(doc! { "keyId": (key(1)), "path": "a", "bsonType": "null" }),
                UNINDEXED_TYPE,
            ),
            (
                one(doc! { "keyId": (key(1)), "path": "a", "bsonType": "array" }),
                0,
            ),
            (two("a", "b", 1), DUPLICATE_KEY_IDS),
            (two("a", "a", 2), DUPLICATE_PATHS),
            (two("a.b", "a", 2), CONFLICTING_PATHS),
            (two("a", "ab", 2), 0),
        ] {
            assert_eq!(code_of(&document), expected, "{document}");
        }
    }

    #[test]
    fn state_collections_are_named_after_the_collection() {
        assert_eq!(state_collection_of("a.b"), "enxcol_.a.b.esc");
        assert_eq!(compaction_collection_of("c"), "enxcol_.c.ecoc");
    }
}
