//! The values of one path of a document, for readers of few documents.

use windrow_document::{Array, Document, ValueRef};

use super::SearchDefinition;
use super::entries::takes;
use super::mapping::{DocumentMapping, FieldMapping};

impl SearchDefinition {
    /// Visits the values of a path of a document that have entries in the index, in the form that their
    /// keys have: strings are normalized. A value that occurs several times is visited several times.
    ///
    /// ```
    /// use windrow_document::{ObjectId, ValueRef, array, doc};
    /// use windrow_index::search::SearchDefinition;
    ///
    /// let source = doc! { "mappings": { "fields": { "n": { "type": "number" } } } };
    /// let id = ObjectId([0; 12]);
    /// let search = SearchDefinition::parse("default", id, 0, 0, source.as_document()).unwrap();
    /// let document = doc! { "n": (array![1, "one", 2]) };
    /// let mut numbers = Vec::new();
    /// search.values_at(document.as_document(), "n", &mut |value| numbers.extend(value.as_f64()));
    /// assert_eq!(numbers, [1.0, 2.0]);
    /// ```
    pub fn values_at(
        &self,
        document: Document<'_>,
        path: &str,
        visit: &mut dyn FnMut(ValueRef<'_>),
    ) {
        let mut walk = ValueWalk {
            buffer: String::new(),
            visit,
        };
        // A field without a name is not indexed at the top.
        if !path.is_empty() && !path.starts_with('.') {
            walk.document(&self.mappings, document, path);
        }
    }
}

struct ValueWalk<'v> {
    /// A normalized string.
    buffer: String,
    visit: &'v mut dyn FnMut(ValueRef<'_>),
}

impl ValueWalk<'_> {
    /// Walks the fields that the path, or the rest of it, begins with. The names of fields can have dots.
    fn document(&mut self, mapping: &DocumentMapping, document: Document<'_>, path: &str) {
        for (name, value) in document {
            let Some(rest) = path.strip_prefix(name) else {
                continue;
            };
            let Some(field) = mapping.named(name) else {
                continue;
            };
            if rest.is_empty() {
                self.value(field, value);
            } else if let Some(rest) = rest.strip_prefix('.') {
                let is_named = mapping.fields.contains_key(name);
                let dynamic = (!is_named).then(|| mapping.below());
                if let Some(inner) = dynamic.as_ref().or(field.document.as_ref()) {
                    self.below(inner, value, rest);
                }
            }
        }
    }

    fn below(&mut self, mapping: &DocumentMapping, value: ValueRef<'_>, path: &str) {
        match value {
            ValueRef::Document(document) => self.document(mapping, document, path),
            ValueRef::Array(array) => {
                each(array, &mut |element| self.below(mapping, element, path));
            }
            _ => {}
        }
    }

    fn value(&mut self, field: &FieldMapping, value: ValueRef<'_>) {
        match value {
            ValueRef::Array(array) => each(array, &mut |element| self.value(field, element)),
            ValueRef::String(text) => {
                let normalizer = field.string_values();
                if let Some(text) = normalizer.and_then(|it| it.apply(text, &mut self.buffer)) {
                    (self.visit)(ValueRef::String(text));
                }
            }
            ValueRef::Null => (self.visit)(value),
            value if takes(field, value) => (self.visit)(value),
            _ => {}
        }
    }
}

fn each(array: Array<'_>, visit: &mut dyn FnMut(ValueRef<'_>)) {
    array.iter().for_each(visit);
}
