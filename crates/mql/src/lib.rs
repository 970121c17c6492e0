//! The query language on one document: filters, projections, sort keys, updates, expressions and
//! accumulators.
//!
//! Everything is parsed once into a tree. The trees are then applied to documents as BSON bytes.
//! This crate has no plans, indexes, collections or cursors, and no stages that see more than one
//! document.
//!
//! Main types: [`filter::Filter`], [`projection::Projection`], [`sort::Sort`], [`update::Update`],
//! [`expression::Expression`], [`reshape::Reshape`], [`accumulator::Accumulator`].
//!
//! ```
//! use windrow_document::doc;
//! use windrow_mql::filter::Filter;
//! let filter = Filter::parse(doc! { "qty": { "$gt": 2 } }.as_document())?;
//! assert!(filter.matches(doc! { "qty": 3 }.as_document())?);
//! # Ok::<(), windrow_mql::Error>(())
//! ```
//!
//! Reading order: [`error`], [`interrupt`], [`memory`], [`collation`], `name_index`,
//! `field_lineage`, `random`, [`filter`], [`projection`], [`sort`], [`expression`],
//! [`accumulator`], [`reshape`], [`update`], [`window`], [`densify_step`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod accumulator;
pub mod collation;
pub mod densify_step;
pub mod error;
pub mod expression;
mod field_lineage;
pub mod filter;
pub mod interrupt;
pub mod memory;
mod name_index;
pub mod projection;
mod random;
pub mod reshape;
pub mod sort;
pub mod update;
pub mod window;

pub use error::Error;
pub use field_lineage::{FieldLineage, ValueDifference};

use windrow_document::{ArrayBuf, DocumentBuf, Value};

/// What a query knows about a document besides its fields. `$meta` reads it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// The relevance score of `$text`, if the query has it.
    pub text_score: Option<f64>,
    /// The relevance score of `$search`, if the pipeline has it.
    pub search_score: Option<f64>,
    /// The place of the document in the result of `$search`. `{$meta: "searchSequenceToken"}` is
    /// its base64.
    pub sequence_token: Option<Box<[u8]>>,
    /// What `$search` returns of the document besides its score.
    pub search: Option<Box<SearchDetails>>,
    /// The distance to the point of `$near` or `$geoNear`, if the query has one.
    pub nearest: Option<Box<NearestPoint>>,
    /// The score of a document in a stage that fuses several ranked lists, such as `$rankFusion`.
    pub fused: Option<Box<FusedScore>>,
    /// How the query reached the document. Set if a projection reads it.
    pub origin: Option<Box<Origin>>,
}

/// What `$search` returns of a document besides the score.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchDetails {
    /// `{$meta: "searchHighlights"}`: passages with hits.
    pub highlights: Option<ArrayBuf>,
    /// `{$meta: "searchScoreDetails"}`: how the score came about.
    pub score_details: Option<DocumentBuf>,
}

impl SearchDetails {
    /// Returns the heap memory in bytes.
    pub fn bytes(&self) -> usize {
        let highlights = self.highlights.as_ref();
        let highlights = highlights.map_or(0, |all| all.as_array().as_bytes().len());
        let details = self.score_details.as_ref();
        highlights + details.map_or(0, |details| details.as_bytes().len())
    }
}

/// The value of a document that is nearest to the point of the query.
#[derive(Clone, Debug, PartialEq)]
pub struct NearestPoint {
    /// The distance in the unit of the query: metres on the sphere for GeoJSON, otherwise units of
    /// the coordinates or radians.
    pub distance: f64,
    /// The geometry at that distance, as stored.
    pub point: Value,
}

/// The score of a document that several ranked lists contain.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedScore {
    /// The combined score.
    pub score: f64,
    /// The contributions of the lists, if `scoreDetails` is set.
    pub details: Option<DocumentBuf>,
}

/// How a query reached a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// `{$meta: "sortKey"}`: the values by which the document is sorted.
    pub sort_key: Option<Value>,
    /// `{$meta: "indexKey"}`: the index key that was read.
    pub index_key: Option<DocumentBuf>,
    /// `{$meta: "recordId"}`: the record id.
    pub record_id: Option<i64>,
}

impl Origin {
    /// Returns the heap memory in bytes.
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
