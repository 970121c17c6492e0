//! Geospatial shapes: parsing, containment, intersection, distance, and the index keys of shapes.
//!
//! Not for: paths into documents, filters as a whole, or the storage of indexes. The crate knows
//! single BSON values only.
//!
//! - [`Shape`] is a stored value: GeoJSON on the sphere, or a legacy coordinate pair.
//! - [`Condition`] is a parsed `$geoWithin` or `$geoIntersects`.
//! - [`Near`] is a parsed `$near` or `$nearSphere`.
//! - [`SearchArea`], [`ShapeQuery`] and [`SearchOrigin`] are parsed operators of MongoDB Search.
//! - [`Cells`] maps shapes to index keys, and conditions and distances to ranges of index keys. The
//!   ranges contain the keys of non-matching shapes, too, so a reader tests each shape again.
//!
//! Edges on the sphere are great circles. Distances in meters use a sphere with the radius
//! [`EARTH_RADIUS_METERS`], as MongoDB does.
//!
//! ```
//! use windrow_document::{ValueRef, doc};
//! use windrow_geo::Condition;
//!
//! let operand = doc! { "$centerSphere": [[0, 0], 0.1] };
//! let operand = ValueRef::Document(operand.as_document());
//! let condition = Condition::parse("$geoWithin", operand).unwrap();
//! let place = doc! { "type": "Point", "coordinates": [1, 2] };
//! assert!(condition.matches(ValueRef::Document(place.as_document())));
//! ```
//!
//! Modules in reading order:
//!
//! - `coordinates`: a pair of numbers
//! - `work`: the amounts of work between two checks of an interrupt
//! - `crossing`: edges that cross, which makes a polygon invalid
//! - `line`, `polygon`, `shape`: geometries on the sphere
//! - `geojson`: parses them
//! - `relation`: their spatial predicates
//! - `plane`: `$box`, `$center` and `$polygon`
//! - `region`: what a condition compares with
//! - `near`: distances
//! - [`key_range`]: ranges of index keys
//! - `covering`: shapes as cells of the sphere
//! - `grid`: points as squares of the plane
//! - `cells`: both kinds of index
//! - `condition`: `$geoWithin` and `$geoIntersects`
//! - `search`: the operators of MongoDB Search
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod cells;
mod condition;
mod coordinates;
mod covering;
mod crossing;
mod error;
mod geojson;
mod grid;
pub mod key_range;
mod line;
mod near;
mod plane;
mod polygon;
mod region;
mod relation;
mod search;
mod shape;
mod work;

pub use cells::Cells;
pub use condition::{Condition, Relation};
pub use coordinates::Coordinates;
pub use covering::CellLevels;
pub use error::Error;
pub use grid::Grid;
pub use key_range::KeyRange;
pub use near::{DistanceUnit, Near};
pub use search::{SEARCH_EARTH_RADIUS_METERS, SearchArea, SearchOrigin, ShapeQuery, ShapeRelation};
pub use shape::Shape;

/// The radius of the earth as a sphere, in meters: the value that MongoDB uses.
pub const EARTH_RADIUS_METERS: f64 = 6_378_100.0;
