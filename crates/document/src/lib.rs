//! One BSON value: its bytes, its place in MongoDB's order, its key bytes, and dotted paths into it.
//!
//! A document is always BSON bytes that were validated once: [`Document`] borrows them,
//! [`DocumentBuf`] owns them. [`ValueRef`] is a copyable view of one value in such bytes, [`Value`]
//! an owned one. Everything that reads values (order, keys, paths, filters, expressions) is written
//! once, on [`ValueRef`].
//!
//! Not here: anything that knows about queries, indexes or storage.
//!
//! ```
//! use windrow_document::{doc, DocumentBuf, ValueRef};
//! let cake: DocumentBuf = doc! { "_id": 1, "name": "cake", "tags": ["sweet", "round"] };
//! assert_eq!(cake.as_document().get("name"), Some(ValueRef::String("cake")));
//! ```
//!
//! Reading order: [`value`], [`document`], [`build`], [`validate`], [`order`], [`path`], [`key`],
//! [`decimal`], [`json`], [`hash`], [`uuid`],
//! [`collation`].
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod build;
pub mod collation;
pub mod decimal;
pub mod document;
pub mod hash;
pub mod json;
pub mod key;
mod layout;
pub mod object_id;
pub mod order;
pub mod path;
pub mod uuid;
pub mod validate;
pub mod value;

pub use build::{ArrayBuilder, DocumentBuilder};
pub use collation::Collation;
pub use decimal::Decimal128;
pub use document::{Array, ArrayBuf, Document, DocumentBuf};
pub use object_id::ObjectId;
pub use uuid::uuid_text;
pub use validate::BsonError;
pub use value::{Timestamp, Type, Value, ValueRef};
