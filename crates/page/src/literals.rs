//! Literals of BSON values: Extended JSON and the syntax of mongosh, such as
//! `{ _id: ObjectId("…"), at: ISODate("2026-01-01") }`.
//!
//! [`parse_value`], [`parse_document`], [`DocumentReader`] and [`DocumentStream`] parse;
//! [`shell_text`] and
//! [`extended_json`] write. Sources: <https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/>,
//! <https://www.mongodb.com/docs/mongodb-shell/reference/data-types/>.

mod constructors;
mod date;
mod extended;
mod parse;
mod scan;
mod stream;
mod write;

pub use date::format_date;
pub use parse::{DocumentReader, parse_array, parse_document, parse_value};
pub use stream::DocumentStream;
pub use write::{JsonFormat, extended_json, shell_line, shell_text};

#[cfg(test)]
mod tests;
