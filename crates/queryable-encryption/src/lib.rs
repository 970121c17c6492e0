//! The part of a server in MongoDB's Queryable Encryption, protocol version 2: the encrypted fields
//! of a collection, the payloads that clients send, the counters of values, and the tags by which
//! encrypted values are found.
//!
//! Clients encrypt values and derive *tokens* from their keys. The server never has the keys. With
//! the tokens of one value it can do three things:
//!
//! 1. Count how often the value was inserted. The count is spread over the documents of the *state
//!    collection* (ESC), whose `_id`s cannot be connected without the token ([`counter`]).
//! 2. Compute the *tag* of each insertion from the token and the count. A stored document has the
//!    tags of its encrypted values in the array `__safeContent__` ([`stored`]).
//! 3. Find the documents with a value: those with one of its tags ([`find`]).
//!
//! Each insertion also leaves an encrypted token in the *compaction collection* (ECOC). A client
//! that sends the key of these tokens lets the server replace the documents of a counter by one
//! *anchor* ([`compaction`]).
//!
//! Not for: commands, collections, or the encryption of values by clients.
//!
//! Source of the protocol: the comments on tokens and formats in MongoDB's `fle_tokens.h` and
//! `fle_crypto.h`, and libmongocrypt.
//!
//! ```
//! use windrow_document::doc;
//! use windrow_queryable_encryption::{EncryptedFields, Value};
//!
//! let key = Value::Binary { subtype: 4, bytes: vec![7; 16] };
//! let fields = doc! { "fields": [{ "keyId": key, "path": "ssn", "bsonType": "string",
//!     "queries": { "queryType": "equality" } }] };
//! let fields = EncryptedFields::parse(fields.as_document()).unwrap();
//! assert!(fields.field("ssn").unwrap().index.is_some());
//! ```
//!
//! Modules in reading order:
//!
//! - `error`, `token`, `cipher`, `reader`: what the others are made of
//! - [`fields`]: the encrypted fields of a collection
//! - [`payload`]: what clients send in place of values
//! - [`counter`], [`stored`], [`find`]: counters, stored values, and queries
//! - [`compaction`], [`padding`]: compaction and cleanup
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod cipher;
pub mod compaction;
pub mod counter;
mod error;
pub mod fields;
pub mod find;
pub mod padding;
pub mod payload;
mod reader;
pub mod stored;
mod token;

pub use error::Error;
pub use fields::{EncryptedField, EncryptedFields, FieldIndex};
pub use payload::{FindPayload, InsertPayload};
pub use token::Tag;
pub use windrow_document::Value;

/// The array of tags in a document with encrypted values.
pub const SAFE_CONTENT: &str = "__safeContent__";

/// The subtype of binary data with encrypted values and payloads.
pub const ENCRYPTED_SUBTYPE: u8 = 6;

/// The kinds of encrypted binary data: its first byte.
pub mod kind {
    /// The value was replaced by a payload that inserts or updates it.
    pub const INSERT_PAYLOAD: u8 = 11;
    /// A query for equality.
    pub const FIND_EQUALITY_PAYLOAD: u8 = 12;
    /// A query for a range.
    pub const FIND_RANGE_PAYLOAD: u8 = 13;
    /// A stored value that is found by equality.
    pub const EQUALITY_VALUE: u8 = 14;
    /// A stored value that is found by ranges.
    pub const RANGE_VALUE: u8 = 15;
    /// A stored value that is not indexed.
    pub const UNINDEXED_VALUE: u8 = 16;
    /// A query for a part of a string.
    pub const FIND_TEXT_PAYLOAD: u8 = 18;
}

/// Returns the kind of a value, if it is encrypted binary data.
pub fn kind_of(value: windrow_document::ValueRef<'_>) -> Option<u8> {
    match value {
        windrow_document::ValueRef::Binary {
            subtype: ENCRYPTED_SUBTYPE,
            bytes,
        } => bytes.first().copied(),
        _ => None,
    }
}
