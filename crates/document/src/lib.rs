//! BSON documents: validation, values, MongoDB's order of values, order-preserving key bytes,
//! decimals, collations and dotted paths.
//!
//! Not for: queries, indexes or storage.
//!
//! - [`Document`] and [`DocumentBuf`] are validated BSON bytes, borrowed and owned. They are never
//!   converted to another representation.
//! - [`ValueRef`] is a copyable view of a value in such bytes, [`Value`] an owned value. Code that
//!   reads values is written once, for [`ValueRef`].
//! - [`Array`] and [`ArrayBuf`] are arrays, [`doc!`] and [`array!`] write literals.
//! - [`key`] encodes values as bytes whose plain order is MongoDB's order.
//!
//! ```
//! use windrow_document::{DocumentBuf, ValueRef, doc};
//!
//! let cake: DocumentBuf = doc! { "_id": 1, "name": "cake", "tags": ["sweet", "round"] };
//! assert_eq!(cake.get("name"), Some(ValueRef::String("cake")));
//! assert!(ValueRef::Int32(1).equals(ValueRef::Double(1.0)));
//! ```
//!
//! Modules in reading order:
//!
//! - [`value`], [`document`], [`build`]: values and documents
//! - `layout`, [`validate`]: the encoding and its validation
//! - [`order`], [`collation`]: comparison
//! - [`key`], [`hash`]: index keys
//! - [`path`]: dotted paths
//! - [`decimal`], [`object_id`], [`uuid`]: types with an encoding of their own
//! - [`json`] formats values
#![deny(missing_docs)]
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
pub use uuid::format_uuid;
pub use validate::BsonError;
pub use value::{Timestamp, Type, Value, ValueRef};
