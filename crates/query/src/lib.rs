//! Plans and runs queries over collections: bounds, choice of a plan, operators, aggregation,
//! explain.
//!
//! A query has three forms. A [`Find`] is the parsed request, a [`plan::Plan`] says as data what to
//! do, and a tree of [`operators::Operator`]s does it, one row at a time, on a snapshot of the
//! collection, a [`Source`]. [`explain`] prints plans and counters. An [`Aggregate`] is a pipeline
//! of stages on the rows of a `Find` or of a search.
//!
//! This crate does not parse commands, has no sockets, and does not keep cursors between batches.
//! Everything that needs only one document is in `windrow_mql`.
//!
//! ```
//! use std::sync::Arc;
//! use windrow_mql::filter::Filter;
//! use windrow_query::{Find, NoCollection, Source, Uninterrupted};
//! let source: Arc<dyn Source> = Arc::new(NoCollection { namespace: "a.b".to_owned() });
//! let mut cursor = Find::new(Filter::all()).open(&source).unwrap();
//! assert!(cursor.next(&Uninterrupted).unwrap().is_none());
//! ```
//!
//! Reading order: [`error`], [`shape`], [`restrictions`], [`plan_cache`], [`planner_settings`],
//! [`key_range`], [`source`], [`snapshot`], [`statistics`], [`view`], [`row`], [`find`],
//! [`bounds`], [`text`], [`near`], [`plan`], [`planner`], [`operators`], [`mod@print`], [`cursor`],
//! [`count`], [`distinct`], `search`, [`aggregate`], [`explain`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod aggregate;
pub mod bounds;
pub mod count;
pub mod cursor;
pub mod distinct;
pub mod error;
pub mod explain;
pub mod find;
pub mod key_range;
pub mod near;
pub mod operators;
pub mod plan;
pub mod plan_cache;
pub mod planner;
pub mod planner_settings;
pub mod print;
pub mod restrictions;
pub mod row;
mod search;
pub mod shape;
pub mod snapshot;
pub mod source;
pub mod statistics;
pub mod text;
pub mod view;

pub use aggregate::{Aggregate, EventPipeline, ParsePipeline, Pipeline};
pub use count::Count;
pub use cursor::{Cursor, PlannedFind};
pub use distinct::Distinct;
pub use error::Error;
pub use explain::{ExplainedCommand, ReturnedDocument, Verbosity};
pub use find::{Find, Hint};
pub use plan_cache::CachedPlan;
pub use planner_settings::PlannerSettings;
pub use restrictions::{IndexFilter, IndexName, Restrictions};
pub use row::{Content, Row, check_size};
pub use shape::{Shape, ShapeParts};
pub use snapshot::Snapshot;
pub use source::{
    Collections, Direction, EntryCursor, NoCollection, RecordCursor, RecordId, Source, SourceIndex,
    ViewParts,
};
pub use statistics::{
    CollectionStatistics, SearchIndexName, Statistics, StatisticsProvider, checked_scale,
};
pub use view::EngineCollections;
// Functions of this crate take an interrupt.
pub use windrow_interrupt::{Interrupt, Interrupted, Uninterrupted};
