//! The strings of one path of a document, for readers of few documents.

use windrow_document::{Document, ValueRef};

use super::SearchDefinition;
use super::mapping::{DocumentMapping, FieldMapping};

impl SearchDefinition {
    /// Visits the strings of a path of a document that are indexed as texts, in the order of their
    /// tokens' positions.
    ///
    /// ```
    /// use windrow_document::{ObjectId, array, doc};
    /// use windrow_index::search::SearchDefinition;
    ///
    /// let source = doc! { "mappings": { "dynamic": true } };
    /// let id = ObjectId([0; 12]);
    /// let search = SearchDefinition::parse("default", id, 0, 0, source.as_document()).unwrap();
    /// let document = doc! { "by": (array![{ "name": "Ann" }, { "name": ["Bo", 5] }]) };
    /// let mut names = Vec::new();
    /// search.texts_at(document.as_document(), "by.name", &mut |text| names.push(text.to_owned()));
    /// assert_eq!(names, ["Ann", "Bo"]);
    /// ```
    pub fn texts_at(&self, document: Document<'_>, path: &str, visit: &mut dyn FnMut(&str)) {
        // A field without a name is not indexed at the top.
        if !path.is_empty() && !path.starts_with('.') {
            in_document(&self.mappings, document, path, visit);
        }
    }
}

/// Walks the fields that the path, or the rest of it, begins with. The names of fields can have dots.
fn in_document(
    mapping: &DocumentMapping,
    document: Document<'_>,
    path: &str,
    visit: &mut dyn FnMut(&str),
) {
    for (name, value) in document {
        let (Some(rest), Some(field)) = (path.strip_prefix(name), mapping.named(name)) else {
            continue;
        };
        if rest.is_empty() {
            in_value(field, value, visit);
        } else if let Some(rest) = rest.strip_prefix('.') {
            // Below a field that no mapping names, `dynamic` applies to all levels.
            let is_named = mapping.fields.contains_key(name);
            let dynamic = (!is_named).then(|| mapping.below());
            if let Some(inner) = dynamic.as_ref().or(field.document.as_ref()) {
                below(inner, value, rest, visit);
            }
        }
    }
}

fn below(mapping: &DocumentMapping, value: ValueRef<'_>, path: &str, visit: &mut dyn FnMut(&str)) {
    match value {
        ValueRef::Document(document) => in_document(mapping, document, path, visit),
        ValueRef::Array(array) => {
            for element in array {
                below(mapping, element, path, visit);
            }
        }
        _ => {}
    }
}

fn in_value(field: &FieldMapping, value: ValueRef<'_>, visit: &mut dyn FnMut(&str)) {
    match value {
        ValueRef::Array(array) => {
            for element in array {
                in_value(field, element, visit);
            }
        }
        ValueRef::String(text) if field.string.is_some() => visit(text),
        _ => {}
    }
}
