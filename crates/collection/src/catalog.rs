//! The catalog's content about collections: the rows with their encodings, the names, and the
//! events of changes. Nothing here changes the catalog: the functions return the changes of rows.
//!
//! - `rows` encodes and decodes the rows of collections, indexes, sections and builds.
//! - `namespace` is the name of a collection in its database.
//! - `retired_names` are the former names that readers of old log records need.
//! - `ddl_event` is the row with the event of the last change, which change streams read.

pub(crate) mod ddl_event;
pub(crate) mod namespace;
pub(crate) mod retired_names;
pub(crate) mod rows;
