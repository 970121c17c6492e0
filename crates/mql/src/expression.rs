//! Aggregation expressions. They are parsed once into a tree and evaluated on documents as BSON
//! bytes.
//! ```
//! use windrow_document::{doc, Value, ValueRef};
//! use windrow_mql::expression::{Context, Expression, Scope};
//! let source = doc! { "$add": ["$price", 1] };
//! let sum = Expression::parse(ValueRef::Document(source.as_document()), &Scope::new()).unwrap();
//! let item = doc! { "price": 2.5 };
//! let context = Context::new(item.as_document());
//! assert_eq!(sum.evaluate(&context).unwrap().to_value(), Some(Value::Double(3.5)));
//! ```
//! Constant parts are evaluated while parsing, so their errors are errors of the parse. Reading
//! order: `tree`, `parse`, one module for each family of operators, and `operators`, the table of
//! all operators.

pub(crate) mod accumulators;
pub(crate) mod arithmetic;
mod array;
mod array_object;
mod array_scope;
mod array_sort;
mod array_sort_order;
mod bits;
mod boolean;
mod comparison;
mod conditional;
mod context;
mod convert;
pub(crate) mod date;
mod dependencies;
mod expr_value;
mod field_path;
mod meta;
pub(crate) mod number;
mod object;
mod offset_cache;
mod operators;
mod parse;
pub(crate) mod percentile;
mod real;
mod regex;
mod rounding;
mod search_metadata;
mod set;
pub(crate) mod statistics;
mod string;
pub(crate) mod summation;
mod tree;
mod variable;
mod zip;

pub(crate) use array_sort::parse_count;
pub use context::{CLUSTER_TIME, Context, Scope, VariableValue, Variables};
pub use date::calendar::Date as CalendarDate;
pub use dependencies::Dependencies;
pub use expr_value::ExprValue;
pub(crate) use field_path::check_name;
pub use field_path::{DBREF_FIELDS, check_variable_definition};
pub(crate) use operators::is_operator;
pub use search_metadata::SearchMetadata;
pub use tree::Expression;
