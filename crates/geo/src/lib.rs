//! Places: shapes on the earth and in the plane, what lies in what and how far from where, and the
//! cells by which an index finds them. Knows BSON values, but no paths, filters or indexes.
//!
//! - A [`Shape`] is what a document holds: GeoJSON, taken apart into points, lines and polygons on the
//!   sphere, or a legacy pair of numbers, a point of the plane.
//! - A [`Condition`] is `$geoWithin` or `$geoIntersects`; a [`Near`] is `$near` or `$nearSphere`.
//! - [`Cells`] says by which keys an index holds a shape, and in which ranges of keys lie the shapes
//!   that can fulfil a condition or lie within a distance. They hold more than that: a reader looks
//!   at the shapes again.
//!
//! Edges on the sphere are great circles. Lengths on the earth take it as a sphere of
//! [`EARTH_METERS`] radius, as MongoDB does.
//!
//! ```
//! use windrow_document::{ValueRef, doc};
//! use windrow_geo::Condition;
//! let within = doc! { "$geoWithin": { "$centerSphere": [[0, 0], 0.1] } };
//! let condition = Condition::parse("$geoWithin", within.get("$geoWithin").unwrap()).unwrap();
//! let place = doc! { "type": "Point", "coordinates": [1, 2] };
//! assert!(condition.holds(ValueRef::Document(place.as_document())));
//! ```
//!
//! Reading order: [`position`], `line`, `polygon`, [`shape`], `geojson`, `relation`, [`plane`],
//! `region`, [`near`], [`key_range`], `covering`, [`grid`], [`cells`], [`condition`].
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod cells;
pub mod condition;
mod covering;
pub mod error;
mod geojson;
pub mod grid;
pub mod key_range;
mod line;
pub mod near;
pub mod plane;
mod polygon;
pub mod position;
mod region;
mod relation;
pub mod shape;

pub use cells::Cells;
pub use condition::{Condition, Relation};
pub use covering::Levels;
pub use error::Error;
pub use grid::Grid;
pub use key_range::KeyRange;
pub use near::{Measure, Near};
pub use position::Position;
pub use shape::Shape;

/// The radius of the earth.
pub const EARTH_METERS: f64 = 6_378_100.0;
