//! BSON: as it comes, and what keys make of its values.

use std::cmp::Ordering;

use windrow_document::{Document, DocumentBuf, DocumentBuilder, Value, ValueRef, key};

use crate::grammar::Source;

/// The bytes as a document, as key bytes, and as the values that the grammar makes of them.
pub fn run(bytes: &[u8]) {
    read_key(bytes);
    if let Ok(document) = Document::from_bytes(bytes) {
        check_document(document);
    }
    let mut source = Source::new(bytes);
    let (one, other) = (source.value(), source.value());
    check_value(one.as_ref());
    check_pair(one.as_ref(), other.as_ref());
}

/// What was read and written again is the same, to the byte but for how a double that is no number is
/// made up.
fn check_document(document: Document<'_>) {
    let mut builder = DocumentBuilder::new();
    for (name, value) in document.iter() {
        builder.append(name, value);
        check_value(value);
    }
    assert_eq!(builder.finish().as_bytes(), document.as_bytes());
    let mut owned = DocumentBuf::new();
    document
        .iter()
        .for_each(|(name, value)| owned.push(name, value.to_value()));
    assert_eq!(owned.as_bytes(), document.as_bytes());
    assert!(!document.to_string().is_empty());
}

/// Key bytes and shape give the value back.
fn check_value(value: ValueRef<'_>) {
    for descending in [false, true] {
        let (mut bytes, mut shape) = (Vec::new(), Vec::new());
        key::append_with_shape(&mut bytes, &mut shape, value, descending);
        let mut reader = key::KeyReader::new(&bytes, &shape);
        let found = reader.value(descending);
        assert!(reader.is_at_end(), "{value}");
        let found = found.unwrap_or_else(|| panic!("{value} is not read back"));
        assert_eq!(
            value.compare(found.as_ref()),
            Ordering::Equal,
            "{value} and {found}"
        );
    }
}

/// Key bytes are ordered as values are.
fn check_pair(one: ValueRef<'_>, other: ValueRef<'_>) {
    let key = |value| {
        let mut bytes = Vec::new();
        key::append(&mut bytes, value);
        bytes
    };
    let order = one.compare(other);
    assert_eq!(order, other.compare(one).reverse(), "{one} and {other}");
    assert_eq!(order, key(one).cmp(&key(other)), "{one} and {other}");
}

fn read_key(bytes: &[u8]) {
    let middle = usize::from(bytes.first().copied().unwrap_or(0)).min(bytes.len());
    let (shape, rest) = bytes.split_at(middle);
    for descending in [false, true] {
        let mut reader = key::KeyReader::new(rest, shape);
        while let Some(value) = reader.value(descending) {
            drop::<Value>(value);
        }
    }
}
