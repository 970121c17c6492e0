//! A file for each target.

pub mod block;
pub mod bson;
pub mod catalog;
pub mod commit;
pub mod disk;
pub mod encrypted;
pub mod expression;
pub mod filter;
pub mod geo;
pub mod pipeline;
pub mod plan;
pub mod regex;
pub mod sasl;
pub mod search;
mod test_engine;
pub mod text;
pub mod update;
pub mod wire;
