//! The shape of a query: the query without its constants.
//!
//! Two queries have the same shape if their filters, sorts, projections and collations differ only
//! in constants. Index filters are set for a shape, the plan cache is keyed by it, and explain
//! shows its hash.

use std::fmt::Write as _;

use windrow_document::{Array, Document, DocumentBuf, ValueRef, doc};

/// The shape of a query, as a text. Equal shapes have equal texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape(String);

/// A query as an example of its shape, as the client wrote it.
#[derive(Clone, Debug, Default)]
pub struct ShapeParts {
    /// The filter.
    pub query: DocumentBuf,
    /// The sort. Empty if there is none.
    pub sort: DocumentBuf,
    /// The projection. Empty if there is none.
    pub projection: DocumentBuf,
    /// The collation, if the command has one.
    pub collation: Option<DocumentBuf>,
}

impl ShapeParts {
    /// The document that `planCacheListFilters` and `$planCacheStats` show.
    pub fn to_document(&self) -> DocumentBuf {
        let mut shown = doc! {
            "query": (self.query.clone()), "sort": (self.sort.clone()),
            "projection": (self.projection.clone()),
        };
        if let Some(collation) = &self.collation {
            shown.push("collation", collation.clone());
        }
        shown
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let parts = [&self.query, &self.sort, &self.projection];
        let parts = parts.into_iter().chain(&self.collation);
        parts.map(|part| part.as_bytes().len()).sum()
    }
}

/// Operators whose value is always a constant, even if it is a document.
const CONSTANT_OPERATORS: &[&str] = &[
    "$all",
    "$bitsAllClear",
    "$bitsAllSet",
    "$bitsAnyClear",
    "$bitsAnySet",
    "$eq",
    "$exists",
    "$gt",
    "$gte",
    "$in",
    "$lt",
    "$lte",
    "$mod",
    "$ne",
    "$nin",
    "$regex",
    "$size",
    "$type",
];

/// Operators that take a list of filters. The order of the list does not matter.
const LOGICAL_OPERATORS: &[&str] = &["$and", "$or", "$nor"];

impl Shape {
    /// Returns the shape of a query. The filter must be in normal form (`Filter::to_document`).
    ///
    /// ```
    /// use windrow_document::{Document, doc};
    /// use windrow_mql::filter::Filter;
    /// use windrow_query::Shape;
    /// let shape = |n: i32| {
    ///     let filter = Filter::parse(doc! { "n": n }.as_document())?.to_document();
    ///     let none = Document::EMPTY;
    ///     Ok::<_, windrow_mql::Error>(Shape::new(filter.as_document(), none, none, None))
    /// };
    /// assert_eq!(shape(1)?, shape(2)?);
    /// # Ok::<(), windrow_mql::Error>(())
    /// ```
    pub fn new(
        filter: Document<'_>,
        sort: Document<'_>,
        projection: Document<'_>,
        collation: Option<Document<'_>>,
    ) -> Shape {
        let mut text = filter_text(filter);
        let projection = in_order_of_names(projection);
        for part in [Some(sort), Some(projection.as_document()), collation] {
            // Writing to a string does not fail.
            _ = write!(text, "|{}", part.unwrap_or(Document::EMPTY));
        }
        Shape(text)
    }

    /// The hash of the shape as eight hexadecimal digits, as explain shows it.
    pub fn hash(&self) -> String {
        let hash = windrow_document::hash::hash64(ValueRef::String(&self.0));
        format!("{:08X}", hash as u32)
    }
}

/// Sorts the fields of a projection by name. Their order does not change the result.
fn in_order_of_names(projection: Document<'_>) -> DocumentBuf {
    let mut fields: Vec<_> = projection.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields.into_iter().collect()
}

fn filter_text(filter: Document<'_>) -> String {
    let mut parts: Vec<String> = filter
        .iter()
        .map(|(name, value)| match value {
            // The content of a schema consists of names, not of constants.
            ValueRef::Document(schema) if name == "$jsonSchema" => format!("{name}:{schema}"),
            ValueRef::Array(list) if LOGICAL_OPERATORS.contains(&name) => list_text(name, list),
            _ if CONSTANT_OPERATORS.contains(&name) => name.to_owned(),
            ValueRef::Document(inner) => format!("{name}{{{}}}", filter_text(inner)),
            ValueRef::String(text) if name.starts_with('$') => format!("{name}:{text}"),
            _ => name.to_owned(),
        })
        .collect();
    parts.sort();
    parts.join(",")
}

fn list_text(name: &str, list: Array<'_>) -> String {
    let filters = list.iter().filter_map(ValueRef::as_document);
    let mut parts: Vec<String> = filters.map(filter_text).collect();
    parts.sort();
    format!("{name}[{}]", parts.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_mql::filter::Filter;

    fn shape(filter: &DocumentBuf, sort: &DocumentBuf) -> Shape {
        let filter = Filter::parse(filter.as_document()).unwrap().to_document();
        let none = Document::EMPTY;
        Shape::new(filter.as_document(), sort.as_document(), none, None)
    }

    #[test]
    fn the_order_of_a_projection_does_not_change_a_shape() {
        let shape = |projection: DocumentBuf| {
            let none = Document::EMPTY;
            Shape::new(none, none, projection.as_document(), None)
        };
        assert_eq!(
            shape(doc! { "a": 1, "b": 1 }),
            shape(doc! { "b": 1, "a": 1 })
        );
        assert_ne!(shape(doc! { "a": 1 }), shape(doc! { "a": 0 }));
    }

    fn check(one: DocumentBuf, other: DocumentBuf, same: bool) {
        let found = shape(&one, &doc! {}) == shape(&other, &doc! {});
        assert_eq!(found, same, "{one} {other}");
    }

    #[test]
    fn constants_do_not_change_a_shape() {
        check(doc! { "a": 1 }, doc! { "a": "x" }, true);
        check(doc! { "a": 1 }, doc! { "a": { "$gt": 1 } }, false);
        check(doc! { "a": 1 }, doc! { "b": 1 }, false);
        check(
            doc! { "a": 1, "b": { "$in": [1, 7] } },
            doc! { "b": { "$in": [2, 3] }, "a": { "x": 1 } },
            true,
        );
        check(
            doc! { "$or": [{ "a": 1 }, { "b": { "$lt": 2 } }] },
            doc! { "$or": [{ "b": { "$lt": 9 } }, { "a": 5 }] },
            true,
        );
        check(
            doc! { "a": { "$elemMatch": { "x": 1 } } },
            doc! { "a": { "$elemMatch": { "y": 1 } } },
            false,
        );
        let required = |name: &str| doc! { "$jsonSchema": { "required": [name] } };
        check(required("a"), required("b"), false);
        let filter = doc! { "a": 1 };
        assert_ne!(shape(&filter, &doc! { "b": 1 }), shape(&filter, &doc! {}));
    }
}
