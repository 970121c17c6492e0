//! The values and texts of one path of a document, for readers of few documents.

use windrow_document::{Array, Document, ValueRef};

use super::SearchDefinition;
use super::entries::takes;
use super::mapping::{DocumentMapping, FieldMapping};

impl SearchDefinition {
    /// Visits the values of a path of a document that have entries in the index, in the form that
    /// their keys have: strings are normalized. A value that occurs several times is visited
    /// several times.
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
        let mut buffer = String::new();
        self.leaves_at(document, path, &mut |field, value| match value {
            ValueRef::String(text) => {
                let normalizer = field.string_values();
                if let Some(text) = normalizer.and_then(|it| it.apply(text, &mut buffer)) {
                    visit(ValueRef::String(text));
                }
            }
            ValueRef::Null => visit(value),
            value if takes(field, value) => visit(value),
            _ => {}
        });
    }

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
        self.leaves_at(document, path, &mut |field, value| match value {
            ValueRef::String(text) if field.is_text() => visit(text),
            _ => {}
        });
    }

    /// Visits the values of a path of a document that are no arrays, with the mapping of their
    /// field.
    pub(super) fn leaves_at(
        &self,
        document: Document<'_>,
        path: &str,
        visit: &mut dyn FnMut(&FieldMapping, ValueRef<'_>),
    ) {
        // A field without a name is not indexed at the top.
        if !path.is_empty() && !path.starts_with('.') {
            ValueWalk { visit }.document(&self.mappings, document, path);
        }
    }
}

struct ValueWalk<'v> {
    visit: &'v mut dyn FnMut(&FieldMapping, ValueRef<'_>),
}

impl ValueWalk<'_> {
    /// Walks the fields that the path, or the rest of it, begins with. The names of fields can have
    /// dots.
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
            value => (self.visit)(field, value),
        }
    }
}

fn each(array: Array<'_>, visit: &mut dyn FnMut(ValueRef<'_>)) {
    array.iter().for_each(visit);
}
