//! The target `bson`: documents, and key bytes of values.

use std::cmp::Ordering;

use windrow_document::{Document, DocumentBuf, DocumentBuilder, Value, ValueRef, key};

use crate::value_encoding::ValueDecoder;

/// The input is decoded as a document, as key bytes, and as encoded values.
pub fn run(bytes: &[u8]) {
    read_key(bytes);
    if let Ok(document) = Document::from_bytes(bytes) {
        check_document(document);
    }
    let mut source = ValueDecoder::new(bytes);
    let (first, second) = (source.value(), source.value());
    check_value(first.as_ref());
    check_pair(first.as_ref(), second.as_ref());
}

/// Decoding and encoding a document must preserve its bytes.
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

/// The value must be restored from its key bytes and shape.
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

/// The order of key bytes must be the order of values.
fn check_pair(left: ValueRef<'_>, right: ValueRef<'_>) {
    let key = |value| {
        let mut bytes = Vec::new();
        key::append(&mut bytes, value);
        bytes
    };
    let order = left.compare(right);
    assert_eq!(order, right.compare(left).reverse(), "{left} and {right}");
    assert_eq!(order, key(left).cmp(&key(right)), "{left} and {right}");
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
