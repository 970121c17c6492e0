//! Reads and writes values at paths.

use windrow_document::document::Element;
use windrow_document::path::{Component, Path};
use windrow_document::{Document, DocumentBuf, DocumentBuilder, ValueRef};

use crate::Error;

/// Returns the document with the value at the path. `None` removes the field. Values on the path
/// that are not documents are replaced by documents.
pub fn with_value(document: Document<'_>, path: &Path, value: Option<ValueRef<'_>>) -> DocumentBuf {
    let mut write = value
        .map(|value| move |name: &str, builder: &mut DocumentBuilder| builder.append(name, value));
    let write = write.as_mut().map(|write| write as &mut WriteField<'_>);
    let mut builder = begin(document);
    put(document, path.components(), write, &mut builder);
    builder.finish()
}

/// The same, with a value that `write` appends under the name of the field, so that it is in memory
/// only once.
pub fn with_written(
    document: Document<'_>,
    path: &Path,
    mut write: impl FnMut(&str, &mut DocumentBuilder) -> Result<(), Error>,
) -> Result<DocumentBuf, Error> {
    let mut outcome = Ok(());
    let mut builder = begin(document);
    let mut noting = |name: &str, builder: &mut DocumentBuilder| outcome = write(name, builder);
    put(document, path.components(), Some(&mut noting), &mut builder);
    outcome.map(|()| builder.finish())
}

/// Appends a field with the given name.
type WriteField<'w> = dyn FnMut(&str, &mut DocumentBuilder) + 'w;

fn begin(document: Document<'_>) -> DocumentBuilder {
    DocumentBuilder::with_buffer(Vec::with_capacity(document.as_bytes().len() + 64))
}

/// Returns the value at the path. The path leads through documents only, not through arrays.
pub fn value_at<'d>(document: Document<'d>, path: &Path) -> Option<ValueRef<'d>> {
    let (first, rest) = path.components().split_first()?;
    let first = document.get(first.name())?;
    rest.iter().try_fold(first, |value, component| {
        value.as_document()?.get(component.name())
    })
}

fn put(
    document: Document<'_>,
    path: &[Component],
    mut write: Option<&mut WriteField<'_>>,
    builder: &mut DocumentBuilder,
) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let name = first.name();
    let mut elements = document.elements();
    let mut is_there = false;
    while let Some(element) = elements.next_raw() {
        if is_there || element.name != name.as_bytes() {
            builder.append_element(&element);
            continue;
        }
        is_there = true;
        put_field(name, Some(element), rest, write.take(), builder);
    }
    if !is_there {
        put_field(name, None, rest, write, builder);
    }
}

fn put_field(
    name: &str,
    element: Option<Element<'_>>,
    rest: &[Component],
    write: Option<&mut WriteField<'_>>,
    builder: &mut DocumentBuilder,
) {
    if rest.is_empty() {
        if let Some(write) = write {
            write(name, builder);
        }
        return;
    }
    let inner = element
        .and_then(|element| element.value())
        .and_then(ValueRef::as_document);
    match (inner, element, write) {
        (None, None, None) => {}
        (None, Some(element), None) => builder.append_element(&element),
        (inner, _, write) => {
            builder.begin_document(name);
            put(inner.unwrap_or(Document::EMPTY), rest, write, builder);
            builder.end();
        }
    }
}

/// Visits all values at the path: through the documents in arrays, by array positions, and element
/// by element in an array at the end.
pub fn visit<'d>(value: ValueRef<'d>, path: &[Component], found: &mut impl FnMut(ValueRef<'d>)) {
    let Some((first, rest)) = path.split_first() else {
        match value {
            ValueRef::Array(array) => array.iter().for_each(found),
            value => found(value),
        }
        return;
    };
    match value {
        ValueRef::Document(document) => {
            if let Some(inner) = document.get(first.name()) {
                visit(inner, rest, found);
            }
        }
        ValueRef::Array(array) => match first.index() {
            Some(index) => {
                if let Some(element) = array.get(index) {
                    visit(element, rest, found);
                }
            }
            None => {
                let documents = array
                    .iter()
                    .filter(|element| element.as_document().is_some());
                documents.for_each(|element| visit(element, path, found));
            }
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc};

    #[test]
    fn values_are_put_at_paths() {
        let check =
            |document: DocumentBuf, path: &str, value: Option<Value>, expected: DocumentBuf| {
                let value = value.as_ref().map(Value::as_ref);
                let found = with_value(document.as_document(), &Path::parse(path), value);
                assert_eq!(found, expected, "{path} in {document}");
            };
        check(
            doc! { "a": 1, "b": 2 },
            "a",
            Some(9.into()),
            doc! { "a": 9, "b": 2 },
        );
        check(
            doc! { "a": 1 },
            "b",
            Some(9.into()),
            doc! { "a": 1, "b": 9 },
        );
        check(
            doc! { "a": 1 },
            "a.b",
            Some(9.into()),
            doc! { "a": { "b": 9 } },
        );
        check(
            doc! { "a": { "c": 1 } },
            "a.b",
            Some(9.into()),
            doc! { "a": { "c": 1, "b": 9 } },
        );
        check(doc! {}, "a.b", Some(9.into()), doc! { "a": { "b": 9 } });
        check(
            doc! { "a": { "b": 1, "c": 2 } },
            "a.b",
            None,
            doc! { "a": { "c": 2 } },
        );
        check(doc! { "a": 1 }, "a.b", None, doc! { "a": 1 });
        check(doc! { "a": 1 }, "b.c", None, doc! { "a": 1 });
    }

    #[test]
    fn values_are_visited() {
        let document = doc! { "a": [{ "b": 1 }, { "b": [2, 3] }, 4], "c": [5, [6]] };
        let check = |path: &str, expected: &[&str]| {
            let mut found = Vec::new();
            let whole = ValueRef::Document(document.as_document());
            visit(whole, Path::parse(path).components(), &mut |value| {
                found.push(value.to_string())
            });
            assert_eq!(found, expected, "{path}");
        };
        check("a.b", &["1", "2", "3"]);
        check("a.0.b", &["1"]);
        check("c", &["5", "[6]"]);
        check("x", &[]);
    }
}
