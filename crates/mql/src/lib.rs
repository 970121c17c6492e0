//! The query language on one document: filters, projections, sorts, updates and expressions.
//!
//! Everything is parsed once into a tree and then applied to documents as BSON bytes. Not here:
//! plans, indexes, collections, cursors, or stages that see more than one document.
//!
//! Reading order: [`error`], [`interrupt`], [`memory`], [`collation`], `names`, `field_lineage`, `random`, [`filter`], [`projection`], [`sort`], [`expression`],
//! [`accumulator`], [`reshape`], [`update`], [`window`], [`step`].
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod accumulator;
pub mod collation;
pub mod error;
pub mod expression;
mod field_lineage;
pub mod filter;
pub mod interrupt;
pub mod memory;
mod names;
pub mod projection;
mod random;
pub mod reshape;
pub mod sort;
pub mod step;
pub mod update;
pub mod window;

pub use error::Error;
pub use field_lineage::{FieldLineage, Likeness};

use windrow_document::{DocumentBuf, Value};

/// What is known of a document besides its fields: what `$meta` answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// The relevance that a text index gave, where the query has `$text`.
    pub text_score: Option<f64>,
    /// The relevance that a search index gave, behind `$search`.
    pub search_score: Option<f64>,
    /// How far it is, where the query has `$near`.
    pub nearest: Option<Box<Nearest>>,
    /// What a stage made of its places in several lists.
    pub fused: Option<Box<Fused>>,
    /// How the query came to the document, where a projection asks.
    pub origin: Option<Box<Origin>>,
}

/// What of a document is nearest to the point that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// In the unit of the query.
    pub distance: f64,
    /// The value that lies there.
    pub point: Value,
}

/// What the places of a document in several lists come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused {
    pub score: f64,
    /// How it came about, where that is asked for.
    pub details: Option<DocumentBuf>,
}

/// How a query came to a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// `{$meta: "sortKey"}`: the values that it is ordered by.
    pub sort_key: Option<Value>,
    /// `{$meta: "indexKey"}`: the key of the index that was read.
    pub index_key: Option<DocumentBuf>,
    /// `{$meta: "recordId"}`.
    pub record_id: Option<i64>,
}

impl Origin {
    /// Memory held besides itself.
    pub fn bytes(&self) -> usize {
        let sort_key = self.sort_key.as_ref();
        let sort_key = sort_key.map_or(0, |key| memory::heap_bytes(key.as_ref()));
        let index_key = self
            .index_key
            .as_ref()
            .map_or(0, |key| key.as_bytes().len());
        sort_key + index_key
    }
}
